"""What is not as a page has shown it any more: documents and findings word by word, code line by line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from agentd.change import Change, cached_text
from agentd.domain import AgentdError
from agentd.engine import CODE_TREE_KEY, FINDINGS_KEY, VERDICTS_KEY
from agentd.web import rounds_view
from agentd.web.code_view import FileDiff
from agentd.web.markup import word_diff

_FILES = 100  # of a difference in code; who changed more reads it on its own page


@dataclass(frozen=True, slots=True)
class StaleItem:
    """`is_told`: all of it stands here, so it can be decided upon; else it is to be read at `href`."""

    name: str
    href: str
    html: Markup | None = None
    files: tuple[FileDiff, ...] = ()
    is_verdict: bool = False

    @property
    def is_told(self) -> bool:
        return bool(self.html) or (bool(self.files) and not any(one.left_out for one in self.files))


def stale_items(
    change: Change, changed: Iterable[str], shown: Mapping[str, str], now: Mapping[str, str]
) -> list[StaleItem]:
    """Of what is there now; what has gone can only be named."""
    start = f"/changes/{change.id}"
    return [_one(change, start, name, shown.get(name, ""), now[name]) for name in changed if name in now]


def _one(change: Change, start: str, name: str, old: str, new: str) -> StaleItem:
    if name in VERDICTS_KEY:
        return StaleItem(name, f"{start}/rounds", is_verdict=True)
    if name == CODE_TREE_KEY:
        return StaleItem(name, f"{start}/code", files=_code(change, old, new))
    if name == FINDINGS_KEY:
        return StaleItem(name, start, html=_between(change, old, new))
    return StaleItem(name, f"{start}/read/{name}", html=_between(change, old, new))


def _between(change: Change, old: str, new: str) -> Markup | None:
    """Short: the rest was read. None where this machine has not kept what was shown."""
    before, after = cached_text(change, old), cached_text(change, new)
    if before is None or after is None:
        return None
    return Markup(word_diff.elided_html(word_diff.diff_words(before, after)))  # noqa: S704 - escaped there


def _code(change: Change, old: str, new: str) -> tuple[FileDiff, ...]:
    """Nothing where git has not kept what was shown, or where it is too much."""
    try:
        found = rounds_view.code_difference(change, old, new)
    except AgentdError:
        return ()
    return found if len(found) <= _FILES else ()
