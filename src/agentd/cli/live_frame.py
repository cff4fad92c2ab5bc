"""The live view's picture: the board as lines of a given width that fit into a given height."""

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from agentd.cli.progress_view import clean_words
from agentd.domain import format_usd, pluralize
from agentd.engine import ProgressBoard, ProgressCost, ProgressRow, StepAnswer, StepProgress

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TURNS = 8  # of the spinner, a second
_QUIET = 10  # seconds without a sign of life that are worth telling
_RECENT = 2  # done steps that stay when older ones fold
_LOW = 8  # lines below which a screen has room for steps only
_ROOM = 20  # columns that words need beside a step; with fewer they stand below it

_MARKS = {
    StepProgress.DONE: "✓",
    StepProgress.EARLIER: "✓",
    StepProgress.WAITING: "↻",
    StepProgress.FAILED: "✗",
    StepProgress.AHEAD: "·",
}
_COLOURS = {
    StepProgress.DONE: "green",
    StepProgress.RUNNING: "cyan",
    StepProgress.WAITING: "yellow",
    StepProgress.FAILED: "red",
}
_OF_ANSWER = {StepAnswer.NO: ("!", "yellow"), StepAnswer.FAILED: ("✗", "red")}  # of a step that is done
_AS_ASKED = (0, 1)  # exit codes of a run that came to its end, with yes or no
_FADED = (StepProgress.AHEAD, StepProgress.EARLIER)


def running_frame(title: str, board: ProgressBoard, began: float, at: float, width: int, height: int) -> list[Text]:
    """A run under way, never higher than the screen, whose last line is the cursor's."""
    rows = [_harmless(row) for row in board.rows()]
    columns = _FrameColumns(rows, at, width)
    blocks = [columns.lines(row, at) for row in rows]
    foot = Text(_foot(board.spent, at - began, width), "dim")
    if height < _LOW:
        return [*_folded(rows, blocks, max(height - 2, 1)), foot]
    return [_title(title, width), Text(), *_folded(rows, blocks, height - 5), Text(), foot]


def final_frame(title: str, board: ProgressBoard, began: float, at: float, width: int) -> list[Text]:
    """What stays: every step that something happened in, how many a failure kept back, and a line free."""
    rows = [_harmless(row) for row in board.rows()]
    came = [row for row in rows if row.stand is not StepProgress.AHEAD]
    columns = _FrameColumns(came, at, width)
    lines = [line for row in came for line in columns.lines(row, at, is_over=True)]
    if (left := len(rows) - len(came)) and board.exit_code not in _AS_ASKED:
        lines.append(_fold(f"{pluralize(left, 'step')} not begun"))
    foot = Text(_foot(board.spent, at - began, width), "dim")
    return [_title(title, width), Text(), *lines, Text(), foot, Text()]


def _harmless(row: ProgressRow) -> ProgressRow:
    """Nothing an agent said can move the cursor."""
    return replace(row, label=clean_words(row.label), agent=clean_words(row.agent), words=clean_words(row.words))


def _title(title: str, width: int) -> Text:
    return _cut(Text(title, "bold"), width - 1)


class _FrameColumns:
    """Mark, label, time, and words where there is room beside them. The last column of the terminal stays free."""

    def __init__(self, rows: Sequence[ProgressRow], at: float, width: int) -> None:
        self._width = width
        self._time = max([5, *(len(_span(row.elapsed(at))) for row in rows)])
        most = max(width - self._time - 6, 8)
        self._label = min(max((Text(row.label).cell_len for row in rows), default=0), most)
        self._words = width - self._label - self._time - 8

    def lines(self, row: ProgressRow, at: float, is_over: bool = False) -> list[Text]:
        faded = "dim" if row.stand in _FADED else ""
        label = _cut(Text(row.label, "bold" if row.stand is StepProgress.RUNNING else faded), self._label)
        label.pad_right(self._label - label.cell_len)
        time = _span(row.elapsed(at)) if row.stand not in _FADED else ""
        head = Text.assemble("  ", _mark(row, at, is_over), " ", label, "  ", (time.rjust(self._time), "dim"))
        beside, below = _words(row, at, is_over)
        if beside and self._words >= min(_ROOM, len(beside)):
            head.append(f"  {beside}", "dim")
            beside = ""
        head.rstrip()
        return [_cut(head, self._width - 1), *(self._under(row, words) for words in (beside, below) if words)]

    def _under(self, row: ProgressRow, words: str) -> Text:
        style = _COLOURS[row.stand] if row.stand in (StepProgress.WAITING, StepProgress.FAILED) else "dim"
        return _cut(Text(f"      {words}", style), self._width - 1)


