"""Prove, review, resolve, and again: until the code is approved, a rule says stop, or the rounds are used."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentd.change.state import ChangeState
from agentd.documents.task import Task
from agentd.domain import events
from agentd.domain.errors import ChangeNotReady, WrongPhase
from agentd.domain.terms import CheckStatus, Phase, ReviewVerdict
from agentd.steps import code, edits, proving, remarks, resolve
from agentd.steps import review as reviewing
from agentd.steps.bench import CODE
from agentd.steps.desk import Desk
from agentd.steps.implement import implement
from agentd.workflows import building
from agentd.workflows.starting import refuse_marks
from agentd.workflows.under_way import one_round_less
from agentd.workflows.verdict import closed_nothing, has_judged, is_answered, last
from agentd.workflows.wishes import Wishes

_REVIEWED = (Phase.IMPLEMENTING, Phase.COMPLETE)


def make(desk: Desk, wishes: Wishes) -> None:
    """The tasks that are left, run by run."""
    tasks = wanted(desk, wishes)
    is_sequential = desk.config.workflow.sequential_implementation
    while runs := building.ahead(desk.change.read(), tasks, is_sequential):
        first = runs[0]
        done = sorted(building.made(desk.change.read()))
        implement(desk, first.step, first.number, first.tasks, done, is_last=len(runs) == 1 and not wishes.tasks)


def wanted(desk: Desk, wishes: Wishes) -> tuple[Task, ...]:
    """All tasks in their order, or those of `--tasks`."""
    tasks = building.in_order(code.tasks_of(desk.change), desk.change.id)
    return building.chosen(tasks, wishes.tasks, building.made(desk.change.read())) if wishes.tasks else tasks


def judge(desk: Desk, wishes: Wishes) -> bool:
    """One verdict on the code as it is. False: that tree was judged already, and judging it again is not wished."""
    if desk.change.read().phase not in _REVIEWED:
        raise ChangeNotReady(f"{desk.change.id} has no code to review yet", f"agentd impl {desk.change.id}")
    building.in_order(code.tasks_of(desk.change), desk.change.id)  # without tasks nothing says what is done
    refuse_marks(desk.change)
    base = desk.change.read().base.tree
    if base and not code.changed(desk.change, base, code.now(desk.change)):
        raise ChangeNotReady(f"no code of {desk.change.id} has changed yet", f"agentd impl {desk.change.id}")
    take_up_edits(desk)
    is_wished = wishes.review and not has_judged(desk.change.read())  # a resumed command has it already
    is_due = is_wished or not is_judged(desk)
    if is_due:
        round_ = len(desk.change.records(CODE.kind)) + 1
        reviewing.review(desk, proving.prove(desk, round_))
    return is_due


def answer(desk: Desk) -> None:
    """The implementer's part of a round."""
    if desk.change.read().phase is not Phase.IMPLEMENTING:
        raise WrongPhase(f"{desk.change.id} is {desk.change.read().phase}", f"agentd status {desk.change.id}")
    take_up_edits(desk)
    record = last(desk.change, CODE)
    if record is None or not resolve.open_findings(desk):
        what = "was never reviewed" if record is None else "has no open finding"
        raise ChangeNotReady(f"{desk.change.id} {what}", f"agentd review {desk.change.id}")
    if not is_answered(desk.change, record.round + 1, CODE.answer):
        resolve.resolve(desk, record, one_round_less)


def until_settled(desk: Desk, wishes: Wishes) -> None:
    if wishes.review or not _is_cut_off(desk):
        judge(desk, wishes)
    while desk.change.read().phase is Phase.IMPLEMENTING and _goes_on(desk, wishes):
        answer(desk)
        judge(desk, replace(wishes, review=False))


def is_judged(desk: Desk) -> bool:
    """The last verdict is on the tree as it is, and the implementer has answered nothing since."""
    record = last(desk.change, CODE)
    if record is None or is_answered(desk.change, record.round + 1, CODE.answer):
        return False
    if record.at < building.started_at(desk.change.read()):
        return False  # it was the code of another plan
    now, left = code.now(desk.change), proving.left_by(desk.change.read(), record.round)
    return any(not code.changed(desk.change, tree, now) for tree in (record.judged["tree"], left) if tree)


def take_up_edits(desk: Desk) -> None:
    if record := last(desk.change, CODE):
        edits.take_up(desk, record)
    remarks.take_up(desk, CODE)


def know_failures(desk: Desk, reason: str, by: str) -> None:
    """A person says that what failed before the first edit was there before."""

    def known(old: ChangeState) -> ChangeState:
        said = {"known": f"{reason} ({by})"}
        return proving.with_baseline(old, [{**row, **(said if _failed(row) else {})} for row in proving.baseline(old)])

    if not any(_failed(row) for row in proving.baseline(desk.change.read())):
        words = "no check failed before the first edit, so --known-failures has nothing to say"
        raise WrongPhase(words, f"leave it out: agentd impl {desk.change.id}")
    desk.run.update(known)
    made = events.DecisionMade(id="known-failures", answer="known", reason=reason, by=f"person:{by}", via="flag")
    desk.run.emit(made)


def _failed(row: Mapping[str, Any]) -> bool:
    return row.get("status") == CheckStatus.FAILED


def _is_cut_off(desk: Desk) -> bool:
    """The implementer was at work on the findings when the run ended: half of that is not judged."""
    state, record = desk.change.read(), last(desk.change, CODE)
    if record is None or not state.run or not state.run.rounds_left:
        return False
    begun = any((row.name, row.round) == (CODE.answer, record.round + 1) for row in state.steps)
    return begun and not is_answered(desk.change, record.round + 1, CODE.answer) and bool(resolve.open_findings(desk))


def _goes_on(desk: Desk, wishes: Wishes) -> bool:
    """Whether the implementer is to answer and the reviewer to judge again."""
    state, record = desk.change.read(), last(desk.change, CODE)
    assert state.run and record
    if not resolve.open_findings(desk):
        words = f'no finding is open any more; agentd impl {desk.change.id} --review, or --accept "REASON"'
        desk.run.emit(events.NoticeIssued(code="nothing-open", message=words))
        return False
    if record.verdict == ReviewVerdict.MAJOR_ISSUES and has_judged(state):
        return False
    if closed_nothing(desk.change, CODE):
        desk.run.emit(events.WarningIssued(code="stuck", message=f"round {state.round} closed no finding"))
        return False
    granted = wishes.rounds if wishes.rounds is not None else desk.config.workflow.implementation_iterations
    if state.run.rounds_left == 0 and granted:
        words = f"all rounds of this command are used; the same command grants {granted} more"
        desk.run.emit(events.WarningIssued(code="rounds-used", message=words))
    return state.run.rounds_left > 0
