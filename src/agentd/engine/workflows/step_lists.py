"""Which steps the code of a change takes, in which order, for somebody who looks on."""

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
        change.read(), settings.self_review_iterations, read_plan_facts(change), round_, is_answering(change)
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


def impl_steps(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """The steps of a change as it is now."""
    try:
        tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    except AgentdError:
        tasks = ()  # the run itself says what is wrong with them
    state, record = change.read(), last_record(change, REVIEWER_SPEC)
    round_ = record.round + 1 if record else 1
    return impl_steps_ahead(
        state, tasks, settings.sequential_implementation, round_, bool(record and open_findings(change))
    )


def task_steps(change: Change, wanted: Sequence[str], settings: WorkflowSettings) -> list[PlannedStep]:
    """The runs of the tasks that were asked for; what cannot be built is an error."""
    state = change.read()
    tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    chosen = task_batches.select_tasks(tasks, wanted, task_batches.built_tasks(state))
    baseline = [
        PlannedStep(
            check_run.CHECKS_STEP, check_run.BASELINE_STEP, 1, "Checks before the first edit", check_run.CHECKS_STEP
        )
    ]
    return [*([] if state.base.tree else baseline), *batch_steps(state, chosen, settings.sequential_implementation)]


def review_steps(change: Change) -> list[PlannedStep]:
    """What `--review` does first: the checks, and one verdict."""
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
        found.append(
            PlannedStep(
                check_run.CHECKS_STEP, check_run.BASELINE_STEP, 1, "Checks before the first edit", check_run.CHECKS_STEP
            )
        )
    if round_ == 1:
        rows = [row for row in state.steps if _is_made(row.name, row.status)]
        found += [_made(row.name, row.number, row.extra.get("tasks", ())) for row in rows]
    found += batch_steps(state, tasks, is_sequential)
    if is_answering:
        found.append(
            PlannedStep(
                REVIEWER_SPEC.answer, round_, 1, f"Answers to the findings, round {round_}", REVIEWER_SPEC.answer
            )
        )
    more = "" if round_ == 1 else f", round {round_}"
    found.append(PlannedStep(check_run.CHECKS_STEP, round_, 1, f"Checks{more}", check_run.CHECKS_STEP))
    return [*found, PlannedStep(REVIEWER_SPEC.kind, round_, 1, f"Review{more}", REVIEWER_SPEC.kind)]


def batch_steps(state: ChangeState, tasks: Sequence[Task], is_sequential: bool) -> list[PlannedStep]:
    """The runs of the implementer that are left."""
    left = task_batches.remaining_batches(state, tasks, is_sequential)
    return [_made(one.step, one.number, [task.id for task in one.tasks]) for one in left]


def _made(step: str, number: int, ids: Sequence[str]) -> PlannedStep:
    spec = step.removeprefix(task_batches.IMPLEMENT_STEP).lstrip("-")
    listed = ", ".join(ids)
    tasks = f"task {listed}" if len(ids) == 1 else f"tasks {listed}"
    return PlannedStep(
        step, 1, number, f"Implement {spec + ': ' if spec else ''}{tasks}", task_batches.IMPLEMENT_STEP, spec
    )


def _is_made(name: str, status: StepStatus) -> bool:
    return status is StepStatus.DONE and (
        name == task_batches.IMPLEMENT_STEP or name.startswith(f"{task_batches.IMPLEMENT_STEP}-")
    )
