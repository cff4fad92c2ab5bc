"""Frontmatter is read as data and edited as text."""

import pytest

from agentd.documents import frontmatter
from agentd.documents import text as base
from agentd.documents.frontmatter import Frontmatter, InvalidFrontmatter

TEXT = """---
# who
id: "add-oauth"   # quoted
created: 2026-01-19T10:30:39Z
tags:
- a
- b

# about the note
note: |
  # not a comment
  two
x-own: {a: 1}
---

# Body
"""


def read(text: str) -> Frontmatter:
    return frontmatter.read_frontmatter(base.parse_document(text, "x.md"))


def test_values_and_their_lines_are_read() -> None:
    found = read(TEXT)
    assert dict(found.values) == {
        "id": "add-oauth",
        "created": "2026-01-19T10:30:39Z",
        "tags": ["a", "b"],
        "note": "# not a comment\ntwo\n",
        "x-own": {"a": 1},
    }
    assert [found.line(key) for key in found.values] == [3, 4, 5, 10, 13]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Body\n",
        "---\n\ntext\n",
        "text\n---\na: 1\n---\n",
        "---\n\n<p>\n---\n",
        "\n---\na: 1\n",
        "\n---\nSome words here: x\n---\n",
        "\n---\n\n---\n",
        "\n---\na: 1\n\n# Title\n<p>\n---\n",
    ],
)
def test_text_without_frontmatter_is_accepted(text: str) -> None:
    found = read(text)
    assert (found.span, dict(found.values)) == (None, {})


@pytest.mark.parametrize("before", ["\n", "\r\n \r\n", "\ufeff\n\n"])
def test_blank_lines_before_frontmatter_are_skipped_and_kept(before: str) -> None:
    newline = "\r\n" if "\r" in before else "\n"
    text = before + TEXT.replace("\n", newline)
    found = read(text)
    assert found.values == read(TEXT).values
    assert found.line("id") == 3 + before.count("\n")
    assert frontmatter.set_frontmatter_keys(text, {"id": "other"}, "x.md") == text.replace('"add-oauth"', '"other"')
    assert frontmatter.remove_frontmatter_key(text, "tags", "x.md") == text.replace(
        newline.join(["tags:", "- a", "- b", ""]), ""
    )
    head = frontmatter.revise_frontmatter(base.parse_document(text, "x.md"), {"id": "other"})
    assert text.replace('"add-oauth"', '"other"').startswith(head) and head.startswith(before)
    with pytest.raises(InvalidFrontmatter, match=r"x\.md:3: "):
        read("\n---\na: [\n---\n")


@pytest.mark.parametrize("text", ["---\n---\n", "---\n# only a comment\n---\n", "---\r\n...\r\n"])
def test_empty_frontmatter_is_empty(text: str) -> None:
    assert dict(read(text).values) == {}
    assert frontmatter.set_frontmatter_keys(text, {"id": "a"}, "x.md").split() == [
        *text.split()[:-1],
        "id:",
        "a",
        text.split()[-1],
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\nid: a\nb: [1\n---\n", 3),
        ("---\nid: a\nid: b\n---\n", 3),
        ("---\nid: &a b\nc: *a\n---\n", 3),
        ("---\n- a\n---\n", 1),
        ("---\nid: a\n\n# Title\n", 1),
        ("---\nid: a\n\tb: c\n---\n", 3),
    ],
)
def test_invalid_frontmatter_error_names_the_line_in_the_document(text: str, line: int) -> None:
    with pytest.raises(InvalidFrontmatter) as caught:
        read(text)
    assert (caught.value.file, caught.value.line) == ("x.md", line)


def test_value_of_the_wrong_type_names_key_and_line() -> None:
    found = read("---\na: 1\nversion: [1]\nid: {}\n---\n")
    with pytest.raises(InvalidFrontmatter, match=r"x\.md:3: 'version' must be a whole number"):
        found.number("version")
    with pytest.raises(InvalidFrontmatter, match=r"x\.md:4: 'id' must be a string"):
        found.string("id")


