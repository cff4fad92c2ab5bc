"""Which steps the code of a change takes, in which order, for somebody who looks on."""

from collections.abc import Sequence

from agentd.change.folder import Change
from agentd.change.state import ChangeState
from agentd.documents.task import Task
from agentd.domain.errors import AgentdError
from agentd.domain.terms import Phase, StepStatus
from agentd.project.config import WorkflowSettings
from agentd.steps import code, proving
from agentd.steps.bench import CODE
from agentd.workflows import building
from agentd.workflows.course import Ahead
from agentd.workflows.verdict import last, left_open


def of_code(change: Change, settings: WorkflowSettings) -> list[Ahead]:
    """The steps of a change as it is now."""
    try:
        tasks = building.in_order(code.tasks_of(change), change.id)
    except AgentdError:
        tasks = ()  # the run itself says what is wrong with them
    state, record = change.read(), last(change, CODE)
    round_ = record.round + 1 if record else 1
    return ahead(state, tasks, settings.sequential_implementation, round_, bool(record and left_open(change)))


def of_tasks(change: Change, wanted: Sequence[str], settings: WorkflowSettings) -> list[Ahead]:
    """The runs of the tasks that were asked for; what cannot be built is an error."""
    state = change.read()
    tasks = building.in_order(code.tasks_of(change), change.id)
    chosen = building.chosen(tasks, wanted, building.made(state))
    baseline = [Ahead(proving.STEP, proving.BASELINE, 1, "Checks before the first edit", proving.STEP)]
    return [*([] if state.base.tree else baseline), *makers(state, chosen, settings.sequential_implementation)]


def of_review(change: Change) -> list[Ahead]:
    """What `--review` does first: the checks, and one verdict."""
    round_ = len(change.records(CODE.kind)) + 1
    checks = Ahead(proving.STEP, round_, 1, f"Checks, round {round_}", proving.STEP)
    return [checks, Ahead(CODE.kind, round_, 1, f"Review, round {round_}", CODE.kind)]


def ahead(
    state: ChangeState, tasks: Sequence[Task], is_sequential: bool, round_: int, is_answering: bool
) -> list[Ahead]:
    if state.phase not in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        return []
    found = []
    if state.base.tree is None or round_ == 1:
        found.append(Ahead(proving.STEP, proving.BASELINE, 1, "Checks before the first edit", proving.STEP))
    if round_ == 1:
        rows = [row for row in state.steps if _is_made(row.name, row.status)]
        found += [_made(row.name, row.number, row.extra.get("tasks", ())) for row in rows]
    found += makers(state, tasks, is_sequential)
    if is_answering:
        found.append(Ahead(CODE.answer, round_, 1, f"Answers to the findings, round {round_}", CODE.answer))
    more = "" if round_ == 1 else f", round {round_}"
    found.append(Ahead(proving.STEP, round_, 1, f"Checks{more}", proving.STEP))
    return [*found, Ahead(CODE.kind, round_, 1, f"Review{more}", CODE.kind)]


def makers(state: ChangeState, tasks: Sequence[Task], is_sequential: bool) -> list[Ahead]:
    """The runs of the implementer that are left."""
    left = building.ahead(state, tasks, is_sequential)
    return [_made(one.step, one.number, [task.id for task in one.tasks]) for one in left]


def _made(step: str, number: int, ids: Sequence[str]) -> Ahead:
    spec = step.removeprefix(building.STEP).lstrip("-")
    listed = ", ".join(ids)
    tasks = f"task {listed}" if len(ids) == 1 else f"tasks {listed}"
    return Ahead(step, 1, number, f"Implement {spec + ': ' if spec else ''}{tasks}", building.STEP, spec)


def _is_made(name: str, status: StepStatus) -> bool:
    return status is StepStatus.DONE and (name == building.STEP or name.startswith(f"{building.STEP}-"))
