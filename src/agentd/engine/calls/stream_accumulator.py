"""What one call tells, line by line: its words, what it did, its session, its usage, how it ended."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from agentd.agents import AgentAction, AgentEnded, AgentEvent, AgentText, SessionStarted, TokenUsage, UsageUpdate

WORDS = 1024 * 1024  # of the assistant's text, the first and the last half of this are kept
ACTIVITIES = 2000  # of one call; a chatty agent must not fill the journal
_SHOWN = 200
_LOOKED_AT = 8192  # cleaned as a whole before it is cut to what is shown: half a secret is one too
_PAUSE = 1.0  # seconds between two looks at an agent's words
_PROMPT_LOOKS = 100  # usage is looked at as it comes; after so many times, at most every _REST seconds
_REST = 0.2
_PARTS = 1000  # more of them are added up as they come
_SESSION = re.compile(r"[\x21-\x7e]{1,200}")


class StreamAccumulator:
    """Folds a stream into what the call is worth; `used` is told whenever the sum of the parts moves."""

    def __init__(
        self,
        read: Callable[[str], Iterable[AgentEvent]],
        did: Callable[[str, str, bool | None], None],
        session: Callable[[str], None],
        used: Callable[[TokenUsage], None],
        clean: Callable[[str], str] = str,
        before: TokenUsage = TokenUsage(),  # noqa: B008 - frozen; what the session's earlier calls were counted for
    ) -> None:
        self._read = read
        self._did = did
        self._session = session
        self._used = used
        self._clean = clean
        self._before = before
        self._parts: dict[str, TokenUsage] = {}
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_size = self._tail_size = self._left_out = 0
        self._told = 0
        self._unseen = ""
        self._next_look = self._next_use = 0.0
        self._uses = 0
        self._is_new = False  # usage that nobody was told of
        self._in_session = ""
        self.ended: AgentEnded | None = None
        self.understood = False

    def hear(self, line: bytes) -> None:
        for event in self._read(line.decode("utf-8", "replace")):
            self.understood = True
            if self.ended and self.ended.cause and not isinstance(event, AgentEnded | UsageUpdate):
                self.ended = None  # only a try had failed: it goes on
            match event:
                case AgentText(text):
                    self._say(text)
                case AgentAction(kind, text, ok):
                    self.look()
                    self._tell(kind, text, ok)
                case SessionStarted(id=session):
                    self._begin_session(session)
                case UsageUpdate(usage, part):
                    self._parts[part] = self._own(usage)
                    self._count()
                case AgentEnded():
                    self.ended = _after(self.ended, event)
                    if event.usage:
                        self._parts = {"": self._own(event.usage)}
                        self._is_new = True
        if self._is_new and (self._uses < _PROMPT_LOOKS or time.monotonic() >= self._next_use):
            self._tell_usage()

    @property
    def usage(self) -> TokenUsage:
        """The sum of the parts; a cost only if every part has one."""
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
        """This call's part of what is told for a whole session; less than before can only be of this call."""
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
        """Each may be of another model, and so of another price; one that names none is of the model that was named."""
        named = self.usage.model
        return tuple(replace(part, model=part.model or named) for part in self._parts.values())

    @property
    def text(self) -> str:
        gap = f"\n[{self._left_out} characters left out]\n" if self._left_out else ""
        return "".join(self._head) + gap + "".join(self._tail)

    def finish(self) -> None:
        """The stream is over: tell what was held back."""
        self.look()
        if self._is_new:
            self._tell_usage()

    def _tell_usage(self) -> None:
        self._is_new = False
        self._uses += 1
        self._next_use = time.monotonic() + _REST
        self._used(self.usage)

    def _count(self) -> None:
        self._is_new = True
        if len(self._parts) <= _PARTS:
            return
        sums: dict[str, TokenUsage] = {}
        for part in self._parts.values():  # by model and by who priced it, so that the sum costs the same
            key = f"\0{part.model}\0{part.cost is None}"
            sums[key] = _sum(sums[key], part) if key in sums else part
        self._parts = sums

    def _begin_session(self, session: str) -> None:
        if session != self._in_session and _SESSION.fullmatch(session):
            self._in_session = session
            self._session(session)

    def _say(self, text: str) -> None:
        text = replace_surrogates(text)
        self._keep(text)
        self._unseen += text[: max(0, _LOOKED_AT - len(self._unseen))]
        if time.monotonic() >= self._next_look:
            self.look()

    def look(self) -> None:
        """Tell the words that nobody has seen yet."""
        words, self._unseen = self._unseen.strip(), ""
        self._next_look = time.monotonic() + _PAUSE
        if words:
            self._tell("text", words, None)

    def _tell(self, kind: str, text: str, ok: bool | None) -> None:
        self._told += 1
        if self._told <= ACTIVITIES:
            text = " ".join(self._clean(replace_surrogates(text[:_LOOKED_AT])).split())
            self._did(kind, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", ok)

    def _keep(self, text: str) -> None:
        half = WORDS // 2
        room = half - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += len(self._head[-1])
            text = text[room:]
        if not text:
            return
        self._tail.append(text)
        self._tail_size += len(text)
        if self._tail_size > 2 * half:
            kept = "".join(self._tail)[-half:]
            self._left_out += self._tail_size - len(kept)
            self._tail, self._tail_size = [kept], len(kept)


def _after(before: AgentEnded | None, event: AgentEnded) -> AgentEnded:
    """The last word counts; how long to wait may have been said earlier."""
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
    """JSON can hold half a character, which no file can."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
