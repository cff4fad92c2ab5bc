"""STATE.yaml as immutable data, with pure update functions; `folder` reads and writes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from agentd.documents import Finding, finding_data, parse_finding
from agentd.domain import (
    FieldReader,
    GitSetup,
    Lane,
    Phase,
    StateError,
    StepStatus,
    TransitionEvent,
    check_decision,
    next_phase,
    yaml12,
)

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class GitLocation:
    """Where a change lives: `tree` is relative to the main worktree, `target` the branch it was started from."""

    setup: GitSetup = GitSetup.IN_PLACE
    branch: str | None = None
    tree: str = "."
    target: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """What the change started from; a spec that did not exist is None. `tree` is set when implementation starts."""

    commit: str | None = None
    tree: str | None = None
    specs: Mapping[str, str | None] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunState:
    """A command in progress, the rounds it has left, and how many rows `steps` had when it started."""

    workflow: str
    started_at: str
    rounds_left: int = 0
    steps_before: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One attempt at a step, identified by name, round and number; outputs are the hashes when it ended.

    `extra` of a failed step has its `cause`.
    """

    name: str
    round: int
    number: int
    attempt: int
    status: StepStatus
    outputs: Mapping[str, str]
    at: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, int, int]:
        return (self.name, self.round, self.number, self.attempt)


