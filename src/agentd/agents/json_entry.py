"""Add and remove agentd's entry in a JSON file as text, leaving all other bytes unchanged (pure)."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from agentd.agents.server_entry import NAME, has_entry, newline, remove_once, split_mark
from agentd.domain import Refusal

TABLE = "mcpServers"
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


class JsonMember(NamedTuple):
    """Offsets of `"key": value` in the text: start, start of the value, end."""

    key: str
    start: int
    value: int
    end: int


class JsonObject(NamedTuple):
    """Offsets of an object's braces and members. `owner` is the start of the member whose value it is."""

    owner: int
    open: int
    members: tuple[JsonMember, ...]
    close: int


class JsonStyle(NamedTuple):
    newline: str
    unit: str  # one level of indentation
    colon: str
    comma: str  # between members on one line


def add_json_entry(text: str, entry: Mapping[str, object]) -> str:
    """Add agentd's entry after the other servers, in the style of the file, unless it already exists."""
    mark, body = split_mark(text)
    if not body.strip(_SPACE):
        return text + add_json_entry("{}\n", entry)
    data, root = _parse(body)
    style = _style(body, root)
    servers = _find(root, TABLE)
    if not servers:
        new, wanted = _insert(body, root, TABLE, {NAME: entry}, style), {**data, TABLE: {NAME: entry}}
    elif has_entry(data[TABLE], TABLE):
        return text
    else:
        new = _insert(body, _object(body, servers.value, servers.start), NAME, entry, style)
        wanted = {**data, TABLE: {**data[TABLE], NAME: entry}}
    if not _reads_as(new, wanted):
        raise Refusal("agentd cannot edit it safely")
    return mark + new


def remove_json_entry(text: str, piece: str = "") -> str:
    """Remove agentd's entry. `piece` is the inserted text, if known."""
    mark, body = split_mark(text)
    if not body.strip(_SPACE):
        return text
    data, root = _parse(body)
    servers = _find(root, TABLE)
    if not servers or not has_entry(data[TABLE], TABLE):
        return text
    others = {key: value for key, value in data[TABLE].items() if key != NAME}
    bare = {key: value for key, value in data.items() if key != TABLE}
    wanted = {**bare, TABLE: others}
    restored = remove_once(body, piece)
    if _reads_as(restored, wanted) or (not others and _reads_as(restored, bare)):
        return mark + restored
    if others or (piece and f'"{TABLE}"' not in piece):
        new = _remove(body, _object(body, servers.value, servers.start), NAME)
    else:
        new, wanted = _remove(body, root, TABLE), bare
    if not _reads_as(new, wanted):
        raise Refusal("agentd cannot edit it safely")
    return mark + new


# ---- reading


def _parse(body: str) -> tuple[dict[str, Any], JsonObject]:
    try:
        data = json.loads(body, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        message = f"line {error.lineno} is not plain JSON"
        raise Refusal(f"{message} (agentd does not edit files with comments or trailing commas)") from None
    except (ValueError, RecursionError):
        raise Refusal("it is not plain JSON") from None
    if not isinstance(data, dict):
        raise Refusal("it is not a JSON object")
    start = _after_space(body, 0)
    return data, _object(body, start, start)


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _object(body: str, at: int, owner: int) -> JsonObject:
    """Locate the members of the object at this offset of valid JSON."""
    members = []
    offset = _after_space(body, at + 1)
    while body[offset] != "}":
        key, end = _DECODER.raw_decode(body, offset)
        value = _after_space(body, _after_space(body, end) + 1)
        _, end = _DECODER.raw_decode(body, value)
        members.append(JsonMember(key, offset, value, end))
        offset = _after_space(body, end)
        if body[offset] == ",":
            offset = _after_space(body, offset + 1)
    return JsonObject(owner, at, tuple(members), offset)


def _after_space(body: str, at: int) -> int:
    while at < len(body) and body[at] in _SPACE:
        at += 1
    return at


def _find(owner: JsonObject, key: str) -> JsonMember | None:
    matches = [member for member in owner.members if member.key == key]
    if len(matches) > 1:
        raise Refusal(f"it has {key} more than once")
    return matches[0] if matches else None


def _reads_as(body: str, wanted: Mapping[str, object]) -> bool:
    try:
        return bool((_parse(body)[0] if body.strip(_SPACE) else {}) == wanted)
    except Refusal:
        return False


def _style(body: str, root: JsonObject) -> JsonStyle:
    if not root.members:
        return JsonStyle(newline(body), "  ", ": ", ", ")
    first = root.members[0]
    wide = body[first.value - 1] in _SPACE
    unit = _indent(body, first.start)
    return JsonStyle(newline(body), "  " if unit is None else unit, ": " if wide else ":", ", " if wide else ",")


def _indent(body: str, at: int) -> str | None:
    """Return the indentation at this offset, or None if something precedes it on its line."""
    match = re.search(r"(?:\A|[\r\n])([ \t]*)\Z", body[:at])
    return match[1] if match else None


# ---- writing


def _insert(body: str, owner: JsonObject, key: str, value: Mapping[str, object], style: JsonStyle) -> str:
    if owner.members:
        last = owner.members[-1]
        indent = _indent(body, last.start)
        piece = (
            "," + (style.comma[1:] if indent is None else style.newline + indent) + _member(key, value, indent, style)
        )
        return body[: last.end] + piece + body[last.end :]
    inside = body[owner.open + 1 : owner.close]
    outer = _indent(body, owner.owner)
    if outer is None:
        piece = _member(key, value, None, style)
    else:
        piece = style.newline + outer + style.unit + _member(key, value, outer + style.unit, style)
        if not re.search(r"[\r\n]", inside):
            piece += style.newline + outer
    return body[: owner.open + 1] + piece + body[owner.open + 1 :]


def _member(key: str, value: object, indent: str | None, style: JsonStyle) -> str:
    """Render a member: without indentation on one line, otherwise objects over several lines and lists on one."""
    head = json.dumps(key) + style.colon
    if not isinstance(value, Mapping):
        return head + json.dumps(value, separators=(style.comma, style.colon))
    if indent is None:
        inner = style.comma.join(_member(name, item, None, style) for name, item in value.items())
        return f"{head}{{{inner}}}"
    deeper = indent + style.unit
    lines = [f"{style.newline}{deeper}{_member(name, item, deeper, style)}" for name, item in value.items()]
    return f"{head}{{{','.join(lines)}{style.newline}{indent}}}"


def _remove(body: str, owner: JsonObject, key: str) -> str:
    """Remove a member and its comma; for the only member, everything that `_insert` puts between empty braces."""
    number = [member.key for member in owner.members].index(key)
    member = owner.members[number]
    if number:
        return body[: owner.members[number - 1].end] + body[member.end :]
    if len(owner.members) > 1:
        return body[: member.start] + body[owner.members[1].start :]
    rest = body[member.end : owner.close]
    if re.search(r"[\r\n]", body[owner.open : member.start]):
        rest = rest.removeprefix(newline(body) + (_indent(body, owner.owner) or ""))
    return body[: owner.open + 1] + rest + body[owner.close :]
