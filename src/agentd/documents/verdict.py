"""A verdict read from text: for folders without records, and for a judge that answered in text.

Only four forms say a verdict: a `**Verdict**: X` line, a `## Verdict` section, one ticked box among several,
a review block's status. Prose never does. When forms disagree, or one cannot be read, the verdict is UNKNOWN.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentd.documents import blocks
from agentd.documents import text as base
from agentd.documents.text import BadDocument, Document, Section, Span
from agentd.domain.terms import ChallengeVerdict, ReviewVerdict

AnyVerdict = ChallengeVerdict | ReviewVerdict
Verdicts = type[ChallengeVerdict] | type[ReviewVerdict]
Lines = list[tuple[int, str]]

UNKNOWN = "UNKNOWN"
UNFILLED = "unfilled"
LONGEST = 200  # characters; what is longer is a sentence

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
_IN_DOUBT = frozenset("~?¬≠")
_AGAINST = frozenset("❌🚫✗✘⛔👎")
_BOLD = "*_ \t"
_HEADINGS = frozenset({"verdict", "final verdict", "overall verdict"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says. Without a verdict it is unfilled, or unknown with the reason."""

    verdict: AnyVerdict | None = None
    line: int | None = None
    why: str = ""
    unfilled: bool = False

    @property
    def word(self) -> str:
        return str(self.verdict) if self.verdict else UNFILLED if self.unfilled else UNKNOWN


@dataclass(frozen=True, slots=True)
class _Box:
    line: int
    ticked: bool
    text: str
    explained: bool


def read(text: str, kind: str, name: str = "the answer") -> Reading:
    """`kind` is challenge or review, as in a record."""
    verdicts: Verdicts = ChallengeVerdict if kind == "challenge" else ReviewVerdict
    try:
        document = base.parse(text, name)
        reviews = blocks.find(text, name)
        found = _in_block(blocks.latest(reviews), verdicts)
        found += _forms(document, [review.span for review in reviews], verdicts)
    except BadDocument as error:
        return Reading(line=error.line, why=error.problem)
    return _agreed(found, kind)


def _agreed(found: list[Reading], kind: str) -> Reading:
    """One verdict when all filled forms say the same."""
    filled = [one for one in found if not one.unfilled]
    if not filled:
        return found[0] if found else Reading(why=f"no verdict of a {kind} is in the text")
    for one in filled:
        if one.verdict is None:
            return one
        if one.verdict is not filled[0].verdict:
            why = f"line {filled[0].line} says {filled[0].verdict}, line {one.line} says {one.verdict}"
            return Reading(line=one.line, why=why)
    return filled[0]


# ---- one phrase


def phrase(text: str, verdicts: Verdicts, *, template: bool = False) -> Reading:
    """The verdict that the text is. APPROVED stands alone; another verdict may have a remark behind it.

    With `template` a remark is the wording of a form, so APPROVED may have one too.
    """
    text = _COMMENT.sub("", text).strip()
    shown = f"'{text[:60]}'"
    if _is_placeholder(text):
        return Reading(unfilled=True, why=f"{shown} is not filled in")
    match = _first_word(text)
    if match is None or len(text) > LONGEST:
        return Reading(why=f"{shown} is no verdict; write one of {', '.join(verdicts)}")
    word = re.sub(r"[\s_-]+", "", match[1]).upper()
    known = {str(one).replace("_", ""): one for one in verdicts}
    verdict = known.get("NEEDSCHANGES" if word == "NEEDSFIX" else word)
    if verdict is None:
        return Reading(why=f"{shown} is no verdict here; write one of {', '.join(verdicts)}")
    passes = verdict in (ChallengeVerdict.APPROVED, ReviewVerdict.APPROVED)
    rest = text[match.end() :]
    remark = _LETTER.search(rest) is not None
    allowed = _REMARK.match(rest) is not None and _WORD.search(rest) is None and (template or not passes)
    if (remark and not allowed) or _IN_DOUBT & set(text) or (passes and _AGAINST & set(text)):
        return Reading(why=f"{shown} is more than a verdict; write {verdict} alone")
    return Reading(verdict)


def _first_word(text: str) -> re.Match[str] | None:
    """The verdict that the text starts with, emoji and punctuation before it aside."""
    letter = _LETTER.search(text)
    return None if letter is None or "!" in text[: letter.start()] else _WORD.match(text, letter.start())


def _is_placeholder(text: str) -> bool:
    """Empty, a word for later, something in brackets, or several verdicts to choose from."""
    if len(text) > LONGEST:
        return False
    left, count = _WORD.subn(" ", text)
    words = " ".join(re.findall(r"[^\W_]+", left)).casefold()
    if count:
        return count > 1 and all(word == "or" for word in words.split())
    closed = (text[:1], text[-1:]) in (("[", "]"), ("<", ">"), ("{", "}"))
    return words in _PLACEHOLDERS or closed


