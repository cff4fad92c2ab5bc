"""Read a verdict from text, for folders without records and for judges that answered in text.

Only four forms count: a `**Verdict**: X` line, a `## Verdict` section, one ticked box among several, and the status
of a review block. Prose never counts. If forms disagree, or one cannot be parsed, the verdict is UNKNOWN.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from agentd.documents import review_blocks
from agentd.documents import text as base
from agentd.documents.text import Document, InvalidDocument, LineKind, LineScanner, Section, Span
from agentd.domain import ChallengeVerdict, ReviewVerdict

_MARKER = re.compile(r"(?<!`)<review>\s*+(pass|needs[ _-]?revision)\s*+</review>(?!`)", re.IGNORECASE)


class SelfReviewResult(StrEnum):
    PASS = "PASS"  # noqa: S105
    NEEDS_REVISION = "NEEDS_REVISION"
    MISSING = "missing"


def read_self_review(text: str) -> SelfReviewResult:
    """Return the last `<review>PASS</review>` marker in an agent's text, ignoring quotations in fences or code."""
    scanner = LineScanner()
    lines = text.replace("\r\n", "\n").split("\n")
    plain = (line for line in lines if scanner.feed(line) is LineKind.TEXT)
    markers = _MARKER.findall("\n".join(_bare_marker(line) for line in plain))
    if not markers:
        return SelfReviewResult.MISSING
    return SelfReviewResult.PASS if markers[-1].upper() == "PASS" else SelfReviewResult.NEEDS_REVISION


def _bare_marker(line: str) -> str:
    """Unwrap a line that consists only of a marker in code, because such a marker counts."""
    return line.strip("` \t*") if line.lstrip().startswith("`<") else line


AnyVerdict = ChallengeVerdict | ReviewVerdict
Verdicts = type[ChallengeVerdict] | type[ReviewVerdict]
Lines = list[tuple[int, str]]

UNKNOWN = "UNKNOWN"
UNFILLED = "unfilled"
MAX_LENGTH = 200  # characters; anything longer is a sentence

_LINE = re.compile(
    r" {0,3}(?:(?:[-*+]|#{1,6})[ \t]++)?[*_]{0,3}(?:(?:final|overall)[ \t]++)?"
    r"verdict[*_]{0,3}[ \t]*+[:：][*_]{0,3}(.*)",
    re.IGNORECASE,
)
_BOX = re.compile(r" {0,3}[-*+][ \t]++\[([ xX]?)\][ \t]*+(.*)")
_WORD = re.compile(
    r"(approved|needs[\s_-]*+(?:revision|changes|fix)|rejected|major[\s_-]*+issues)(?![^\W_])", re.IGNORECASE
)
_REMARK = re.compile(r"[\s*_`\])!]*+[.:;,(–—]|[*_`]*+\s++-")
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!->))*+(?:-->|$)")
_LETTER = re.compile(r"[^\W_]")
_PLACEHOLDERS = frozenset({"", "tbd", "todo", "pending", "verdict", "your verdict", "to be decided", "or"})
_DOUBT_SIGNS = frozenset("~?¬≠")
_REJECT_SIGNS = frozenset("❌🚫✗✘⛔👎")
_BOLD = "*_ \t"
_HEADINGS = frozenset({"verdict", "final verdict", "overall verdict"})


@dataclass(frozen=True, slots=True)
class VerdictReading:
    """The verdict of a text. If there is none, it is unfilled, or unknown with the reason."""

    verdict: AnyVerdict | None = None
    line: int | None = None
    why: str = ""
    unfilled: bool = False

    @property
    def word(self) -> str:
        return str(self.verdict) if self.verdict else UNFILLED if self.unfilled else UNKNOWN


@dataclass(frozen=True, slots=True)
class _VerdictBox:
    line: int
    ticked: bool
    text: str
    explained: bool


def read_verdict(text: str, kind: str, name: str = "the answer") -> VerdictReading:
    """Read the verdict. `kind` is challenge or review, as in a record."""
    verdicts: Verdicts = ChallengeVerdict if kind == "challenge" else ReviewVerdict
    try:
        document = base.parse_document(text, name)
        reviews = review_blocks.find_blocks(text, name)
        readings = _read_block(review_blocks.latest_block(reviews), verdicts)
        readings += _read_forms(document, [review.span for review in reviews], verdicts)
    except InvalidDocument as error:
        return VerdictReading(line=error.line, why=error.problem)
    return _combine(readings, kind)