def _mark(row: ProgressRow, at: float, is_over: bool) -> tuple[str, str]:
    if row.stand is StepProgress.RUNNING:
        return ("■", "yellow") if is_over else (_SPINNER[int(at * _TURNS) % len(_SPINNER)], "cyan")
    if row.stand is StepProgress.DONE and row.answer in _OF_ANSWER:
        return _OF_ANSWER[row.answer]
    return (_MARKS[row.stand], _COLOURS.get(row.stand, "dim"))


def _words(row: ProgressRow, at: float, is_over: bool) -> tuple[str, str]:
    """What stands beside a step, and below it."""
    tries = f"attempt {row.attempt}" if row.attempt > 1 else ""
    if row.stand is StepProgress.RUNNING and is_over:
        return "interrupted", ""
    if row.stand is StepProgress.RUNNING:
        quiet = f"quiet for {_span(at - row.heard)}" if row.agent and at - row.heard >= _QUIET else ""
        return _listed(tries, row.agent), _listed(quiet, row.words)
    if row.stand is StepProgress.WAITING:
        wait = "" if is_over else f"again in {max(row.again - at, 0):.0f} s"
        return _listed(tries, wait), row.words
    if row.stand is StepProgress.FAILED:
        return tries, row.words
    return _listed(row.words, f"{row.attempt} attempts" if row.attempt > 1 else ""), ""


def _listed(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _folded(rows: Sequence[ProgressRow], blocks: Sequence[list[Text]], room: int) -> list[Text]:
    """The steps around the one at work; what is further away becomes a count."""
    focus = max((place for place, row in enumerate(rows) if row.stand is not StepProgress.AHEAD), default=0)
    start, end = 0, len(blocks)

    def needed() -> int:
        return sum(map(len, blocks[start:end])) + (start > 0) + (end < len(blocks))

    while needed() > room and start < focus - _RECENT:
        start += 1
    while needed() > room and end > focus + 1:
        end -= 1
    while needed() > room and start < focus:
        start += 1
    above = [_fold(f"{pluralize(start, 'step')} done")] if start else []
    below = [_fold(f"{len(blocks) - end} more")] if end < len(blocks) else []
    lines = [line for block in blocks[start:end] for line in block]
    whole = [*above, *lines, *below]
    return whole if len(whole) <= room else lines[:room]


def _fold(words: str) -> Text:
    return Text(f"  … {words}", "dim")


def _foot(spent: ProgressCost, elapsed: float, width: int) -> str:
    """Tokens, money and time, as much of it as there is room for; the time always."""
    time, money = _span(elapsed), _money(spent)
    whole = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    short = f"{_compact(spent.tokens_in)} in, {_compact(spent.tokens_out)} out"
    choices = [(whole, money, time), (short, money, time), (money, time), (money.partition(",")[0], time)]
    if not (spent.tokens_in or spent.tokens_out):
        choices = choices[2:]  # no agent has told any
    lines = ["  " + " · ".join(parts) for parts in choices] if spent.calls else []
    return next((line for line in lines if len(line) < width), f"  {time}")


def _money(spent: ProgressCost) -> str:
    words = [format_usd(spent.cost) if spent.cost or not spent.without_price else "cost unknown"]
    if spent.total - spent.cost > 0.000001:
        words.append(f"{format_usd(spent.total)} in all")
    if spent.without_price and spent.cost:
        words.append(f"{pluralize(spent.without_price, 'call')} without a known price")
    return ", ".join(words)


def _compact(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _span(seconds: float) -> str:
    """As a clock shows it, so that it does not change its shape every second: `0:38`, `1:02:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _cut(text: Text, width: int) -> Text:
    text.truncate(max(width, 1), overflow="ellipsis")
    return text
