"""A playbook: what a scripted agent does, by step, round and attempt. Parsed strictly (pure).

    steps:
      proposal-gen:            # any round, any attempt
        - say: Reading the project.
        - call: create_proposal
          with: {summary: ...}
        - usage: {in: 15234, out: 892, cached: 0, cost: 0.00188, model: x}
      challenge/2: [...]       # round 2
      challenge/2/1: [...]     # round 2, attempt 1; `challenge/*/1` is attempt 1 of any round
      tasks-review#2: [...]    # the second of its kind in a round
      spec-gen-*: [...]        # a pattern; a full name wins over it

The most specific entry is played. Actions: say, call (with, refused), write (text), edit (old, new), delete, usage,
wait, expect (a text the prompt must contain), fault (wait, code, message), which must come last.
"""

import contextlib
import json
import os.path
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from agentd.agents.failures import FailureCause
from agentd.domain import SPEC_STEPS, STEPS, SetupError, is_step, nearest_word


class InvalidPlaybook(SetupError):
    hint = "fix the playbook, then run the command again"


@dataclass(frozen=True)
class SayAction:
    text: str


@dataclass(frozen=True)
class ToolAction:
    """A call to a tool of the MCP server. `refused`: the server is expected to refuse it."""

    tool: str
    arguments: Mapping[str, Any]
    refused: bool


@dataclass(frozen=True)
class WriteAction:
    path: str
    text: str


@dataclass(frozen=True)
class EditAction:
    path: str
    old: str
    new: str


@dataclass(frozen=True)
class DeleteAction:
    path: str


@dataclass(frozen=True)
class SpendAction:
    """Tokens used since the last report. There is a cost only if the playbook gives one."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float | None
    model: str | None


@dataclass(frozen=True)
class WaitAction:
    seconds: float


@dataclass(frozen=True)
class ExpectAction:
    text: str


@dataclass(frozen=True)
class FaultAction:
    """How the run fails: one of `REPORTED`, with a final event, or one of `SUDDEN`, without."""

    kind: str
    wait: float | None
    code: int
    message: str


Action = (
    SayAction
    | ToolAction
    | WriteAction
    | EditAction
    | DeleteAction
    | SpendAction
    | WaitAction
    | ExpectAction
    | FaultAction
)

REPORTED = {
    FailureCause.RATE_LIMITED: "429 Too Many Requests",
    FailureCause.SERVER_ERROR: "503 Service Unavailable",
    FailureCause.NETWORK_DOWN: "connect ECONNREFUSED",
    FailureCause.NOT_LOGGED_IN: "not logged in",
    FailureCause.KEY_REFUSED: "invalid API key",
    FailureCause.MODEL_UNKNOWN: "the model does not exist",
    FailureCause.SESSION_LOST: "session not found",
}
SUDDEN = ("crash", "die", "hang", "garbage", "silent-end")


class PlaybookTurn(NamedTuple):
    """The call to play an entry for."""

    step: str
    round: int
    number: int
    attempt: int

    def __str__(self) -> str:
        number = f", number {self.number}" if self.number > 1 else ""
        return f"{self.step}{number}, round {self.round}, attempt {self.attempt}"


@dataclass(frozen=True)
class PlaybookEntry:
    """An entry of a playbook. None matches any value."""

    name: str  # of a step, or a pattern with `*`
    number: int | None
    round: int | None
    attempt: int | None
    actions: tuple[Action, ...]

    def matches(self, turn: PlaybookTurn) -> bool:
        pairs = ((self.number, turn.number), (self.round, turn.round), (self.attempt, turn.attempt))
        return all(expected in (None, actual) for expected, actual in pairs) and fnmatchcase(turn.step, self.name)

    @property
    def weight(self) -> tuple[bool, int, int, bool, bool]:
        """Return the sort key; the most specific entry has the highest."""
        given = [part is not None for part in (self.round, self.number, self.attempt)]
        return "*" not in self.name, len(self.name.replace("*", "")), sum(given), given[0], given[1]


@dataclass(frozen=True)
class Playbook:
    file: str
    entries: tuple[PlaybookEntry, ...]

    def find(self, turn: PlaybookTurn) -> tuple[Action, ...]:
        matches = [entry for entry in self.entries if entry.matches(turn)]
        if not matches:
            raise InvalidPlaybook(f"the playbook has no entry for {turn} ({self.file})")
        return max(matches, key=lambda entry: entry.weight).actions


def parse_playbook(text: str, file: str) -> Playbook:
    data = _load(text, file)
    if not isinstance(data, dict):
        raise InvalidPlaybook(f"{file}: a playbook starts with `steps:`")
    _check_keys(data, ("steps",), file, "key")
    steps = data.get("steps")
    if not isinstance(steps, dict):
        raise InvalidPlaybook(f"{file}: `steps` must map each step to its actions")
    return Playbook(file, tuple(_parse_entry(key, actions, file) for key, actions in steps.items()))


def _load(text: str, file: str) -> Any:
    """Parse as JSON if possible. It is valid YAML, and faster to parse for a player that starts for every call."""
    if text.startswith("{"):
        with contextlib.suppress(ValueError):
            return json.loads(text)
    from agentd.domain import yaml12  # deferred: see above

    try:
        return yaml12.load(text)
    except yaml12.InvalidYaml as error:
        raise InvalidPlaybook(f"{file}, line {error.line}: {error.message}") from None


_KEY = re.compile(r"(?P<name>[a-z0-9*-]+)(?:#(?P<number>[^/]*))?(?:/(?P<round>[^/]*))?(?:/(?P<attempt>[^/]*))?")


def _parse_entry(key: Any, actions: Any, file: str) -> PlaybookEntry:
    where = f"{file}: step {key}"
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if not match:
        raise InvalidPlaybook(f"{where}: write a step as name, name/round or name/round/attempt")
    name = match["name"]
    if "*" not in name and not is_step(name):
        raise InvalidPlaybook(f"{where}: there is no step {name}{_suggest(name, (*STEPS, *SPEC_STEPS))}")
    if not isinstance(actions, list):
        raise InvalidPlaybook(f"{where}: the actions must be a list")
    numbers = {part: _number(match[part], part, where) for part in ("number", "round", "attempt")}
    parsed = tuple(_parse_action(action, f"{where}, action {number}") for number, action in enumerate(actions, 1))
    if any(isinstance(action, FaultAction) for action in parsed[:-1]):
        raise InvalidPlaybook(f"{where}: a fault ends the run, so it must be the last action")
    return PlaybookEntry(name=name, actions=parsed, **numbers)


def _number(text: str | None, part: str, where: str) -> int | None:
    if text is None or text == "*":
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise InvalidPlaybook(f"{where}: the {part} must be a number")
    return int(text)


class _ActionReader:
    """Read the keys of one action with type checks."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data = data
        self.where = where

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._checked(key, lambda value: isinstance(value, str), "text", default))

    def path(self, key: str) -> str:
        path = self.text(key)
        if not path or os.path.isabs(path) or ".." in path.split("/"):
            raise InvalidPlaybook(f"{self.where}: {key} must be a path inside the working directory")
        return path

    def flag(self, key: str) -> bool:
        return bool(self._checked(key, lambda value: isinstance(value, bool), "true or false", False))

    def count(self, key: str, default: int | None = None, most: int = 10**12) -> int:
        expected = f"a whole number from 0 to {most}"
        return int(self._checked(key, lambda value: type(value) is int and 0 <= value <= most, expected, default))

    def amount(self, key: str) -> float | None:
        if key not in self._data:
            return None
        return float(self._checked(key, _is_amount, "a number, at least 0", None))

    def mapping(self, key: str) -> "_ActionReader":
        return _ActionReader(self.plain(key), f"{self.where}: {key}")

    def plain(self, key: str) -> dict[str, Any]:
        return dict(self._checked(key, lambda value: isinstance(value, dict), "a mapping", {}))

    def only(self, *keys: str) -> None:
        _check_keys(self._data, keys, self.where, "key")

    def _checked(self, key: str, is_valid: Callable[[Any], bool], expected: str, default: Any) -> Any:
        if key not in self._data and default is not None:
            return default
        value = self._data.get(key)
        if not is_valid(value):
            raise InvalidPlaybook(f"{self.where}: {key} must be {expected}")
        return value


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e15  # False for NaN too


