"""Our entry in JSON and TOML text: everything else keeps its characters, and the way back is exact."""

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentd.agents import json_entry, toml_entry
from agentd.agents.server_entry import find_insertion
from agentd.domain.errors import Refusal

ENTRY = {"command": "agentd", "args": ["mcp"]}
BOM = "\ufeff"


def piece_of(old: str, new: str) -> str:
    put = find_insertion(old, new)
    assert put, "more than one place changed"
    return put[1]


# JSON

SPACES = st.text(" \t\r\n", max_size=3)
KEYS = st.text(max_size=6).filter(lambda key: key not in ("agentd", "mcpServers"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
SERVERS = st.dictionaries(KEYS, st.fixed_dictionaries({"command": st.text(max_size=5)}), max_size=3)


@st.composite
def json_objects(draw: st.DrawFn) -> dict[str, Any]:
    members = list(draw(st.dictionaries(KEYS, VALUES, max_size=4)).items())
    if draw(st.booleans()):
        members.insert(draw(st.integers(0, len(members))), ("mcpServers", draw(SERVERS)))
    return dict(members)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """As editors and programs write it, and as nobody does: any white space between any two tokens."""
    data = draw(json_objects())
    if draw(st.booleans()):
        text = written_oddly(draw, data)
    else:
        indent = draw(st.sampled_from([None, 0, 1, 2, 4, 8, "\t"]))
        separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ": ")]))
        text = json.dumps(data, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
        text = (text + draw(st.sampled_from(["", "\n", "\n\n"]))).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", BOM])) + text


def written_oddly(draw: st.DrawFn, value: Any) -> str:
    def spaced(text: str) -> str:
        return draw(SPACES) + text + draw(SPACES)

    if isinstance(value, dict):
        inner = ",".join(
            spaced(json.dumps(key)) + ":" + written_oddly(draw, one) for key, one in value.items()
        ) or draw(SPACES)
        return spaced("{" + inner + "}")
    return spaced(json.dumps(value))


def loaded(text: str) -> Any:
    return json.loads(text.removeprefix(BOM))


@given(json_texts())
def test_json_entry_is_added_and_removed_exactly(text: str) -> None:
    new = json_entry.add_json_entry(text, ENTRY)
    data = loaded(text)
    assert loaded(new) == {**data, "mcpServers": {**data.get("mcpServers", {}), "agentd": ENTRY}}
    assert list(loaded(new)["mcpServers"])[-1] == "agentd", "the others keep their order"
    piece = piece_of(text, new)
    assert json_entry.remove_json_entry(new, piece) == text
    assert json_entry.add_json_entry(new, ENTRY) == new, "a second time nothing changes"


@given(json_texts())
def test_json_entry_is_removed_without_a_record(text: str) -> None:
    data = loaded(text)
    # between empty braces the text alone cannot tell what was there
    assume(data.get("mcpServers") != {} and (data or not set("\r\n") & set(text.strip())))
    assert json_entry.remove_json_entry(json_entry.add_json_entry(text, ENTRY)) == text


@given(json_texts(), VALUES)
def test_json_keeps_later_additions(text: str, value: Any) -> None:
    """A member put first and a server put after ours stay; only our entry goes."""
    data = loaded(text)
    assume("added" not in data and "later" not in data.get("mcpServers", {}))
    new = json_entry.add_json_entry(text, ENTRY)
    piece = piece_of(text, new)
    added = new.replace("{", '{"added":' + json.dumps(value) + ",", 1)
    rest = json_entry.remove_json_entry(added, piece)
    assert rest.startswith(added[: added.index("{") + 10]) and loaded(rest) == {**data, "added": value}
    both = re.sub(r'"agentd"\s*:\s*\{[^}]*\}', lambda ours: ours[0] + ', "later": {}', added, count=1)
    servers = {**data.get("mcpServers", {}), "later": {}}
    for known in (piece, ""):
        assert loaded(json_entry.remove_json_entry(both, known)) == {**data, "added": value, "mcpServers": servers}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n  "a": 1\n}\n',
            '{\n  "a": 1,\n  "mcpServers": {\n    "agentd": {\n      "command": "agentd",\n'
            '      "args": ["mcp"]\n    }\n  }\n}\n',
        ),
        (
            '{\n\t"mcpServers": {\n\t\t"x": {}\n\t},\n\t"a": 1\n}',
            '{\n\t"mcpServers": {\n\t\t"x": {},\n\t\t"agentd": {\n\t\t\t"command": "agentd",\n'
            '\t\t\t"args": ["mcp"]\n\t\t}\n\t},\n\t"a": 1\n}',
        ),
        (
            '{\r\n    "mcpServers": {}\r\n}\r\n',
            '{\r\n    "mcpServers": {\r\n        "agentd": {\r\n            "command": "agentd",\r\n'
            '            "args": ["mcp"]\r\n        }\r\n    }\r\n}\r\n',
        ),
        ('{"a":1}', '{"a":1,"mcpServers":{"agentd":{"command":"agentd","args":["mcp"]}}}'),
        ('{"a": 1}', '{"a": 1, "mcpServers": {"agentd": {"command": "agentd", "args": ["mcp"]}}}'),
        (
            "",
            '{\n  "mcpServers": {\n    "agentd": {\n      "command": "agentd",\n      "args": ["mcp"]\n    }\n  }\n}\n',
        ),
    ],
    ids=["two spaces", "tabs", "CRLF and empty", "compact", "one line", "nothing"],
)
def test_json_entry_follows_the_style_of_the_file(before: str, after: str) -> None:
    assert json_entry.add_json_entry(before, ENTRY) == after
    assert json_entry.remove_json_entry(after, piece_of(before, after)) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  // mine\n  "a": 1\n}', "line 2 is not plain JSON"),
        ('{"a": 1,}', "trailing commas"),
        ('{"a": ', "not plain JSON"),
        ('{"a": NaN}', "not plain JSON"),
        ("[" * 100_000, "not plain JSON"),
        ("[1]", "not a JSON object"),
        ('{"mcpServers": []}', "not a table of servers"),
        ('{"mcpServers": null}', "not a table of servers"),
        ('{"mcpServers": {}, "mcpServers": {}}', "more than once"),
        ('{"mcpServers": {"agentd": {"command": "other", "args": ["mcp"]}}}', "starts something else"),
        ('{"mcpServers": {"agentd": 3}}', "starts something else"),
    ],
)
def test_json_that_cannot_be_edited_safely_is_refused(text: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        json_entry.add_json_entry(text, ENTRY)


def test_entry_customized_by_the_user_is_still_recognized() -> None:
    text = '{"mcpServers": {"agentd": {"command": "agentd", "args": ["mcp"], "timeout": 9}, "x": {}}}'
    assert json_entry.add_json_entry(text, ENTRY) == text
    assert json_entry.remove_json_entry(text) == '{"mcpServers": {"x": {}}}'


def test_empty_servers_table_is_kept_even_if_our_entry_was_customized() -> None:
    old = '{\n  "mcpServers": {}\n}\n'
    new = json_entry.add_json_entry(old, ENTRY)
    refined = new.replace('["mcp"]', '["mcp"], "timeout": 9')
    assert json_entry.remove_json_entry(refined, piece_of(old, new)) == old


# TOML

LINES = st.sampled_from(
    [
        "",
        "  ",
        "# a comment",
        "\t# one more  ",
        'text = "a # b"  # why',
        "number = 1_000",
        "odd = nan",
        'many = [\n  "a",  # first\n  "b",\n]',
        'page = """\n[mcp_servers.agentd]\nnot a table\n"""',
        "when = 1979-05-27T07:32:00Z",
        'point = { x = 1, y = "]" }',
    ]
)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    blocks = [draw(st.lists(LINES, max_size=4, unique=True))]
    heads = ["[model]", "[[rule]]", "[mcp_servers.other]", "[ 'mcp_servers' . two ]  # x", "[mcp_servers]"]
    for head in draw(st.lists(st.sampled_from(heads), max_size=4, unique=True)):
        blocks.append([head, *draw(st.lists(LINES, max_size=3, unique=True))])
    text = "\n".join(line for block in blocks for line in block)
    text = (text + draw(st.sampled_from(["", "\n", "\n\n"]))).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    try:
        assume(isinstance(tomllib.loads(text).get("mcp_servers", {}), dict))
    except tomllib.TOMLDecodeError:
        assume(False)
    return draw(st.sampled_from(["", BOM])) + text


def toml_loaded(text: str) -> Any:
    return tomllib.loads(text.removeprefix(BOM), parse_float=str)


@given(toml_texts())
def test_toml_entry_is_added_and_removed_exactly(text: str) -> None:
    new = toml_entry.add_toml_entry(text)
    data = toml_loaded(text)
    assert toml_loaded(new) == {**data, "mcp_servers": {**data.get("mcp_servers", {}), "agentd": ENTRY}}
    assert toml_entry.remove_toml_entry(new, piece_of(text, new)) == text
    assert toml_entry.remove_toml_entry(new) == text, "the text alone tells enough"
    assert toml_entry.add_toml_entry(new) == new, "a second time nothing changes"


@given(toml_texts(), st.lists(LINES, max_size=3, unique=True))
def test_toml_keeps_later_additions(text: str, lines: list[str]) -> None:
    new = toml_entry.add_toml_entry(text)
    piece = piece_of(text, new)
    tail = "\n" * (not new.endswith("\n")) + "\n# theirs\n[added]\n" + "\n".join(lines)
    rest = toml_entry.remove_toml_entry(new + tail, piece)
    assert rest.endswith(tail.lstrip("\n")) and rest.startswith(text)
    assert toml_loaded(rest) == {**toml_loaded(text), "added": toml_loaded("\n".join(lines))}


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }  # mine\nmodel = "m"\n',
        'mcp_servers = {}\nmodel = "m"',
        'mcp_servers.other.command = "x"\n# end\n',
    ],
    ids=["inline", "empty inline", "dotted"],
)
def test_toml_servers_in_other_formats_are_supported(text: str) -> None:
    new = toml_entry.add_toml_entry(text)
    assert toml_loaded(new)["mcp_servers"]["agentd"] == ENTRY
    assert toml_entry.remove_toml_entry(new, piece_of(text, new)) == text


def test_toml_subtables_of_our_entry_are_removed_and_other_comments_kept() -> None:
    text = """\
model = "m"  # best

# ours
[mcp_servers."agentd"] # here
args = [
  "mcp",
]
command = 'agentd'
startup_timeout_sec = 20

# about other
[mcp_servers.other]
command = "x"

[mcp_servers.agentd.env]
A = "1"
# the end
"""
    assert toml_entry.remove_toml_entry(text) == (
        'model = "m"  # best\n\n# ours\n\n# about other\n[mcp_servers.other]\ncommand = "x"\n# the end\n'
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a\n", "not valid TOML"),
        ("a = 1\na = 2\n", "not valid TOML"),
        ("mcp_servers = 3\n", "not a table of servers"),
        ("[[mcp_servers]]\n", "not a table of servers"),
        ('[mcp_servers.agentd]\ncommand = "other"\n', "starts something else"),
        ("[mcp_servers]\nagentd = 1\n", "starts something else"),
    ],
)
def test_toml_that_cannot_be_edited_safely_is_refused(text: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        toml_entry.add_toml_entry(text)
