"""TAP as node writes it: subtests before the line of their parent, details in a block of YAML under each line."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_OPENED = re.compile(r"( *)# Subtest: (.*)")
_POINT = re.compile(r"( *)(not ok|ok) \d+(?: - (.*))?")
_DETAIL = re.compile(r" *(failureType|type|location): '(.*)'")
_PLACE = re.compile(r"(.+?)(?::\d+)+")
_BY_SUBTESTS = "subtestsFailed"


class Failure(NamedTuple):
    file: str
    path: tuple[str, ...]
    line: str
    is_parent: bool  # it failed by its subtests alone


def failures(lines: Sequence[str]) -> list[Failure]:
    return [one for one in _failed(lines) if not one.is_parent]


def failed_parents(lines: Sequence[str]) -> int:
    return sum(one.is_parent for one in _failed(lines))


def _failed(lines: Sequence[str]) -> Iterator[Failure]:
    opened: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if start := _OPENED.fullmatch(line):
            opened[len(start[1]) // 4 :] = [start[2]]
        elif point := _POINT.fullmatch(line):
            depth = len(point[1]) // 4
            details, at = _details(lines, at, point[1])
            name, _, directive = (point[3] or "").partition(" # ")
            if point[2] == "not ok" and not directive.startswith(("TODO", "SKIP")):
                place = _PLACE.fullmatch(details.get("location", ""))
                is_parent = details.get("failureType") == _BY_SUBTESTS
                yield Failure(place[1] if place else "", (*opened[:depth], name), line.strip(), is_parent)


def _details(lines: Sequence[str], at: int, indent: str) -> tuple[dict[str, str], int]:
    """What stands in the block, and where it ends: at the latest with the text. Texts of others are indented deeper."""
    if at >= len(lines) or lines[at] != f"{indent}  ---":
        return {}, at
    details: dict[str, str] = {}
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line == f"{indent}  ...":
            return details, number + 1
        is_key = line.startswith(f"{indent}  ") and not line.startswith(f"{indent}   ")
        if is_key and (detail := _DETAIL.fullmatch(line)):
            details[detail[1]] = detail[2]
    return details, len(lines)
