"""Which steps a plan takes, in which order, decided from STATE.yaml and what the proposal says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentd.change import Change, ChangeState, StepRecord
from agentd.domain import Lane, Phase, StepStatus
from agentd.engine.steps import plan_facts as facts_of
from agentd.engine.steps.plan_facts import PlanFacts
from agentd.engine.workflows.verdict_status import challenges, is_answering
from agentd.project import WorkflowSettings


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step, done or still to come, and what a person reads for it. `kind` is its name without the spec's id."""

    step: str
    round: int
    number: int
    label: str
    kind: str = ""
    spec: str = ""

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.step, self.round, self.number)


def planner_steps(state: ChangeState, looks: int, facts: PlanFacts | None) -> list[PlannedStep]:
    """The planner's steps until all documents are there; those of specs are known with the proposal."""
    if state.lane is Lane.AUTOMATED:
        return [_one("plan-gen", "Proposal, specs and tasks"), *_reviews("plan", "", looks)]
    if state.lane is Lane.LIGHT:
        first = [_one("proposal-gen", "Proposal")] if _has(state.steps, "proposal-gen") else []
        return [*first, _one("plan-gen", "Specs and tasks" if first else "Proposal, specs and tasks")]
    specs = facts.specs if facts else ()
    found = [_one("proposal-gen", "Proposal"), *_reviews("proposal", "", looks)]
    for number, spec in enumerate(specs, 1):
        found.append(_one("spec-gen", f"Spec {number}/{len(specs)}: {spec}", spec))
        found += _reviews("spec", spec, looks)
    return [*found, _one("tasks-gen", "Tasks"), *_reviews("tasks", "", looks)]


def next_planner_step(state: ChangeState, looks: int, facts: PlanFacts | None) -> PlannedStep | None:
    """The first that is not done. Makers are done by name and round, whatever became of their files."""
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    return next((one for one in planner_steps(state, looks, facts) if one.key not in ended), None)


def plan_steps(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """The steps of a change as it is now."""
    round_ = len(challenges(change)) + 1
    return plan_steps_ahead(
        change.read(), settings.self_review_iterations, facts_of.read_plan_facts(change), round_, is_answering(change)
    )


def plan_steps_ahead(
    state: ChangeState, looks: int, facts: PlanFacts | None, round_: int, is_answering: bool = False
) -> list[PlannedStep]:
    """The steps of this round for somebody who looks on; `is_answering`: findings wait for the planner's answer."""
    first: list[PlannedStep] = []
    if state.phase not in (Phase.DRAFTING, Phase.PROPOSED):
        return first  # it is settled
    if state.phase is Phase.DRAFTING or round_ == 1:
        questions = [_one("clarify", "Questions")] if _has(state.steps, "clarify") else []
        steps = [*questions, *planner_steps(state, looks, facts)]
        first = [one for one in steps if one.key not in _skipped(state.steps)]
    elif is_answering:
        first = [PlannedStep("reproposal", round_, 1, f"Answers to the findings, round {round_}", "reproposal")]
    label = "Challenge" if round_ == 1 else f"Challenge, round {round_}"
    return [*first, PlannedStep("challenge", round_, 1, label, "challenge")]


def _one(kind: str, label: str, spec: str = "", number: int = 1) -> PlannedStep:
    return PlannedStep(f"{kind}-{spec}" if spec else kind, 1, number, label, kind, spec)


def _reviews(what: str, spec: str, looks: int) -> Sequence[PlannedStep]:
    label = f"Review of {spec or {'plan': 'all of it', 'proposal': 'the proposal', 'tasks': 'the tasks'}[what]}"
    return [_one(f"{what}-review", label, spec, number) for number in range(1, looks + 1)]


def _has(steps: Iterable[StepRecord], name: str) -> bool:
    return any(step.name == name for step in steps)


def _skipped(steps: Iterable[StepRecord]) -> set[tuple[str, int, int]]:
    return {step.key[:3] for step in steps if step.status is StepStatus.SKIPPED}
