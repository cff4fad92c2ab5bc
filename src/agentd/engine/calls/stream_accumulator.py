"""Collects what an agent streams during a call: text, actions, session, usage and how it ended."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from agentd.agents import AgentAction, AgentEnded, AgentEvent, AgentText, SessionStarted, TokenUsage, UsageUpdate

TEXT_SIZE = 1024 * 1024  # characters of the assistant's text; the first and last half are kept
ACTIVITIES = 2000  # of one call; a chatty agent must not fill the journal
_SHOWN = 200  # characters of an activity
_CLEANED = 8192  # characters redacted together before cutting: part of a secret is a secret too
_TEXT_INTERVAL = 1.0  # seconds between two reports of the agent's text
_PROMPT_REPORTS = 100  # usage is reported at once this many times, then every _USAGE_INTERVAL seconds
_USAGE_INTERVAL = 0.2
_PARTS = 1000  # more of them are summed up
_SESSION = re.compile(r"[\x21-\x7e]{1,200}")


class StreamAccumulator:
    """Turns a stream of lines into events; `on_usage` is called whenever the total changes."""

    def __init__(
        self,
        read: Callable[[str], Iterable[AgentEvent]],
        on_activity: Callable[[str, str, bool | None], None],
        on_session: Callable[[str], None],
        on_usage: Callable[[TokenUsage], None],
        clean: Callable[[str], str] = str,
        before: TokenUsage = TokenUsage(),  # noqa: B008 - frozen; usage of earlier calls in the same session
    ) -> None:
        self._read = read
        self._on_activity = on_activity
        self._on_session = on_session
        self._on_usage = on_usage
        self._clean = clean
        self._before = before
        self._parts: dict[str, TokenUsage] = {}
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_size = self._tail_size = self._left_out = 0
        self._activities = 0
        self._pending_text = ""
        self._next_text = self._next_usage = 0.0
        self._usage_reports = 0
        self._has_new_usage = False
        self._session = ""
        self.ended: AgentEnded | None = None
        self.is_understood = False

    def add(self, line: bytes) -> None:
        for event in self._read(line.decode("utf-8", "replace")):
            self.is_understood = True
            if self.ended and self.ended.cause and not isinstance(event, AgentEnded | UsageUpdate):
                self.ended = None  # only an attempt failed; the agent continues
            match event:
                case AgentText(text):
                    self._add_text(text)
                case AgentAction(kind, text, ok):
                    self.flush_text()
                    self._report(kind, text, ok)
                case SessionStarted(id=session):
                    self._begin_session(session)
                case UsageUpdate(usage, part):
                    self._parts[part] = self._own(usage)
                    self._count()
                case AgentEnded():
                    self.ended = _after(self.ended, event)
                    if event.usage:
                        self._parts = {"": self._own(event.usage)}
                        self._has_new_usage = True
        if self._has_new_usage and (self._usage_reports < _PROMPT_REPORTS or time.monotonic() >= self._next_usage):
            self._report_usage()

    @property
    def usage(self) -> TokenUsage:
        """Return the sum of the parts; with a cost only if every part has one."""
        parts = self._parts.values()
        costs = [part.cost for part in parts]
        return TokenUsage(
            tokens_in=sum(part.tokens_in for part in parts),
            tokens_out=sum(part.tokens_out for part in parts),
            tokens_cached=sum(part.tokens_cached for part in parts),
            cost=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
            model=next((part.model for part in parts if part.model), None),
        )

    def _own(self, usage: TokenUsage) -> TokenUsage:
        """Return this call's share of usage reported for a whole session; a smaller total is this call's own."""
        before = self._before
        if not usage.of_session or usage.tokens_in < before.tokens_in:
            return usage
        return replace(
            usage,
            tokens_in=usage.tokens_in - before.tokens_in,
            tokens_out=max(0, usage.tokens_out - before.tokens_out),
            tokens_cached=max(0, usage.tokens_cached - before.tokens_cached),
        )

    @property
    def parts(self) -> tuple[TokenUsage, ...]:
        """Return the parts, which may have different models and prices; a part without a model gets the named one."""
        named = self.usage.model
        return tuple(replace(part, model=part.model or named) for part in self._parts.values())

    @property
    def text(self) -> str:
        gap = f"\n[{self._left_out} characters left out]\n" if self._left_out else ""
        return "".join(self._head) + gap + "".join(self._tail)

    def finish(self) -> None:
        """Report what was held back, at the end of the stream."""
        self.flush_text()
        if self._has_new_usage:
            self._report_usage()

    def _report_usage(self) -> None:
        self._has_new_usage = False
        self._usage_reports += 1
        self._next_usage = time.monotonic() + _USAGE_INTERVAL
        self._on_usage(self.usage)

    def _count(self) -> None:
        self._has_new_usage = True
        if len(self._parts) <= _PARTS:
            return
        sums: dict[str, TokenUsage] = {}
        for part in self._parts.values():  # by model and price source, so that the total cost stays the same
            key = f"\0{part.model}\0{part.cost is None}"
            sums[key] = _sum(sums[key], part) if key in sums else part
        self._parts = sums

    def _begin_session(self, session: str) -> None:
        if session != self._session and _SESSION.fullmatch(session):
            self._session = session
            self._on_session(session)

    def _add_text(self, text: str) -> None:
        text = replace_surrogates(text)
        self._keep(text)
        self._pending_text += text[: max(0, _CLEANED - len(self._pending_text))]
        if time.monotonic() >= self._next_text:
            self.flush_text()

    def flush_text(self) -> None:
        """Report the text that has not been reported yet."""
        text, self._pending_text = self._pending_text.strip(), ""
        self._next_text = time.monotonic() + _TEXT_INTERVAL
        if text:
            self._report("text", text, None)

    def _report(self, kind: str, text: str, ok: bool | None) -> None:
        self._activities += 1
        if self._activities <= ACTIVITIES:
            text = " ".join(self._clean(replace_surrogates(text[:_CLEANED])).split())
            self._on_activity(kind, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", ok)

    def _keep(self, text: str) -> None:
        half = TEXT_SIZE // 2
        free = half - self._head_size
        if free > 0:
            self._head.append(text[:free])
            self._head_size += len(self._head[-1])
            text = text[free:]
        if not text:
            return
        self._tail.append(text)
        self._tail_size += len(text)
        if self._tail_size > 2 * half:
            kept = "".join(self._tail)[-half:]
            self._left_out += self._tail_size - len(kept)
            self._tail, self._tail_size = [kept], len(kept)


def _after(before: AgentEnded | None, event: AgentEnded) -> AgentEnded:
    """The last event counts; the time to wait may come from an earlier one."""
    if before and before.cause is event.cause and event.wait_secs is None:
        return replace(event, wait_secs=before.wait_secs)
    return event


def _sum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    return replace(
        one,
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_out=one.tokens_out + other.tokens_out,
        tokens_cached=one.tokens_cached + other.tokens_cached,
        cost=None if one.cost is None or other.cost is None else one.cost + other.cost,
    )


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can hold and a file cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