def _combine(readings: list[VerdictReading], kind: str) -> VerdictReading:
    """Return the verdict that all filled-in forms share, or the reason why there is none."""
    filled = [reading for reading in readings if not reading.unfilled]
    if not filled:
        return readings[0] if readings else VerdictReading(why=f"the text contains no {kind} verdict")
    for reading in filled:
        if reading.verdict is None:
            return reading
        if reading.verdict is not filled[0].verdict:
            why = f"line {filled[0].line} says {filled[0].verdict}, line {reading.line} says {reading.verdict}"
            return VerdictReading(line=reading.line, why=why)
    return filled[0]


# ---- one phrase


def parse_verdict_phrase(text: str, verdicts: Verdicts, *, template: bool = False) -> VerdictReading:
    """Parse a text as a verdict. APPROVED must stand alone; other verdicts may be followed by a remark.

    With `template`, the remark is the wording of a form, so APPROVED may have one too.
    """
    text = _COMMENT.sub("", text).strip()
    shown = f"'{text[:60]}'"
    if _is_placeholder(text):
        return VerdictReading(unfilled=True, why=f"{shown} is not filled in")
    match = _first_word(text)
    if match is None or len(text) > MAX_LENGTH:
        return VerdictReading(why=f"{shown} is not a verdict; write one of {', '.join(verdicts)}")
    word = re.sub(r"[\s_-]+", "", match[1]).upper()
    known = {str(one).replace("_", ""): one for one in verdicts}
    verdict = known.get("NEEDSCHANGES" if word == "NEEDSFIX" else word)
    if verdict is None:
        return VerdictReading(why=f"{shown} is not a verdict here; write one of {', '.join(verdicts)}")
    passes = verdict in (ChallengeVerdict.APPROVED, ReviewVerdict.APPROVED)
    rest = text[match.end() :]
    remark = _LETTER.search(rest) is not None
    allowed = _REMARK.match(rest) is not None and _WORD.search(rest) is None and (template or not passes)
    if (remark and not allowed) or _DOUBT_SIGNS & set(text) or (passes and _REJECT_SIGNS & set(text)):
        return VerdictReading(why=f"{shown} is more than a verdict; write only {verdict}")
    return VerdictReading(verdict)


def _first_word(text: str) -> re.Match[str] | None:
    """Match the verdict that the text starts with, ignoring leading emoji and punctuation."""
    letter = _LETTER.search(text)
    return None if letter is None or "!" in text[: letter.start()] else _WORD.match(text, letter.start())


def _is_placeholder(text: str) -> bool:
    """Return whether the text is empty, a placeholder such as TBD, in brackets, or a choice of several verdicts."""
    if len(text) > MAX_LENGTH:
        return False
    left, count = _WORD.subn(" ", text)
    words = " ".join(re.findall(r"[^\W_]+", left)).casefold()
    if count:
        return count > 1 and all(word == "or" for word in words.split())
    closed = (text[:1], text[-1:]) in (("[", "]"), ("<", ">"), ("{", "}"))
    return words in _PLACEHOLDERS or closed


# ---- forms


def _read_block(block: review_blocks.ReviewBlock | None, verdicts: Verdicts) -> list[VerdictReading]:
    """Read the status of a block and the forms inside it."""
    if block is None:
        return []
    inside = _read_forms(base.parse_document(block.text, "review"), [], verdicts)
    return [_with_line(reading, block.line) for reading in (parse_verdict_phrase(block.status, verdicts), *inside)]


def _read_forms(document: Document, hidden: list[Span], verdicts: Verdicts) -> list[VerdictReading]:
    """Read verdict lines, sections and boxes, in this order. Skip lines in hidden spans."""
    plain = _visible_lines(document, hidden)
    lines: list[VerdictReading] = []
    boxes: list[_VerdictBox] = []
    for at, (line, content) in enumerate(plain):
        if match := _LINE.match(content):
            lines.append(_read_value(plain, at, len(plain), match[1], verdicts))
        elif box := _parse_box(line, content):
            boxes.append(box)
    used_lines = {reading.line for reading in lines} | {box.line for box in boxes}
    visible = {line for line, _ in plain}
    sections = [one for one in document.sections if one.heading.key in _HEADINGS and one.heading.line in visible]
    return [*lines, *_read_sections(plain, sections, used_lines, verdicts), *_read_boxes(boxes, verdicts)]