@dataclass(frozen=True, slots=True)
class TransitionRecord:
    """One transition: who caused it, why, and the hashes of the reviewed documents."""

    origin: Phase
    to: Phase
    event: TransitionEvent
    by: str
    why: str
    at: str
    hashes: Mapping[str, str]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One agent call. tokens_in includes tokens_cached; unreported tokens and unknown costs are None."""

    step: str
    agent: str | None
    role: str | None
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    duration_ms: int
    cost: float | None
    timestamp: str
    session: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BudgetIncrease:
    """The budget of this change in USD, as raised by a person."""

    per_change: float
    by: str
    at: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeState:
    change_id: str
    description: str
    created_at: str
    updated_at: str
    phase: Phase = Phase.DRAFTING
    session_id: str | None = None
    round: int = 0
    lane: Lane = Lane.FULL
    run: RunState | None = None
    git: GitLocation = GitLocation()
    base: BaseSnapshot = BaseSnapshot()
    steps: tuple[StepRecord, ...] = ()
    history: tuple[TransitionRecord, ...] = ()
    llm_calls: tuple[CallRecord, ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()  # agentd's own, until they move to the next round's record
    depends_on: tuple[str, ...] = ()
    """Changes that must be archived before this one."""
    waived: tuple[str, ...] = ()
    """Tasks left out when a person accepted the plan, for as long as that acceptance holds."""
    rebased: Mapping[str, str] = field(default_factory=dict)
    """Hashes of specs that a rebase rewrote without changing reviewed content, each with the hash it replaces."""
    touched: Mapping[str, int] = field(default_factory=dict)
    """Specs where a rebase brought in overlapping changes, and the length of `history` at that time."""
    budget: BudgetIncrease | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total_cost(self) -> float:
        """The sum of the known costs."""
        return round(sum(call.cost or 0.0 for call in self.llm_calls), 6)

    @property
    def verdict(self) -> str | None:
        """The verdict of the last judge; older files have it in a separate key."""
        for transition in reversed(self.history):
            kind, _, verdict = transition.event.partition("-")
            if transition.event is TransitionEvent.IMPLEMENTATION_STARTED:
                return None  # the code has not been reviewed yet
            if kind in ("challenge", "review"):
                return verdict.replace("-", "_").upper()
        older = self.extra.get("verdict")
        return str(older).upper() if older else None

    def changed_documents(self, recorded: Mapping[str, str], current: Mapping[str, str], transitions: int) -> list[str]:
        """Return the documents whose hash differs from that of a verdict, other than by a harmless rebase.

        `transitions` is the length of the history at that verdict: a rebase may have brought in changes since.
        """
        return [
            name
            for name in {**recorded, **current}
            if transitions <= self.touched.get(name, -1)
            or recorded.get(name) not in self._equivalent_hashes(current.get(name))
        ]

    def _equivalent_hashes(self, digest: str | None) -> list[str | None]:
        """Return a hash and the ones it replaced in rebases."""
        hashes = [digest]
        while (older := self.rebased.get(hashes[-1] or "")) and older not in hashes:
            hashes.append(older)
        return hashes

    def with_step(self, step: StepRecord) -> "ChangeState":
        """Add a step, or replace the same attempt in place."""
        if any(known.key == step.key for known in self.steps):
            return replace(self, steps=tuple(step if k.key == step.key else k for k in self.steps))
        return replace(self, steps=(*self.steps, step))

    def with_call(self, call: CallRecord) -> "ChangeState":
        return replace(self, llm_calls=(*self.llm_calls, call))

    def with_transition(
        self,
        event: TransitionEvent,
        *,
        by: str,
        why: str,
        at: str,
        hashes: Mapping[str, str] | None = None,
    ) -> "ChangeState":
        check_decision(event, by, why)
        to = next_phase(self.phase, event)
        entry = TransitionRecord(self.phase, to, event, by, why, at, hashes or {})
        return replace(self, phase=to, history=(*self.history, entry))


@lru_cache(maxsize=8)  # a run often re-reads its own last write
def parse_state(text: str) -> ChangeState:
    """Parse STATE.yaml, including older versions. Raise StateError if it is broken or from a newer agentd."""
    try:
        fields = FieldReader(yaml12.load(text), "STATE.yaml")
    except yaml12.InvalidYaml as error:
        raise StateError(f"line {error.line}: {error.message}") from None
    schema = fields.count("schema_version", SCHEMA)
    if schema > SCHEMA:
        raise StateError(f"schema_version {schema} was written by a newer agentd", "update agentd")
    for total in ("total_cost", "total_tokens_in", "total_tokens_out"):
        fields.take(total)  # computed from the calls
    calls = tuple(parse_call(row) for row in [*fields.items("llm_calls"), *_older_calls(fields)])
    created = fields.text("created_at", "")
    return ChangeState(
        change_id=fields.text("change_id"),
        description=fields.text("description", ""),
        created_at=created,
        updated_at=fields.text("updated_at", created),
        phase=fields.choice("phase", Phase, Phase.DRAFTING),
        session_id=fields.text_or_none("session_id"),
        round=fields.count("round"),
        lane=fields.choice("lane", Lane, Lane.FULL),
        run=_parse_run(fields),
        git=_parse_git(FieldReader(fields.mapping("git"), "STATE.yaml: git")),
        base=_parse_base(FieldReader(fields.mapping("base"), "STATE.yaml: base")),
        steps=tuple(_parse_step(row) for row in fields.items("steps")),
        history=tuple(_parse_transition(row) for row in fields.items("history")),
        llm_calls=calls,
        checks=tuple(row.rest() for row in fields.items("checks")),
        findings=tuple(parse_finding(row) for row in fields.items("findings")),
        depends_on=fields.texts("depends_on"),
        waived=fields.texts("waived"),
        rebased={str(new): str(old) for new, old in fields.mapping("rebased").items()},
        touched={name: count for name, count in fields.mapping("touched").items() if isinstance(count, int)},
        budget=_parse_budget(fields),
        extra=fields.rest(),
    )


def render_state(state: ChangeState) -> str:
    data: dict[str, Any] = {
        "change_id": state.change_id,
        "schema_version": SCHEMA,
        "description": state.description,
        "phase": str(state.phase),
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "session_id": state.session_id,
        "round": state.round,
        "lane": str(state.lane),
        "run": None if state.run is None else _to_mapping(state.run),
        "git": _to_mapping(state.git),
        "base": _to_mapping(state.base),
        "steps": [_to_mapping(step) for step in state.steps],
        "history": [_to_mapping(transition) for transition in state.history],
        "llm_calls": [_to_mapping(call) for call in state.llm_calls],
        "total_cost": state.total_cost,
        "total_tokens_in": sum(call.tokens_in or 0 for call in state.llm_calls),
        "total_tokens_out": sum(call.tokens_out or 0 for call in state.llm_calls),
        "checks": [dict(check) for check in state.checks],
        "findings": [finding_data(finding) for finding in state.findings],
        "depends_on": list(state.depends_on),
        "waived": list(state.waived),
        "rebased": dict(state.rebased),
        "touched": dict(state.touched),
        "budget": state.budget and _to_mapping(state.budget),
        **state.extra,
    }
    if state.phase is Phase.DRAFTING:
        del data["phase"]
    for name in ("findings", "depends_on", "waived", "rebased", "touched", "budget"):
        if not data[name]:
            del data[name]
    return yaml12.dump(data)


def _to_mapping(value: Any) -> dict[str, Any]:
    data = {name: getattr(value, name) for name in value.__dataclass_fields__ if name != "extra"}
    data = {("from" if name == "origin" else name): _to_plain(item) for name, item in data.items()}
    return {**data, **getattr(value, "extra", {})}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, str) else value


def _older_calls(fields: FieldReader) -> list[FieldReader]:
    """Read calls from `telemetry` in older files: a list of calls, or a mapping with such a list."""
    telemetry = fields.take("telemetry")
    if isinstance(telemetry, Mapping):
        known = ("llm_calls", "calls", "total_cost", "total_tokens_in", "total_tokens_out")
        fields.put_back("telemetry", {key: value for key, value in telemetry.items() if key not in known})
        telemetry = telemetry.get("llm_calls") or telemetry.get("calls")
    return FieldReader({"telemetry": telemetry}, "STATE.yaml").items("telemetry")


def parse_call(row: FieldReader) -> CallRecord:
    cost = row.money("cost")
    older = row.money("cost_usd")
    return CallRecord(
        step=row.text("step", ""),
        agent=row.text_or_none("agent"),
        role=row.text_or_none("role"),
        model=row.text_or_none("model"),
        tokens_in=row.count_or_none("tokens_in"),
        tokens_out=row.count_or_none("tokens_out"),
        tokens_cached=row.count_or_none("tokens_cached"),
        duration_ms=row.count("duration_ms"),
        cost=older if cost is None else cost,
        timestamp=row.text("timestamp", ""),
        session=row.text_or_none("session"),
        extra=row.rest(),
    )


def _parse_step(row: FieldReader) -> StepRecord:
    return StepRecord(
        name=row.text("name"),
        round=row.count("round", 1),
        number=row.count("number", 1),
        attempt=row.count("attempt", 1),
        status=row.choice("status", StepStatus),
        outputs=row.mapping("outputs"),
        at=row.text("at", ""),
        extra=row.rest(),
    )


def _parse_transition(row: FieldReader) -> TransitionRecord:
    return TransitionRecord(
        origin=row.choice("from", Phase),
        to=row.choice("to", Phase),
        event=row.choice("event", TransitionEvent),
        by=row.text("by", "agentd"),
        why=row.text("why", ""),
        at=row.text("at", ""),
        hashes=row.mapping("hashes"),
        extra=row.rest(),
    )


def _parse_run(fields: FieldReader) -> RunState | None:
    row = fields.inner("run")
    if row is None:
        return None
    left, before = row.count("rounds_left"), row.count("steps_before")
    return RunState(row.text("workflow"), row.text("started_at", ""), left, before, row.rest())


def _parse_budget(fields: FieldReader) -> BudgetIncrease | None:
    row = fields.inner("budget")
    if row is None:
        return None
    amount = row.money("per_change")
    if amount is None:
        fields.put_back("budget", row.rest())
        return None
    return BudgetIncrease(amount, row.text("by", ""), row.text("at", ""), row.rest())


def _parse_git(row: FieldReader) -> GitLocation:
    setup = row.choice("setup", GitSetup, GitSetup.IN_PLACE)
    branch, tree, target = row.text_or_none("branch"), row.text("tree", "."), row.text_or_none("target")
    return GitLocation(setup, branch, tree, target, row.rest())


def _parse_base(row: FieldReader) -> BaseSnapshot:
    return BaseSnapshot(row.text_or_none("commit"), row.text_or_none("tree"), row.mapping("specs"), row.rest())
