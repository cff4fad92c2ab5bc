"""What a command prints: kept within bounds, cleaned for reading, cut to the lines that say most."""

import re
from collections.abc import Iterable, Sequence

FIRST = 64 * 1024  # bytes kept from the start
LAST = 1024 * 1024  # bytes kept from the end
TAIL_LINES = 30
TAIL_CHARACTERS = 4000
_NAMING_LINES = 12  # of a tail, for failures that were named further up
_LINE_CHARACTERS = 500

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")


class CapturedOutput:
    """The first and the last of what is heard, in bounded memory."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._heard = 0
        self._left_out = 0

    def hear(self, stream: str, line: bytes, left_out: int) -> None:
        self._left_out += left_out
        self._heard += len(line) + 1
        if not self._last and len(self._first) + len(line) < FIRST:
            self._first += line + b"\n"
            return
        self._last += line + b"\n"
        if len(self._last) > 2 * LAST:
            del self._last[:-LAST]

    def text(self) -> tuple[str, bool]:
        """Cleaned; and whether that is all there was."""
        last = bytes(self._last[-LAST:])
        missing = self._heard - len(self._first) - len(last) + self._left_out
        if not missing:
            return clean_output(bytes(self._first) + last), True
        return clean_output(bytes(self._first) + b"\n[%d bytes left out]\n" % missing + last), False


def clean_output(data: bytes) -> str:
    """Text without colours and control characters; a line written over shows what it showed last."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("", "\n".join(lines))


def output_tail(text: str, said: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The last lines that say something and the notes of agentd under them; before them, lines that name failures."""
    lines = [_short(line) for line in _without_gaps(text.split("\n")[-10 * TAIL_LINES :])]
    end = lines[-TAIL_LINES:]
    named = [line for line in dict.fromkeys(map(_short, said[: 2 * TAIL_LINES])) if line not in end]
    naming = _fitting(named[:_NAMING_LINES], TAIL_CHARACTERS // 2)
    room = TAIL_CHARACTERS - sum(len(line) + 1 for line in (*naming, *notes))
    last = _fitting(end[: -(TAIL_LINES - len(naming) - len(notes)) - 1 : -1], room)[::-1]
    return "\n".join((*naming, *last, *notes)).strip("\n")


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """As many of the first as there is room for."""
    kept = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _without_gaps(lines: Iterable[str]) -> list[str]:
    """Several empty lines are one."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip() if line.strip() else "")
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _short(line: str) -> str:
    line = line.expandtabs(4).rstrip()
    return line if len(line) <= _LINE_CHARACTERS else f"{line[: _LINE_CHARACTERS - 1]}…"