def test_setting_a_scalar_keeps_comment_and_quotes() -> None:
    edited = frontmatter.set_frontmatter_keys(TEXT, {"id": "other"}, "x.md")
    assert edited == TEXT.replace('"add-oauth"', '"other"')


def test_setting_an_equal_value_changes_nothing() -> None:
    assert frontmatter.set_frontmatter_keys(TEXT, dict(read(TEXT).values), "x.md") == TEXT


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("k: 1", 2, "k: 2"),
        ("k:   1  # why", 2, "k:   2  # why"),
        ("k: 'it''s'", "that's", "k: 'that''s'"),
        ("k: a", "1", "k: '1'"),
        ("k: a", "x: y", "k: 'x: y'"),
        ("k:", "a", "k: a"),
        ("k: # why", "a", "k: a # why"),
        ("'k': a", "b", "'k': b"),
        ("k: [a,\n  b]", "c", "k: c"),
        ("k: a\n  b", "c", "k: c"),
        ("k: a", ["b", "c"], "k:\n  - b\n  - c"),
        ("k: a", True, "k: true"),
        ("k: 1", True, "k: true"),
        ("k: a", None, "k: null"),
        ("k: a", "two\nlines\n", "k: |\n  two\n  lines"),
    ],
)
def test_setting_one_key_keeps_its_style(before: str, value: object, after: str) -> None:
    text = f"---\na: 1\n{before}\n# end\nz: 2\n---\nbody"
    edited = frontmatter.set_frontmatter_keys(text, {"k": value}, "x.md")
    assert edited == f"---\na: 1\n{after}\n# end\nz: 2\n---\nbody"
    assert dict(read(edited).values) == {"a": 1, "k": value, "z": 2}


def test_new_key_is_appended_with_the_documents_line_endings() -> None:
    text = "\ufeff---\r\nid: a\r\n---\r\nbody"
    edited = frontmatter.set_frontmatter_keys(text, {"b": 1, "c": ["d"]}, "x.md")
    assert edited == "\ufeff---\r\nid: a\r\nb: 1\r\nc:\r\n  - d\r\n---\r\nbody"


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("# Body\n", "---\nid: a\n---\n\n# Body\n"),
        ("\ufeff# Body\r\n", "\ufeff---\r\nid: a\r\n---\r\n\r\n# Body\r\n"),
        ("\nx", "---\nid: a\n---\n\nx"),
        ("", "---\nid: a\n---\n"),
    ],
)
def test_frontmatter_is_added_when_missing(text: str, edited: str) -> None:
    assert frontmatter.set_frontmatter_keys(text, {"id": "a"}, "x.md") == edited


def test_removing_a_key_keeps_the_rest() -> None:
    edited = frontmatter.remove_frontmatter_key(TEXT, "tags", "x.md")
    assert edited == TEXT.replace("tags:\n- a\n- b\n", "")
    assert frontmatter.remove_frontmatter_key(TEXT, "unknown", "x.md") == TEXT


def test_flow_style_frontmatter_is_read_but_not_edited() -> None:
    text = "---\n{id: a, b: c}\n---\n"
    assert dict(read(text).values) == {"id": "a", "b": "c"}
    with pytest.raises(InvalidFrontmatter, match="one key per line"):
        frontmatter.set_frontmatter_keys(text, {"id": "x"}, "x.md")
    with pytest.raises(InvalidFrontmatter):
        frontmatter.set_frontmatter_keys(text, {"new": "x"}, "x.md")


def test_multiline_string_is_not_mistaken_for_keys() -> None:
    text = '---\na: "x\nb: y"\n---\n'
    found = read(text)
    assert (dict(found.values), found.line("b"), found.entries) == ({"a": "x b: y"}, 1, ())
    with pytest.raises(InvalidFrontmatter, match="one key per line"):
        frontmatter.set_frontmatter_keys(text, {"a": "z"}, "x.md")
