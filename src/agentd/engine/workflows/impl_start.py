"""The start of impl: whether the change is ready, and the state before the first edit."""

from dataclasses import replace

from agentd.change import Change, ChangeState
from agentd.domain import ChangeNotReady, CheckStatus, Phase, Refusal, TransitionEvent, WarningIssued, clock
from agentd.engine.steps import check_run, code_trees
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import task_batches
from agentd.engine.workflows.verdict_status import is_plan_edited
from agentd.merge import find_conflict_markers
from agentd.project import git
from agentd.trace import check_trees_exist

_GUIDANCE = {
    Phase.DRAFTING: "agentd plan %s",
    Phase.PROPOSED: "agentd plan %s",
    Phase.REJECTED: "agentd view %s",
}


def impl_settled(change: Change, is_review: bool) -> str | None:
    """Return a message if there is nothing to implement; None if there is."""
    state = change.read()
    if state.phase in (Phase.CHALLENGED, Phase.IMPLEMENTING) or (state.phase is Phase.COMPLETE and is_review):
        if is_review and state.phase is Phase.CHALLENGED:
            raise ChangeNotReady(f"{change.id} has no code to review yet", f"agentd impl {change.id}")
        return None
    if state.phase is Phase.COMPLETE:
        return None if state.run else _complete(change)  # finish a run that was killed
    if not state.phase.is_open:
        return f"{change.id} is {state.phase}"
    what = "its plan was rejected" if state.phase is Phase.REJECTED else "its plan is not approved yet"
    raise ChangeNotReady(f"{change.id} is {state.phase}: {what}", _GUIDANCE[state.phase] % change.id)


def _complete(change: Change) -> str:
    names = [*code_trees.specs_edited_since_review(change), *code_trees.files_edited_since_review(change)]
    if not names:
        return f"{change.id} is complete"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{change.id} is complete, but {', '.join(names[:3])}{more} changed since: agentd impl {change.id} --review"


def start_implementation(ctx: StepContext) -> None:
    """Record the base tree and the results of the checks on it, once, before the first edit."""
    change, state = ctx.change, ctx.change.read()
    refuse_unmerged(change)
    refuse_conflict_markers(change)
    if state.base.tree:
        check_trees_exist(change.tree, state.base.tree, change.id)
    if not ctx.config.checks:
        message = "no checks are configured, so nothing verifies this code: add [[checks]] to agentd/config.toml"
        ctx.run.emit(WarningIssued(code="no-checks", message=message))
    if state.phase is not Phase.CHALLENGED:
        if state.base.tree is None:  # a folder from an older version
            ctx.run.update(lambda old: replace(old, base=replace(old.base, tree=_older(change, old))))
        _warn_of_edits(ctx, state)
        return
    if is_plan_edited(change):
        hint = f'agentd plan {change.id} --rechallenge, or agentd plan {change.id} --accept "REASON"'
        raise ChangeNotReady(f"the plan of {change.id} was edited since it was approved", hint)
    task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    if state.base.tree:  # an earlier plan was implemented already
        ctx.run.update(lambda old: _started(old, str(old.base.tree), change.hashes()))
        return
    proof = check_run.run_checks(ctx, check_run.BASELINE_STEP)
    code_trees.keep_tree(change, "base", proof.tree)
    _warn_of_failures(ctx, proof)
    ctx.run.update(lambda old: _started(check_run.with_baseline(old, proof.rows), proof.tree, change.hashes()))


def _warn_of_failures(ctx: StepContext, proof: check_run.CheckRun) -> None:
    """Warn before money is spent: some checks will block every review."""
    for result, _ in proof.results:
        if not result.required or result.status is CheckStatus.PASSED:
            continue
        if result.status is CheckStatus.COULD_NOT_RUN:
            message = f"the required check {result.name} could not run; no review can approve while that is so"
        elif result.failed_tests and result.is_whole:
            message = f"the required check {result.name} fails already; only what fails newly will count"
        else:
            message = (
                f"the required check {result.name} fails already, and its failures have no names to compare: it will "
                f'block every review, unless you run agentd impl {ctx.change.id} --known-failures "REASON"'
            )
        ctx.run.emit(WarningIssued(code="fails-already", message=message))


def _started(old: ChangeState, base: str, hashes: dict[str, str]) -> ChangeState:
    new = replace(old, base=replace(old.base, tree=base), round=0)
    why = f"the code as it was is {base[:12]}"
    return new.with_transition(
        TransitionEvent.IMPLEMENTATION_STARTED, by="agentd", why=why, at=clock.now(), hashes=hashes
    )


def _warn_of_edits(ctx: StepContext, state: ChangeState) -> None:
    """Warn about documents edited since the start; tasks.md is excluded because agentd ticks its boxes."""
    starts = [n for n, one in enumerate(state.history, 1) if one.event is TransitionEvent.IMPLEMENTATION_STARTED]
    begun = state.history[starts[-1] - 1].hashes if starts else {}
    edited = (
        [name for name in state.changed_documents(begun, ctx.change.hashes(), starts[-1]) if name != "tasks.md"]
        if begun
        else []
    )
    if edited:
        message = f"{', '.join(edited)} changed since the implementation began; the code is judged by the current plan"
        ctx.run.emit(WarningIssued(code="plan-edited", message=message))


def _older(change: Change, old: ChangeState) -> str:
    return git.run(change.tree, "rev-parse", f"{old.base.commit or 'HEAD'}^{{tree}}")


def refuse_conflict_markers(change: Change) -> None:
    """Refuse specs with unresolved conflicts: code cannot be judged by them."""
    for path in sorted((change.folder / "specs").glob("*.md")):
        if lines := find_conflict_markers(path.read_text("utf-8", "replace"), path.name):
            message = f"specs/{path.name}:{lines[0]} has an unresolved conflict"
            raise ChangeNotReady(message, f"resolve it, then run agentd validate {change.id}")


def refuse_unmerged(change: Change) -> None:
    rows = git.run(change.tree, "ls-files", "--unmerged", "-z").split("\0")
    if names := sorted({row.partition("\t")[2] for row in rows if row}):
        message = f"a merge is not finished: {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}"
        raise Refusal(message, "git status shows it; finish it, then run the command again")
