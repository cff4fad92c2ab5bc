"""A terminal as a picture: what the real program draws on a pseudo-terminal, with its colours, as an SVG of its own."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from program import AGENTD
from terminal import Display, start_on_terminal

WIDTH, _HEIGHT = 104, 60
_MARGIN = 1  # columns and rows around
_COLOURS = "484f58 ff7b72 56d364 e3b341 79c0ff d2a8ff 56d4dd c9d1d9"
_BRIGHT = "6e7681 ffa198 7ee787 f2cc60 a5d6ff e2c5ff 76e3ea f0f6fc"
# Fonts that a machine has: a picture asks nobody for anything.
_FORM = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}}
.{unique_id}-title {{ font: 16px ui-sans-serif, system-ui, "Helvetica Neue", "DejaVu Sans", sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def _colours(words: str) -> list[tuple[int, int, int]]:
    return [(red, green, blue) for red, green, blue in map(bytes.fromhex, words.split())]


_THEME = TerminalTheme((22, 27, 34), (201, 209, 217), _colours(_COLOURS), _colours(_BRIGHT))


class Cell(str):
    """A letter, and how it is painted: the numbers that a terminal was sent since all was plain."""

    paint: str

    def __new__(cls, letter: str, paint: str) -> "Cell":
        made = super().__new__(cls, letter)
        made.paint = paint
        return made


@dataclass
class Painted(Display):
    """A terminal that also remembers colours."""

    _paint: str = ""

    @property
    def cells(self) -> list[list[str]]:
        return [list(row.cells) for row in self.rows]

    def _put(self, char: str, cells: int) -> None:
        assert cells == 1, f"{char!r} is wide, and a picture has no room for that"
        super()._put(Cell(char, self._paint), cells)

    def _obey(self, private: str, numbers: str, final: str) -> None:
        super()._obey(private, numbers, final)
        if final == "m":
            self._paint = "" if numbers in ("", "0") else f"{self._paint};{numbers}".lstrip(";")


@dataclass
class Picture:
    title: str
    code: int
    rows: list[list[str]] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def begin(self, words: str) -> None:
        """Leave out what is above the line that begins so."""
        del self.rows[: next(number for number, line in enumerate(self.lines) if line.startswith(words))]

    def steady(self, pattern: str, instead: Callable[[re.Match[str]], str]) -> None:
        """What would be different the next time."""
        for row in self.rows:
            for found in reversed(list(re.finditer(pattern, "".join(row)))):
                paint = _paint(row[found.start()])
                row[found.start() : found.end()] = [Cell(letter, paint) for letter in instead(found)]

    def svg(self, name: str) -> str:
        """`name` sets its classes apart, should two pictures come into one page."""
        wide = WIDTH + 2 * _MARGIN
        console = Console(record=True, width=wide, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(Padding(_text(self.rows), _MARGIN), highlight=False)
        drawn = console.export_svg(title=self.title, theme=_THEME, code_format=_FORM, unique_id=name)
        return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines() if line.strip())


def taken(folder: Path, env: dict[str, str], *arguments: str) -> Picture:
    """Of a whole command of agentd, in that folder, when it has ended."""
    person = start_on_terminal([AGENTD, *arguments], env, WIDTH, _HEIGHT, cwd=folder)
    person.display = painted = Painted(WIDTH, _HEIGHT)
    code = person.waits()
    assert painted.strange == [], painted.strange
    return Picture(" ".join(("agentd", *arguments)), code, painted.cells)


def _paint(cell: str) -> str:
    return cell.paint if isinstance(cell, Cell) else ""


def _text(rows: Sequence[Sequence[str]]) -> Text:
    lines = ("".join(f"\x1b[0;{paint}m{''.join(run)}" for paint, run in groupby(row, _paint)) for row in rows)
    return Text.from_ansi("\n".join(lines).rstrip(), no_wrap=True)
