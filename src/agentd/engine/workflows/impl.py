"""`impl`: from an approved plan to code that is proved and reviewed. Running is resuming."""

from contextlib import AbstractContextManager
from dataclasses import replace

from agentd.domain import Phase, Workflow
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import code_decisions, dependencies, impl_rounds, impl_start, read_digest
from agentd.engine.workflows.run_options import RunOptions
from agentd.engine.workflows.run_scope import begin_run_state, run_scope
from agentd.engine.workflows.verdict_status import already_judged_notice
from agentd.project import git


def run_impl(desk: StepContext, wishes: RunOptions) -> None:
    """The code of all tasks, and rounds until a verdict settles it; of some tasks, and no more."""
    with _implementing(desk, wishes):
        if desk.change.read().phase is Phase.COMPLETE and not wishes.review:
            return  # a killed run came to its verdict
        dependencies.warn_dependencies(desk)
        impl_rounds.wanted_tasks(desk, wishes)  # refused before anything runs
        _start(desk, wishes)
        if not wishes.review:
            impl_rounds.build_tasks(desk, wishes)
        if not wishes.tasks:  # what is known to fail makes another verdict of the same tree
            impl_rounds.run_review_rounds(desk, replace(wishes, review=wishes.review or bool(wishes.known_failures)))


def run_implement(desk: StepContext, wishes: RunOptions) -> None:
    """The code only: the phase command `implement`."""
    with _implementing(desk, wishes):
        _start(desk, wishes)
        impl_rounds.build_tasks(desk, wishes)


def run_review(desk: StepContext, wishes: RunOptions) -> None:
    """Checks and verdict only: the phase command `review`."""
    with _implementing(desk, wishes):
        if not impl_rounds.judge_code(desk, wishes):
            desk.run.emit(already_judged_notice(desk.change, REVIEWER_SPEC, f"agentd impl {desk.change.id} --review"))


def run_resolve(desk: StepContext, wishes: RunOptions) -> None:
    """The implementer's answers only: the phase command `resolve-reviews`."""
    with _implementing(desk, wishes):
        impl_rounds.answer_review(desk)


def decide_code(desk: StepContext, answer: str, reason: str, by: str, read: str = "") -> None:
    """What a person decides without being asked: `--accept`, `--send-back`, `--plan-wrong`; `read` as for a plan."""
    tree = read_digest.current_reading(desk.change).get(read_digest.CODE_TREE_KEY, "") if read else ""
    read_digest.check_reading(desk.change, read)
    with _implementing(desk, RunOptions(rounds=0)):
        impl_rounds.apply_code_edits(desk)
        read_digest.check_reading(desk.change, read)  # a comment may have come in between
        code_decisions.CODE_DECISIONS[answer](desk, reason, by, tree)


def _start(desk: StepContext, wishes: RunOptions) -> None:
    impl_start.start_implementation(desk)
    if wishes.known_failures:
        impl_rounds.accept_known_failures(desk, wishes.known_failures, git.user_name(desk.change.tree))


def _implementing(desk: StepContext, wishes: RunOptions) -> AbstractContextManager[None]:
    settings = desk.config.workflow
    granted = wishes.rounds if wishes.rounds is not None else settings.implementation_iterations
    return run_scope(desk, lambda old: begin_run_state(old, Workflow.IMPL, granted))
