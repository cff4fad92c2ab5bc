"""The allow-list for documents, asked directly: which addresses leave it, whatever came before."""

import pytest

from agentd.web.markup.markdown import sanitize_html

BARE = '<a rel="noopener noreferrer">words</a>'


def link(address: str) -> str:
    return f'<a href="{address}">words</a>'


@pytest.mark.parametrize(
    "address",
    [
        *(
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "blob:x",
            "file:///etc/passwd",
        ),
        *("view-source:https://host", "ftp://host", "tel:1"),
        *("&#106;avascript:x", "javascript&#58;x", "javascript&colon;x", "java&#10;script:x", "&#1;javascript:x"),
        *(" javascript:x", "\tjavascript:x", "java\tscript:x", "\x01javascript:x"),
    ],
)
def test_unsafe_url_scheme_is_removed(address: str) -> None:
    assert sanitize_html(link(address)) == BARE


@pytest.mark.parametrize(
    "address",
    [
        *("//host/x", "/\\host/x", "\\\\host", "&#47;/host/x", "&sol;&sol;host"),
        *(
            "https:host",
            "https:/host",
            "https:///host",
            "http:\\\\host",
            "https://trusted@host/",
            "mailto:",
            "mailto:?to=a",
        ),
        *(" //host/x", "\t//host/x", "/\t/host/x", "/&#10;/host/x", "\x01//host", "&#1;//host", "ht\ntps://host/x"),
    ],
)
def test_deceptive_url_is_removed(address: str) -> None:
    assert sanitize_html(link(address)) == BARE


@pytest.mark.parametrize(
    "address",
    [
        *("https://host/x?a=b#c", "http://host", "HTTPS://host?x", "mailto:ann@host"),
        *("#r1", "#at-why", "specs/users.md#r1", "../proposal.md", "caf%C3%A9.md"),
    ],
)
def test_safe_url_is_kept(address: str) -> None:
    assert sanitize_html(link(address)) == f'<a href="{address}" rel="noopener noreferrer">words</a>'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('<p onclick="x" style="x" id="x">a</p>', "<p>a</p>"),
        ('<p class="unseen">a</p>', '<p class="unseen">a</p>'),
        ('<p class="unseen panel">a</p>', "<p>a</p>"),
        ('<code class="language-c++">a</code>', '<code class="language-c++">a</code>'),
        ('<p data-line="12" data-end="1x">a</p>', '<p data-line="12">a</p>'),
        ('<h2 id="r1">a</h2><h2 id="main">b</h2>', '<h2 id="r1">a</h2><h2>b</h2>'),
        ("<script>x</script><style>x</style><iframe>a</iframe><svg>b</svg>", "ab"),
    ],
)
def test_only_allowed_attributes_and_tags_are_kept(text: str, left: str) -> None:
    assert sanitize_html(text) == left
