"""The steps of a workflow in order, with the labels that progress displays show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentd.change import Change, ChangeState, StepRecord
from agentd.documents import Task
from agentd.domain import AgentdError, Lane, Phase, StepStatus
from agentd.engine.steps import check_run, code_trees
from agentd.engine.steps.step_context import REVIEWER_SPEC, PlanFacts, read_plan_facts
from agentd.engine.workflows import task_batches
from agentd.engine.workflows.verdict_status import challenges, is_answering, last_record, open_findings
from agentd.project import WorkflowSettings


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step, done or not, with its label. `kind` is its name without the spec's id."""

    step: str
    round: int
    number: int
    label: str
    kind: str = ""
    spec: str = ""

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.step, self.round, self.number)


_BASELINE = PlannedStep(
    check_run.CHECKS_STEP, check_run.BASELINE_STEP, 1, "Checks before the first edit", check_run.CHECKS_STEP
)


def planner_steps(state: ChangeState, reviews: int, facts: PlanFacts | None) -> list[PlannedStep]:
    """Return the planner's steps until all documents exist; the specs are known once the proposal is."""
    if state.lane is Lane.AUTOMATED:
        return [_step("plan-gen", "Proposal, specs and tasks"), *_reviews("plan", "", reviews)]
    if state.lane is Lane.LIGHT:
        first = [_step("proposal-gen", "Proposal")] if _has(state.steps, "proposal-gen") else []
        return [*first, _step("plan-gen", "Specs and tasks" if first else "Proposal, specs and tasks")]
    specs = facts.specs if facts else ()
    found = [_step("proposal-gen", "Proposal"), *_reviews("proposal", "", reviews)]
    for number, spec in enumerate(specs, 1):
        found.append(_step("spec-gen", f"Spec {number}/{len(specs)}: {spec}", spec))
        found += _reviews("spec", spec, reviews)
    return [*found, _step("tasks-gen", "Tasks"), *_reviews("tasks", "", reviews)]


def next_planner_step(state: ChangeState, reviews: int, facts: PlanFacts | None) -> PlannedStep | None:
    """Return the first step that is not done. Authors are done by name and round, whatever happened to their files."""
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    return next((one for one in planner_steps(state, reviews, facts) if one.key not in ended), None)


def plan_steps(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """Return the steps of the current round."""
    round_ = len(challenges(change)) + 1
    return plan_steps_ahead(
        change.read(), settings.self_review_iterations, read_plan_facts(change), round_, is_answering(change)
    )


def plan_steps_ahead(
    state: ChangeState, reviews: int, facts: PlanFacts | None, round_: int, is_answering: bool = False
) -> list[PlannedStep]:
    """Return the steps of this round; `is_answering`: findings wait for the planner's answer."""
    first: list[PlannedStep] = []
    if state.phase not in (Phase.DRAFTING, Phase.PROPOSED):
        return first  # nothing left to do
    if state.phase is Phase.DRAFTING or round_ == 1:
        questions = [_step("clarify", "Questions")] if _has(state.steps, "clarify") else []
        steps = [*questions, *planner_steps(state, reviews, facts)]
        first = [one for one in steps if one.key not in _skipped(state.steps)]
    elif is_answering:
        first = [PlannedStep("reproposal", round_, 1, f"Answers to the findings, round {round_}", "reproposal")]
    label = "Challenge" if round_ == 1 else f"Challenge, round {round_}"
    return [*first, PlannedStep("challenge", round_, 1, label, "challenge")]


def _step(kind: str, label: str, spec: str = "", number: int = 1) -> PlannedStep:
    return PlannedStep(f"{kind}-{spec}" if spec else kind, 1, number, label, kind, spec)


def _reviews(what: str, spec: str, reviews: int) -> Sequence[PlannedStep]:
    label = f"Review of {spec or {'plan': 'all of it', 'proposal': 'the proposal', 'tasks': 'the tasks'}[what]}"
    return [_step(f"{what}-review", label, spec, number) for number in range(1, reviews + 1)]


def _has(steps: Iterable[StepRecord], name: str) -> bool:
    return any(step.name == name for step in steps)


def _skipped(steps: Iterable[StepRecord]) -> set[tuple[str, int, int]]:
    return {step.key[:3] for step in steps if step.status is StepStatus.SKIPPED}


def impl_steps(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """Return the steps of the current round."""
    try:
        tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    except AgentdError:
        tasks = ()  # the run itself reports what is wrong with the tasks
    state, record = change.read(), last_record(change, REVIEWER_SPEC)
    round_ = record.round + 1 if record else 1
    return impl_steps_ahead(
        state, tasks, settings.sequential_implementation, round_, bool(record and open_findings(change))
    )


def task_steps(change: Change, wanted: Sequence[str], settings: WorkflowSettings) -> list[PlannedStep]:
    """Return the steps for the selected tasks; invalid tasks are an error."""
    state = change.read()
    tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    chosen = task_batches.select_tasks(tasks, wanted, task_batches.built_tasks(state))
    return [*([] if state.base.tree else [_BASELINE]), *batch_steps(state, chosen, settings.sequential_implementation)]


def review_steps(change: Change) -> list[PlannedStep]:
    """Return what `--review` runs first: the checks and one verdict."""
    round_ = len(change.records(REVIEWER_SPEC.kind)) + 1
    checks = PlannedStep(check_run.CHECKS_STEP, round_, 1, f"Checks, round {round_}", check_run.CHECKS_STEP)
    return [checks, PlannedStep(REVIEWER_SPEC.kind, round_, 1, f"Review, round {round_}", REVIEWER_SPEC.kind)]


def impl_steps_ahead(
    state: ChangeState, tasks: Sequence[Task], is_sequential: bool, round_: int, is_answering: bool
) -> list[PlannedStep]:
    if state.phase not in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        return []
    found = []
    if state.base.tree is None or round_ == 1:
        found.append(_BASELINE)
    if round_ == 1:
        rows = [row for row in state.steps if task_batches.is_implemented(row)]
        found += [_implement_step(row.name, row.number, row.extra.get("tasks", ())) for row in rows]
    found += batch_steps(state, tasks, is_sequential)
    if is_answering:
        label = f"Answers to the findings, round {round_}"
        found.append(PlannedStep(REVIEWER_SPEC.answer, round_, 1, label, REVIEWER_SPEC.answer))
    more = "" if round_ == 1 else f", round {round_}"
    found.append(PlannedStep(check_run.CHECKS_STEP, round_, 1, f"Checks{more}", check_run.CHECKS_STEP))
    return [*found, PlannedStep(REVIEWER_SPEC.kind, round_, 1, f"Review{more}", REVIEWER_SPEC.kind)]


def batch_steps(state: ChangeState, tasks: Sequence[Task], is_sequential: bool) -> list[PlannedStep]:
    """Return the implementer's remaining steps."""
    left = task_batches.remaining_batches(state, tasks, is_sequential)
    return [_implement_step(one.step, one.number, [task.id for task in one.tasks]) for one in left]


def _implement_step(step: str, number: int, ids: Sequence[str]) -> PlannedStep:
    spec = step.removeprefix(task_batches.IMPLEMENT_STEP).lstrip("-")
    listed = ", ".join(ids)
    tasks = f"task {listed}" if len(ids) == 1 else f"tasks {listed}"
    return PlannedStep(
        step, 1, number, f"Implement {spec + ': ' if spec else ''}{tasks}", task_batches.IMPLEMENT_STEP, spec
    )