def _visible_lines(document: Document, hidden: list[Span]) -> Lines:
    waiting = hidden[::-1]
    found: Lines = []
    for line, content in document.plain_lines(document.span):
        while waiting and line > waiting[-1].end:
            waiting.pop()
        if not waiting or line not in waiting[-1]:
            found.append((line, content))
    return found


def _read_value(plain: Lines, at: int, end: int, value: str, verdicts: Verdicts) -> VerdictReading:
    """Read the value of a verdict line. It may be on a following line, or continue as a sentence."""
    line = plain[at][0]
    if not value.strip(_BOLD):
        at = next((n for n in range(at + 1, min(at + 4, end)) if plain[n][1].strip(_BOLD)), end)
        if at == end or _BOX.match(plain[at][1]) or plain[at][1].startswith("#"):
            return VerdictReading(line=line, unfilled=True, why="the verdict is empty")
        line, value = plain[at]
    if plain[at][1].startswith(("    ", "\t")):
        return VerdictReading(line=line, why="a line indented this far is code")
    reading = _with_line(parse_verdict_phrase(value, verdicts), line)
    number, following = plain[at + 1] if at + 1 < end else (0, "")
    if reading.verdict and number == line + 1 and following.lstrip()[:1].islower():
        return VerdictReading(line=line, why=f"the sentence continues after {reading.verdict}; write only the verdict")
    return reading


def _read_sections(
    plain: Lines, sections: Iterable[Section], used_lines: set[int | None], verdicts: Verdicts
) -> Iterator[VerdictReading]:
    """Read the first line of each section, unless it contains a verdict line or a box."""
    at = 0
    for section in sections:
        while at < len(plain) and plain[at][0] < section.own.start:
            at += 1
        end = at
        while end < len(plain) and plain[end][0] in section.own:
            end += 1
        if any(plain[n][0] in used_lines for n in range(at, end)):
            continue
        first = next((n for n in range(at, end) if plain[n][1].strip()), None)
        if first is None:
            yield VerdictReading(line=section.heading.line, unfilled=True, why="the Verdict section is empty")
        else:
            yield _read_value(plain, first, end, plain[first][1], verdicts)


def _read_boxes(boxes: list[_VerdictBox], verdicts: Verdicts) -> list[VerdictReading]:
    """Accept exactly one ticked box among several. Boxes may have remarks if all of them do."""
    if not boxes:
        return []
    ticked = [box for box in boxes if box.ticked]
    if not ticked:
        return [VerdictReading(line=boxes[0].line, unfilled=True, why="no box is ticked")]
    if len(ticked) > 1 or len(boxes) < 2:
        why = f"{len(ticked)} of {len(boxes)} boxes are ticked; tick exactly one of several"
        return [VerdictReading(line=ticked[0].line, why=why)]
    explained = all(box.explained for box in boxes)
    return [_with_line(parse_verdict_phrase(ticked[0].text, verdicts, template=explained), ticked[0].line)]


def _parse_box(line: int, content: str) -> _VerdictBox | None:
    """Parse a verdict box. `- [x] Approved by the team` is none; `- [x] APPROVED with care` is a doubtful one."""
    match = _BOX.match(content)
    word = _first_word(match[2][:MAX_LENGTH]) if match else None
    if match is None or word is None:
        return None
    readable = any(
        parse_verdict_phrase(match[2], kind, template=True).verdict for kind in (ChallengeVerdict, ReviewVerdict)
    )
    if not readable and not word[1].isupper():
        return None
    explained = _LETTER.search(match[2], word.end()) is not None
    return _VerdictBox(line, match[1] in ("x", "X"), match[2], explained)


def _with_line(reading: VerdictReading, line: int) -> VerdictReading:
    return VerdictReading(reading.verdict, line, reading.why, reading.unfilled)
