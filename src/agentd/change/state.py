"""STATE.yaml as data. Frozen values and pure steps from one to the next; `folder` reads and writes them."""

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
    """Where a change lives: `tree` is seen from the main work tree, `target` was current when it began."""

    setup: GitSetup = GitSetup.IN_PLACE
    branch: str | None = None
    tree: str = "."
    target: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """What the change began from; a spec that did not exist then is None. `tree` comes with implementation."""

    commit: str | None = None
    tree: str | None = None
    specs: Mapping[str, str | None] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunState:
    """A command under way, the rounds it may still use, and how many rows `steps` had when it began."""

    workflow: str
    started_at: str
    rounds_left: int = 0
    steps_before: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Name, round and number identify it; attempt counts its tries; outputs are the hashes when it ended.

    Beside these a failed one has its `cause`.
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
    """One transition: who moved the change, why, and the hashes of what was judged."""

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
    """One agent call; tokens_in includes tokens_cached; tokens that were not reported and an unknown cost are None."""

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
    """What a person allows this change to cost, in USD."""

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
    findings: tuple[Finding, ...] = ()  # agentd's own, until the next round's record takes them up
    depends_on: tuple[str, ...] = ()
    """Changes that must be archived before this one."""
    waived: tuple[str, ...] = ()
    """Tasks that a person's acceptance left out, for as long as it holds."""
    rebased: Mapping[str, str] = field(default_factory=dict)
    """Hashes of specs that a rebase wrote without touching what was judged, each with the hash that it stands for."""
    touched: Mapping[str, int] = field(default_factory=dict)
    """Specs in which others changed the same, and how long the history was when a rebase brought that in."""
    budget: BudgetIncrease | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total_cost(self) -> float:
        """Over known costs only."""
        return round(sum(call.cost or 0.0 for call in self.llm_calls), 6)

    @property
    def verdict(self) -> str | None:
        """The last judge's word; older files have it as a key of its own."""
        for moved in reversed(self.history):
            kind, _, verdict = moved.event.partition("-")
            if moved.event is TransitionEvent.IMPLEMENTATION_STARTED:
                return None  # nobody has judged the code yet
            if kind in ("challenge", "review"):
                return verdict.replace("-", "_").upper()
        older = self.extra.get("verdict")
        return str(older).upper() if older else None

    def differing(self, recorded: Mapping[str, str], found: Mapping[str, str], moves: int) -> list[str]:
        """Documents that are not those of a verdict, by hash, nor carried over from it by a rebase.

        `moves` is how long the history was with that verdict: what a rebase brought in later, nobody has judged.
        """
        return [
            name
            for name in {**recorded, **found}
            if moves <= self.touched.get(name, -1) or recorded.get(name) not in self._lineage(found.get(name))
        ]

    def _lineage(self, digest: str | None) -> list[str | None]:
        """A hash and those that it stands for, none of them twice."""
        found = [digest]
        while (older := self.rebased.get(found[-1] or "")) and older not in found:
            found.append(older)
        return found

    def with_step(self, step: StepRecord) -> "ChangeState":
        """A try that is there already is replaced where it stands, a new one comes last."""
        if any(known.key == step.key for known in self.steps):
            return replace(self, steps=tuple(step if k.key == step.key else k for k in self.steps))
        return replace(self, steps=(*self.steps, step))

    def with_call(self, call: CallRecord) -> "ChangeState":
        return replace(self, llm_calls=(*self.llm_calls, call))

    def moved(
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


@lru_cache(maxsize=8)  # a run reads its own last write again and again
def parse_state(text: str) -> ChangeState:
    """A broken or newer file is a StateError; an older one is read."""
    try:
        fields = FieldReader(yaml12.load(text), "STATE.yaml")
    except yaml12.InvalidYaml as error:
        raise StateError(f"line {error.line}: {error.message}") from None
    schema = fields.count("schema_version", SCHEMA)
    if schema > SCHEMA:
        raise StateError(f"schema_version {schema} was written by a newer agentd", "update agentd")
    for total in ("total_cost", "total_tokens_in", "total_tokens_out"):
        fields.take(total)  # always the sums of the calls
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
        run=_run(fields),
        git=_place(FieldReader(fields.mapping("git"), "STATE.yaml: git")),
        base=_base(FieldReader(fields.mapping("base"), "STATE.yaml: base")),
        steps=tuple(_step(row) for row in fields.items("steps")),
        history=tuple(_moved(row) for row in fields.items("history")),
        llm_calls=calls,
        checks=tuple(row.rest() for row in fields.items("checks")),
        findings=tuple(parse_finding(row) for row in fields.items("findings")),
        depends_on=fields.texts("depends_on"),
        waived=fields.texts("waived"),
        rebased={str(new): str(old) for new, old in fields.mapping("rebased").items()},
        touched={name: count for name, count in fields.mapping("touched").items() if isinstance(count, int)},
        budget=_raised(fields),
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
        "run": None if state.run is None else _plain(state.run),
        "git": _plain(state.git),
        "base": _plain(state.base),
        "steps": [_plain(step) for step in state.steps],
        "history": [_plain(moved) for moved in state.history],
        "llm_calls": [_plain(call) for call in state.llm_calls],
        "total_cost": state.total_cost,
        "total_tokens_in": sum(call.tokens_in or 0 for call in state.llm_calls),
        "total_tokens_out": sum(call.tokens_out or 0 for call in state.llm_calls),
        "checks": [dict(check) for check in state.checks],
        "findings": [finding_data(finding) for finding in state.findings],
        "depends_on": list(state.depends_on),
        "waived": list(state.waived),
        "rebased": dict(state.rebased),
        "touched": dict(state.touched),
        "budget": state.budget and _plain(state.budget),
        **state.extra,
    }
    if state.phase is Phase.DRAFTING:
        del data["phase"]
    for name in ("findings", "depends_on", "waived", "rebased", "touched", "budget"):
        if not data[name]:
            del data[name]
    return yaml12.dump(data)


def _plain(value: Any) -> dict[str, Any]:
    data = {name: getattr(value, name) for name in value.__dataclass_fields__ if name != "extra"}
    data = {("from" if name == "origin" else name): _word(item) for name, item in data.items()}
    return {**data, **getattr(value, "extra", {})}


def _word(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, str) else value


def _older_calls(fields: FieldReader) -> list[FieldReader]:
    """Older files say `telemetry`, as a list of calls or a mapping that has one; its sums are ours to make."""
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


def _step(row: FieldReader) -> StepRecord:
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


def _moved(row: FieldReader) -> TransitionRecord:
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


def _run(fields: FieldReader) -> RunState | None:
    row = fields.inner("run")
    if row is None:
        return None
    left, before = row.count("rounds_left"), row.count("steps_before")
    return RunState(row.text("workflow"), row.text("started_at", ""), left, before, row.rest())


def _raised(fields: FieldReader) -> BudgetIncrease | None:
    row = fields.inner("budget")
    if row is None:
        return None
    amount = row.money("per_change")
    if amount is None:
        fields.put_back("budget", row.rest())
        return None
    return BudgetIncrease(amount, row.text("by", ""), row.text("at", ""), row.rest())


def _place(row: FieldReader) -> GitLocation:
    setup = row.choice("setup", GitSetup, GitSetup.IN_PLACE)
    branch, tree, target = row.text_or_none("branch"), row.text("tree", "."), row.text_or_none("target")
    return GitLocation(setup, branch, tree, target, row.rest())


def _base(row: FieldReader) -> BaseSnapshot:
    return BaseSnapshot(row.text_or_none("commit"), row.text_or_none("tree"), row.mapping("specs"), row.rest())
