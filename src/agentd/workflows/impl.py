"""`impl`: from an approved plan to code that is proved and reviewed. Running is resuming."""

from contextlib import AbstractContextManager
from dataclasses import replace

from agentd.domain.terms import Phase, Workflow
from agentd.project import git
from agentd.steps.bench import CODE
from agentd.steps.desk import Desk
from agentd.workflows import code_decisions, dependence, reviewing, seen, starting
from agentd.workflows.under_way import begun, under_way
from agentd.workflows.verdict import judged_already
from agentd.workflows.wishes import Wishes


def impl(desk: Desk, wishes: Wishes) -> None:
    """The code of all tasks, and rounds until a verdict settles it; of some tasks, and no more."""
    with _implementing(desk, wishes):
        if desk.change.read().phase is Phase.COMPLETE and not wishes.review:
            return  # a killed run came to its verdict
        dependence.warn(desk)
        reviewing.wanted(desk, wishes)  # refused before anything runs
        _start(desk, wishes)
        if not wishes.review:
            reviewing.make(desk, wishes)
        if not wishes.tasks:  # what is known to fail makes another verdict of the same tree
            reviewing.until_settled(desk, replace(wishes, review=wishes.review or bool(wishes.known_failures)))


def implement(desk: Desk, wishes: Wishes) -> None:
    """The code only: the phase command `implement`."""
    with _implementing(desk, wishes):
        _start(desk, wishes)
        reviewing.make(desk, wishes)


def review(desk: Desk, wishes: Wishes) -> None:
    """Checks and verdict only: the phase command `review`."""
    with _implementing(desk, wishes):
        if not reviewing.judge(desk, wishes):
            desk.run.emit(judged_already(desk.change, CODE, f"agentd impl {desk.change.id} --review"))


def resolve(desk: Desk, wishes: Wishes) -> None:
    """The implementer's answers only: the phase command `resolve-reviews`."""
    with _implementing(desk, wishes):
        reviewing.answer(desk)


def decide(desk: Desk, answer: str, reason: str, by: str, read: str = "") -> None:
    """What a person decides without being asked: `--accept`, `--send-back`, `--plan-wrong`; `read` as for a plan."""
    tree = seen.seen(desk.change).get(seen.CODE_TREE, "") if read else ""
    seen.check(desk.change, read)
    with _implementing(desk, Wishes(rounds=0)):
        reviewing.take_up_edits(desk)
        seen.check(desk.change, read)  # a comment may have come in between
        code_decisions.BY_NAME[answer](desk, reason, by, tree)


def _start(desk: Desk, wishes: Wishes) -> None:
    starting.start(desk)
    if wishes.known_failures:
        reviewing.know_failures(desk, wishes.known_failures, git.user_name(desk.change.tree))


def _implementing(desk: Desk, wishes: Wishes) -> AbstractContextManager[None]:
    settings = desk.config.workflow
    granted = wishes.rounds if wishes.rounds is not None else settings.implementation_iterations
    return under_way(desk, lambda old: begun(old, Workflow.IMPL, granted))