# ---- the forms


def _in_block(block: blocks.ReviewBlock | None, verdicts: Verdicts) -> list[Reading]:
    """The status of the block that counts, and what stands inside it."""
    if block is None:
        return []
    inside = _forms(base.parse(block.text, "review"), [], verdicts)
    return [_at(reading, block.line) for reading in (phrase(block.status, verdicts), *inside)]


def _forms(document: Document, hidden: list[Span], verdicts: Verdicts) -> list[Reading]:
    """Lines, sections and boxes, in this order; lines in hidden spans are stepped over."""
    plain = _visible(document, hidden)
    lines: list[Reading] = []
    boxes: list[_Box] = []
    for at, (line, content) in enumerate(plain):
        if match := _LINE.match(content):
            lines.append(_value(plain, at, len(plain), match[1], verdicts))
        elif box := _box(line, content):
            boxes.append(box)
    said = {reading.line for reading in lines} | {box.line for box in boxes}
    seen = {line for line, _ in plain}
    sections = [one for one in document.sections if one.heading.key in _HEADINGS and one.heading.line in seen]
    return [*lines, *_sections(plain, sections, said, verdicts), *_boxes(boxes, verdicts)]


def _visible(document: Document, hidden: list[Span]) -> Lines:
    waiting = hidden[::-1]
    found: Lines = []
    for line, content in document.plain(document.span):
        while waiting and line > waiting[-1].end:
            waiting.pop()
        if not waiting or line not in waiting[-1]:
            found.append((line, content))
    return found


def _value(plain: Lines, at: int, end: int, value: str, verdicts: Verdicts) -> Reading:
    """The value of a line; the next line may hold it, or go on with the sentence."""
    line = plain[at][0]
    if not value.strip(_BOLD):
        at = next((n for n in range(at + 1, min(at + 4, end)) if plain[n][1].strip(_BOLD)), end)
        if at == end or _BOX.match(plain[at][1]) or plain[at][1].startswith("#"):
            return Reading(line=line, unfilled=True, why="the verdict is empty")
        line, value = plain[at]
    if plain[at][1].startswith(("    ", "\t")):
        return Reading(line=line, why="a line this far indented is code")
    reading = _at(phrase(value, verdicts), line)
    number, following = plain[at + 1] if at + 1 < end else (0, "")
    if reading.verdict and number == line + 1 and following.lstrip()[:1].islower():
        return Reading(line=line, why=f"the sentence goes on after {reading.verdict}; write the verdict alone")
    return reading


def _sections(
    plain: Lines, sections: Iterable[Section], said: set[int | None], verdicts: Verdicts
) -> Iterator[Reading]:
    """The first line of each section, unless a line or a box in it speaks for it."""
    at = 0
    for section in sections:
        while at < len(plain) and plain[at][0] < section.own.start:
            at += 1
        end = at
        while end < len(plain) and plain[end][0] in section.own:
            end += 1
        if any(plain[n][0] in said for n in range(at, end)):
            continue
        first = next((n for n in range(at, end) if plain[n][1].strip()), None)
        if first is None:
            yield Reading(line=section.heading.line, unfilled=True, why="the section Verdict is empty")
        else:
            yield _value(plain, first, end, plain[first][1], verdicts)


def _boxes(boxes: list[_Box], verdicts: Verdicts) -> list[Reading]:
    """Exactly one ticked among several; a form may explain its boxes, if it explains all of them."""
    if not boxes:
        return []
    ticked = [box for box in boxes if box.ticked]
    if not ticked:
        return [Reading(line=boxes[0].line, unfilled=True, why="no box is ticked")]
    if len(ticked) > 1 or len(boxes) < 2:
        why = f"{len(ticked)} of {len(boxes)} boxes are ticked; tick exactly one of several"
        return [Reading(line=ticked[0].line, why=why)]
    explained = all(box.explained for box in boxes)
    return [_at(phrase(ticked[0].text, verdicts, template=explained), ticked[0].line)]


def _box(line: int, content: str) -> _Box | None:
    """A box for a verdict; `- [x] Approved by the team` is none, `- [x] APPROVED with care` is one to doubt."""
    match = _BOX.match(content)
    word = _first_word(match[2][:LONGEST]) if match else None
    if match is None or word is None:
        return None
    readable = any(phrase(match[2], kind, template=True).verdict for kind in (ChallengeVerdict, ReviewVerdict))
    if not readable and not word[1].isupper():
        return None
    explained = _LETTER.search(match[2], word.end()) is not None
    return _Box(line, match[1] in ("x", "X"), match[2], explained)


def _at(reading: Reading, line: int) -> Reading:
    return Reading(reading.verdict, line, reading.why, reading.unfilled)