# For each action: its other keys, and how to parse it.
_ACTIONS: dict[str, tuple[tuple[str, ...], Callable[[_ActionReader], Action]]] = {
    "say": ((), lambda parts: SayAction(parts.text("say"))),
    "call": (
        ("with", "refused"),
        lambda parts: ToolAction(parts.text("call"), parts.plain("with"), parts.flag("refused")),
    ),
    "write": (("text",), lambda parts: WriteAction(parts.path("write"), parts.text("text"))),
    "edit": (("old", "new"), lambda parts: EditAction(parts.path("edit"), parts.text("old"), parts.text("new"))),
    "delete": ((), lambda parts: DeleteAction(parts.path("delete"))),
    "usage": ((), lambda parts: _spend(parts.mapping("usage"))),
    "wait": ((), lambda parts: WaitAction(parts.amount("wait") or 0)),
    "expect": ((), lambda parts: ExpectAction(parts.text("expect"))),
    "fault": (("wait", "code", "message"), lambda parts: _fault(parts)),
}


def _parse_action(data: Any, where: str) -> Action:
    if not isinstance(data, dict) or not data:
        raise InvalidPlaybook(f"{where}: write an action as `say: text`, `call: tool` and so on")
    # `wait` can also be a key of another action.
    name = next((key for key in data if key in _ACTIONS and key != "wait"), next(iter(data)))
    if name not in _ACTIONS:
        raise InvalidPlaybook(f"{where}: unknown action {name}{_suggest(name, _ACTIONS)}")
    other_keys, make = _ACTIONS[name]
    parts = _ActionReader(data, where)
    parts.only(name, *other_keys)
    return make(parts)


def _spend(parts: _ActionReader) -> SpendAction:
    parts.only("in", "out", "cached", "cost", "model")
    model = parts.text("model", "")
    return SpendAction(
        parts.count("in", 0), parts.count("out", 0), parts.count("cached", 0), parts.amount("cost"), model or None
    )


def _fault(parts: _ActionReader) -> FaultAction:
    kind = parts.text("fault")
    known = (*REPORTED, *SUDDEN)
    if kind not in known:
        raise InvalidPlaybook(f"{parts.where}: unknown fault {kind}{_suggest(kind, known)}")
    return FaultAction(kind, parts.amount("wait"), parts.count("code", 1, most=255), parts.text("message", ""))


def _check_keys(data: Iterable[Any], known: Iterable[str], where: str, what: str) -> None:
    known = tuple(known)
    for key in data:
        if key not in known:
            raise InvalidPlaybook(f"{where}: unknown {what} {key}{_suggest(key, known)}")


def _suggest(word: Any, known: Iterable[str]) -> str:
    similar = nearest_word(str(word), known)
    return f"; did you mean {similar}?" if similar else f"; known: {', '.join(known)}"
