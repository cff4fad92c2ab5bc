"""What one call tells, line by line: its words, what it did, its session, its usage, how it ended."""

import time
from collections.abc import Callable, Iterable

from agentd.agents.protocol import Did, Ended, Heard, Said, SessionIs, Usage, Used

WORDS = 1024 * 1024  # of the assistant's text, the first and the last half of this are kept
ACTIVITIES = 2000  # of one call; a chatty agent must not fill the journal
_SHOWN = 200
_LOOKED_AT = 8192  # cleaned as a whole before it is cut to what is shown: half a secret is one too
_PAUSE = 1.0  # seconds between two looks at an agent's words


class Listener:
    """Folds a stream into what the call is worth; `used` is told whenever the sum of the parts moves."""

    def __init__(
        self,
        read: Callable[[str], Iterable[Heard]],
        did: Callable[[str, str, bool | None], None],
        session: Callable[[str], None],
        used: Callable[[Usage], None],
        clean: Callable[[str], str] = str,
    ) -> None:
        self._read = read
        self._did = did
        self._session = session
        self._used = used
        self._clean = clean
        self._parts: dict[str, Usage] = {}
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_size = self._tail_size = self._left_out = 0
        self._told = 0
        self._unseen = ""
        self._next_look = 0.0
        self.ended: Ended | None = None
        self.understood = False

    def hear(self, line: bytes) -> None:
        for event in self._read(line.decode("utf-8", "replace")):
            self.understood = True
            match event:
                case Said(text):
                    self._say(text)
                case Did(kind, text, ok):
                    self.look()
                    self._tell(kind, text, ok)
                case SessionIs(id=session):
                    self._session(session)
                case Used(usage, part):
                    self._parts[part] = usage
                    self._used(self.usage)
                case Ended():
                    self.ended = event
                    if event.usage:
                        self._parts = {"": event.usage}
                        self._used(self.usage)

    @property
    def usage(self) -> Usage:
        """The sum of the parts; a cost only if every part has one."""
        parts = self._parts.values()
        costs = [part.cost for part in parts]
        return Usage(
            tokens_in=sum(part.tokens_in for part in parts),
            tokens_out=sum(part.tokens_out for part in parts),
            tokens_cached=sum(part.tokens_cached for part in parts),
            cost=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
            model=next((part.model for part in parts if part.model), None),
        )

    @property
    def parts(self) -> tuple[Usage, ...]:
        """Each may be of another model, and so of another price."""
        return tuple(self._parts.values())

    @property
    def text(self) -> str:
        gap = f"\n[{self._left_out} characters left out]\n" if self._left_out else ""
        return "".join(self._head) + gap + "".join(self._tail)

    def _say(self, text: str) -> None:
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
            text = " ".join(self._clean(text[:_LOOKED_AT]).split())
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
