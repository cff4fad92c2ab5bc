"""A text under edit by lines: what is not edited keeps its bytes, what is put in stands between blank lines."""

from collections.abc import Sequence

from agentd.documents import BOM, Span
from agentd.merge.units import SpecUnits


class LineEditor:
    """Edits are noted first and written in one pass. Lines are given as they are read, without endings."""

    def __init__(self, sheet: SpecUnits) -> None:
        self._sheet = sheet
        self._newline = sheet.document.newline
        self._lines = list(sheet.document.lines)
        if self._lines:
            self._lines[0] = self._lines[0].removeprefix(BOM)
            self._lines[-1] += "" if self._lines[-1].endswith("\n") else self._newline
        self._cut: set[int] = set()
        self._instead: dict[int, list[str]] = {}
        self._after: dict[int, list[Sequence[str]]] = {}

    def cut(self, span: Span) -> None:
        """Take a unit out; of the blank lines before and after it the more stay."""
        self._cut.update(range(span.start, self._sheet.last_line(span) + 1))

    def replace(self, span: Span, lines: Sequence[str]) -> None:
        """Other lines in place of these; the blank ones at the end of the span stay."""
        last = self._sheet.last_line(span)
        contents = self._sheet.document.contents
        written = [line + self._newline for line in lines]
        if last < span.start and span.start <= len(contents) and written and contents[span.start - 1].strip():
            written.append(self._newline)
        if last < span.start:
            before = self._instead.get(span.start - 1, [self._lines[span.start - 2]])
            self._instead[span.start - 1] = before + written
        else:
            self._instead.update({line: [] for line in range(span.start, last + 1)})
            self._instead[span.start] = written

    def put(self, line: int, lines: Sequence[str]) -> None:
        """A unit after this line and after all that was put there before; 0 is the top."""
        self._after.setdefault(line, []).append(lines)

    def text(self) -> str:
        writer = _LineWriter(self._newline)
        writer.insert(self._after.get(0, ()))
        for number, line in enumerate(self._lines, 1):
            if number in self._cut:
                writer.leave_out()
            else:
                for one in self._instead.get(number, (line,)):
                    writer.keep(one)
            writer.insert(self._after.get(number, ()))
        written = "".join(writer.finished())
        before = self._sheet.document.text
        if before and not before.endswith("\n"):
            written = written.removesuffix(self._newline)
        return BOM + written if before.startswith(BOM) else written


class _LineWriter:
    def __init__(self, newline: str) -> None:
        self._newline = newline
        self._out: list[str] = []
        self._blanks = 0  # how many blank lines it ends with
        self._waiting: list[str] = []
        self._is_leaving = False
        self._needs_blank = False

    def keep(self, line: str) -> None:
        if not line.strip():
            if self._is_leaving:
                self._waiting.append(line)
            else:
                self._add([line], blanks=self._blanks + 1)
            return
        self._settle()
        if self._needs_blank:
            self._part()
        self._needs_blank = False
        self._add([line])

    def leave_out(self) -> None:
        self._settle()
        self._is_leaving = True

    def insert(self, blocks: Sequence[Sequence[str]]) -> None:
        for lines in blocks:
            self._settle()
            self._part()
            self._add([line + self._newline for line in lines])
            self._needs_blank = True

    def finished(self) -> list[str]:
        if self._is_leaving:  # at the end of the text nothing needs a gap before it
            del self._out[len(self._out) - self._blanks :]
            self._out += self._waiting
        return self._out

    def _add(self, lines: Sequence[str], blanks: int = 0) -> None:
        self._out += lines
        self._blanks = blanks

    def _part(self) -> None:
        """A blank line before what comes, if there is none."""
        if self._out and not self._blanks:
            self._add([self._newline], blanks=1)

    def _settle(self) -> None:
        """What was left out had blank lines on both sides; the longer run stays."""
        if self._is_leaving and len(self._waiting) > self._blanks:
            del self._out[len(self._out) - self._blanks :]
            self._add(self._waiting, blanks=len(self._waiting))
        self._is_leaving = False
        self._waiting = []
