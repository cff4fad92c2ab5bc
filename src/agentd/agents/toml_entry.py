"""Add and remove agentd's entry in a TOML file, keeping comments, order and layout (pure)."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentd.agents.server_entry import (
    ENTRY,
    NAME,
    find_insertion,
    has_entry,
    newline,
    remove_once,
    split_mark,
)
from agentd.domain import Refusal

TABLE = "mcp_servers"
_LINES = (f"[{TABLE}.{NAME}]", 'command = "agentd"', 'args = ["mcp"]')
_INLINE = '{command = "agentd", args = ["mcp"]}'
_HEADER = re.compile(rf"""[ \t]*\[[ \t]*(["']?){TABLE}\1[ \t]*\.[ \t]*(["']?){NAME}\2[ \t]*[.\]]""")


def add_toml_entry(text: str) -> str:
    """Add agentd's entry as the last table, unless it already exists."""
    mark, body = split_mark(text)
    data = _parse(body)
    servers = data.get(TABLE, {})
    if has_entry(servers, TABLE):
        return text
    wanted = {**data, TABLE: {**servers, NAME: ENTRY}}
    for new in _with_candidates(body):
        if _reads_as(new, wanted) and find_insertion(body, new):
            return mark + new
    raise Refusal(f"an entry cannot be added to its {TABLE} without rewriting it")


def remove_toml_entry(text: str, piece: str = "") -> str:
    """Remove agentd's entry. `piece` is the inserted text, if known."""
    mark, body = split_mark(text)
    data = _parse(body)
    if not has_entry(data.get(TABLE, {}), TABLE):
        return text
    others = {key: value for key, value in data[TABLE].items() if key != NAME}
    bare = {key: value for key, value in data.items() if key != TABLE}
    for new in _without_candidates(body, piece):
        if _reads_as(new, {**bare, TABLE: others}) or (not others and _reads_as(new, bare)):
            return mark + new
    raise Refusal("agentd cannot edit it safely")


def _with_candidates(body: str) -> Iterator[str]:
    """Yield candidate texts, most likely first. The caller checks what each one parses to."""
    yield _append_table(body)
    inline = _edit_inline(body, _set_entry)
    yield inline
    yield inline.replace(_INLINE + "}", _INLINE + " }")  # tomlkit drops the space before the closing brace


def _without_candidates(body: str, piece: str) -> Iterator[str]:
    yield remove_once(body, piece)
    yield _without_blocks(body)
    inline = _edit_inline(body, lambda servers: servers.remove(NAME))
    if find_insertion(inline, body):
        yield inline


def _parse(body: str) -> dict[str, Any]:
    try:
        return tomllib.loads(body, parse_float=str)  # as text, because NaN is not equal to itself
    except (ValueError, RecursionError) as error:
        line = re.search(r"at line \d+", str(error))
        raise Refusal(f"it is not valid TOML ({line[0]})" if line else "it is not valid TOML") from None


def _reads_as(body: str, wanted: Mapping[str, object]) -> bool:
    try:
        return _parse(body) == wanted
    except Refusal:
        return False


def _append_table(body: str) -> str:
    """Append the table after a blank line. Do not add a missing final newline."""
    end = newline(body)
    block = end.join(_LINES)
    if not body:
        return block + end
    return body + end + block + end if body.endswith("\n") else body + end + end + block


def _without_blocks(body: str) -> str:
    """Remove agentd's table, its subtables and the blank line before. Trailing comments belong to what follows."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", body)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        if not (_HEADER.match(lines[at]) and _is_statement(lines, at)):
            kept.append(lines[at])
            at += 1
            continue
        start, at = at, at + 1
        while at < len(lines) and not (lines[at].lstrip().startswith("[") and _is_statement(lines, at)):
            at += 1
        while at - 1 > start and re.match(r"\s*(#|$)", lines[at - 1]):
            at -= 1
        if kept and not kept[-1].strip():
            kept.pop()
        if at == len(lines) and not body.endswith("\n") and kept:
            kept[-1] = re.sub(r"\r?\n\Z", "", kept[-1])
    return "".join(kept)


def _is_statement(lines: Sequence[str], at: int) -> bool:
    """Return whether the line starts a statement, rather than continuing a multi-line string or list."""
    try:
        tomllib.loads("".join(lines[:at]))
    except (ValueError, RecursionError):
        return False
    return True


def _set_entry(servers: Any) -> None:
    import tomlkit  # deferred: rarely needed, and slow to load

    servers[NAME] = tomlkit.value(_INLINE)


def _edit_inline(body: str, change: Callable[[Any], None]) -> str:
    """Edit servers written as an inline table or with dotted keys. Return the text unchanged if tomlkit fails."""
    import tomlkit  # deferred: rarely needed, and slow to load
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(body)
        change(document[TABLE])
        return tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, KeyError, TypeError):
        return body
