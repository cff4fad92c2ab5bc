"""What a person sees: a small terminal that obeys what programs send, and keeps what scrolled away."""

import re
from dataclasses import dataclass, field
from unicodedata import combining, east_asian_width

_TOKEN = re.compile(
    r"\x1b\[([?]?)([\d;]*)([@-~])|\x1b[()][0-9A-Z]|\x1b[=>78]|\x1b\].*?(?:\x07|\x1b\\)|(\x1b)|(.)", re.DOTALL
)


@dataclass
class Row:
    cells: list[str] = field(default_factory=list)
    goes_on: bool = False  # the terminal broke the line by itself

    def put(self, column: int, char: str) -> None:
        self.cells += [" "] * (column - len(self.cells))
        self.cells[column : column + 1] = [char]

    @property
    def text(self) -> str:
        return "".join(self.cells).rstrip()


@dataclass
class Display:
    """Rows from the first ever written; the last `height` of them are on the screen."""

    width: int
    height: int
    rows: list[Row] = field(default_factory=lambda: [Row()])
    row: int = 0
    column: int = 0
    wraps: bool = True
    is_whole: bool = True  # no picture is half drawn
    is_bright: bool = False  # some colour, boldness or dimness was seen
    strange: list[str] = field(default_factory=list)  # what it does not understand
    asked: int = 0  # times the program wanted to know where the cursor is
    _left: str = ""

    @property
    def top(self) -> int:
        return max(len(self.rows) - self.height, 0)

    @property
    def screen(self) -> list[str]:
        return [row.text for row in self.rows[self.top :]]

    @property
    def lines(self) -> list[str]:
        """With all that scrolled away."""
        return [row.text for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        text, self._left = self._left + text, ""
        cut = re.search(r"\x1b(\[[?\d;]*|\][^\x07\x1b]*)?$", text)
        if cut:
            text, self._left = text[: cut.start()], text[cut.start() :]
        for match in _TOKEN.finditer(text):
            private, numbers, final, lone, char = match.groups()
            if final:
                self._obey(private, numbers, final)
            elif lone:
                self.strange.append(repr(match[0]))
            elif char:
                self._type(char)

    def resize(self, width: int, height: int) -> None:
        """As most terminals do it: lines that the terminal broke are joined, then broken anew."""
        old, place = self.rows, (self.row, self.column)
        self.rows, self.width, self.height = [], width, height
        joined: list[str] = []
        for number, row in enumerate(old):
            offset = len(joined)
            joined += row.cells
            if number == place[0]:
                mark = offset + place[1]
                self.row, self.column = len(self.rows) + mark // width, mark % width
            if row.goes_on:
                continue
            pieces = [joined[start : start + width] for start in range(0, len(joined), width)] or [[]]
            self.rows += [Row(piece, number < len(pieces) - 1) for number, piece in enumerate(pieces)]
            joined = []

    def _type(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
        elif char == "\b":
            self.column = max(self.column - 1, 0)
        elif char < " " or "\x7f" <= char < "\xa0":
            if char != "\x07":
                self.strange.append(repr(char))
        elif combining(char):
            pass
        else:
            self._put(char, 2 if east_asian_width(char) in "WF" else 1)

    def _put(self, char: str, cells: int) -> None:
        if self.column + cells > self.width:
            if not self.wraps:
                self.column = self.width - cells
            else:
                self.rows[self.row].goes_on = True
                self._down()
                self.column = 0
        self.rows[self.row].put(self.column, char)
        if cells == 2:
            self.rows[self.row].put(self.column + 1, "")
        self.column += cells

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(Row())

    def _obey(self, private: str, numbers: str, final: str) -> None:
        first = int(numbers.split(";")[0] or 0)
        count = max(first, 1)
        row = self.rows[self.row]
        match final:
            case "A":
                self.row = max(self.row - count, self.top)
            case "B":
                self.row = min(self.row + count, len(self.rows) - 1)
            case "C":
                self.column = min(self.column + count, self.width - 1)
            case "D":
                self.column = max(self.column - count, 0)
            case "K":
                del row.cells[0 if first == 2 else self.column :]
                row.goes_on = False
            case "J":
                del row.cells[self.column :], self.rows[self.row + 1 :]
                row.goes_on = False
            case "m":
                self.is_bright |= numbers not in ("", "0")
            case "n":
                self.asked += 1
            case "h" | "l" if private:
                self.wraps = final == "h" if first == 7 else self.wraps
                self.is_whole = final == "l" if first == 2026 else self.is_whole
            case _:
                self.strange.append(f"CSI {private}{numbers}{final}")
