"""The planner writes: the proposal, each affected spec, the tasks; or all of them in one session."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from agentd.change import Change, ChangeState, StepRecord, check_plan
from agentd.documents import (
    CLARIFICATIONS_FILE,
    Clarification,
    Clarifications,
    SelfReviewResult,
    read_self_review,
    render_clarifications,
)
from agentd.domain import Phase, Role, Severity, StepStatus, clock, events
from agentd.engine.calls import document_backup, retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps.step_context import StepContext, read_plan_facts
from agentd.engine.tools.question_tools import QUESTIONS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files
from agentd.validation import RuleFinding

PROPOSAL, TASKS = "proposal.md", "tasks.md"


def generate_proposal(ctx: StepContext) -> None:
    """Its session is the planner's own: format-fix and reproposal go on in it."""
    missing = "There is no proposal yet."
    _write(ctx, "proposal-gen", "proposal-gen", PROPOSAL, missing, "create_proposal", on_session=ctx.keep_session)


def generate_spec(ctx: StepContext, spec_id: str) -> None:
    name, missing = f"specs/{spec_id}.md", f"There is no spec {spec_id} yet."
    _write(ctx, f"spec-gen-{spec_id}", "spec-gen", name, missing, "create_spec", values=spec_values(ctx, spec_id))


def spec_values(ctx: StepContext, spec_id: str) -> dict[str, Any]:
    specs = _specs(ctx)
    place = specs.index(spec_id)
    return {
        "spec": spec_id,
        "number": place + 1,
        "total": len(specs),
        "proposal": ctx.path(PROPOSAL),
        "earlier": [ctx.path(f"specs/{one}.md") for one in specs[:place]],
        "main": ctx.main_spec(spec_id),
    }


def generate_tasks(ctx: StepContext) -> None:
    values = tasks_values(ctx)
    _write(ctx, "tasks-gen", "tasks-gen", TASKS, "There are no tasks yet.", "create_tasks", values=values)


def tasks_values(ctx: StepContext) -> dict[str, Any]:
    return {"proposal": ctx.path(PROPOSAL), "specs": [ctx.path(f"specs/{one}.md") for one in _specs(ctx)]}


def generate_plan(ctx: StepContext) -> None:
    """Everything that is not there yet, in one session; after a proposal of its own it goes on in that one."""
    has_proposal = any(step.name == "proposal-gen" for step in ctx.change.read().steps)
    resume = ctx.planner_session() if has_proposal else None
    there = [name for name in _documents(ctx) if (ctx.change.folder / name).is_file()]
    work = _work(
        ctx,
        "plan-gen",
        "plan-gen",
        effect=lambda: all((ctx.change.folder / name).is_file() for name in _documents(ctx)),
        missing="Not every document of the plan is there yet.",
        tool="create_tasks",
        values={"there": [ctx.path(name) for name in there]},
        resume=resume,
        on_session=None if resume else ctx.keep_session,
    )
    _done(ctx, work, lambda: _documents(ctx))


def save_base_specs(ctx: StepContext) -> None:
    """Each affected spec as the project has it now, for the merge at the end; taken once and never again."""
    known = ctx.change.read().base.specs
    found: dict[str, str | None] = {}
    for spec_id in _specs(ctx):
        if spec_id in known:
            continue
        main = ctx.main_spec(spec_id)
        if not main:
            found[spec_id] = None
            continue
        data = files.read(ctx.project_file(main))
        with ctx.change.writing(ctx.run.token):
            files.write(ctx.change.folder / "base" / f"{spec_id}.md", data)
        found[spec_id] = files.hash_bytes(data)
    if found:
        ctx.run.update(partial(_with_bases, found))


def _with_bases(found: dict[str, str | None], old: ChangeState) -> ChangeState:
    return replace(old, base=replace(old.base, specs={**old.base.specs, **found}))


def _write(
    ctx: StepContext,
    step: str,
    prompt: str,
    name: str,
    missing: str,
    tool: str,
    *,
    values: Mapping[str, Any] | None = None,
    on_session: Callable[[str], None] | None = None,
) -> None:
    """One document, through one tool. One that is there before is a person's, and may be right as it is."""
    is_there = (ctx.change.folder / name).is_file()
    work = _work(
        ctx,
        step,
        prompt,
        effect=lambda: is_there or document_backup.was_changed(ctx.change, ctx.run.folder, name),
        missing=missing,
        tool=tool,
        values={**(values or {}), "there": ctx.path(name) if is_there else ""},
        on_session=on_session,
    )
    _done(ctx, work, lambda: (name,))


def _work(
    ctx: StepContext,
    step: str,
    prompt: str,
    *,
    effect: Callable[[], bool],
    missing: str,
    tool: str,
    values: Mapping[str, Any],
    resume: str | None = None,
    on_session: Callable[[str], None] | None = None,
) -> CallRequest:
    ctx.write_context(Role.PLANNER, Stage.PLAN)
    return ctx.planner_work(
        step,
        ctx.prompt(prompt, Role.PLANNER, Stage.PLAN, **values),
        effect=effect,
        reminder=ctx.reminder(Role.PLANNER, Stage.PLAN, missing, tool),
        resume=resume,
        on_session=on_session,
    )


def _done(ctx: StepContext, work: CallRequest, names: Callable[[], Sequence[str]]) -> None:
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    retries.finish_step(ctx.run, work, done, ctx.hashes(*names()))


def _specs(ctx: StepContext) -> tuple[str, ...]:
    found = read_plan_facts(ctx.change)
    return found.specs if found else ()


def _documents(ctx: StepContext) -> list[str]:
    """All that this plan needs, as far as its proposal says."""
    return [PROPOSAL, *(f"specs/{one}.md" for one in _specs(ctx)), TASKS]


@dataclass(frozen=True)
class SelfReviewPass:
    """One look at some documents, the `number`-th of at most `most`."""

    names: tuple[str, ...]
    number: int
    most: int


def run_self_review(ctx: StepContext, kind: str, spec: str, number: int, most: int) -> None:
    """In a fresh session; in automated mode in the one that wrote them all."""
    step = f"{kind}-{spec}" if spec else kind
    names = _names(ctx, kind, spec)
    wanted = SelfReviewPass(names, number, most)
    ctx.write_context(Role.PLANNER, Stage.PLAN)
    resume = ctx.planner_session() if kind == "plan-review" else None
    work = ctx.planner_work(
        step,
        ctx.prompt(kind, Role.PLANNER, Stage.PLAN, **_values(ctx, kind, spec, names, resume is None)),
        number=number,
        effect=None,
        resume=resume,
    )
    before = ctx.change.hashes()
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    after = ctx.change.hashes()
    said = read_self_review(done.text.replace(work.prompt.strip(), ""))  # a repeated prompt is not its own word
    message, warnings = self_review_outcome(said, before != after, wanted)
    for code, warning in warnings:
        ctx.run.emit(events.WarningIssued(**work.names(done.attempt), code=code, message=warning))
    outputs = {name: after[name] for name in names if name in after}
    is_last = said is not SelfReviewResult.NEEDS_REVISION
    retries.finish_step(
        ctx.run, work, done, outputs, message, lambda old: _without_more(old, work, most) if is_last else old
    )


def _names(ctx: StepContext, kind: str, spec: str) -> tuple[str, ...]:
    if spec:
        return (f"specs/{spec}.md",)
    return {"proposal-review": (PROPOSAL,), "tasks-review": (TASKS,)}.get(kind) or tuple(ctx.change.hashes())


def _values(ctx: StepContext, kind: str, spec: str, names: tuple[str, ...], fresh: bool) -> dict[str, Any]:
    """What the prompt of that kind asks for."""
    if kind == "plan-review":
        return {"documents": [ctx.path(name) for name in names], "fresh": fresh}
    one = {"document": ctx.path(names[0])}
    if kind == "spec-review":
        return one | spec_values(ctx, spec)
    return one | tasks_values(ctx) if kind == "tasks-review" else one


def self_review_outcome(
    said: SelfReviewResult, changed: bool, wanted: SelfReviewPass
) -> tuple[str, list[tuple[str, str]]]:
    """What came of it in words, and what is to be warned of."""
    head = f"Review {wanted.number}"
    names = wanted.names[0] if len(wanted.names) == 1 else "the documents"
    if said is SelfReviewResult.MISSING:
        return f"{head}: PASS", [("review-marker", f"{head} of {names} ended without its marker; taken as PASS")]
    if said is SelfReviewResult.PASS:
        return f"{head}: PASS", []
    warnings = []
    if not changed:
        warnings.append(("review-unchanged", f"{head} says NEEDS_REVISION, but nothing in {names} was changed"))
    if wanted.number == wanted.most:
        looks = "1 review" if wanted.most == 1 else f"{wanted.most} reviews"
        warnings.append(("review-limit", f"{names}: {looks}, and the last one still asked for changes"))
    return f"{head}: NEEDS_REVISION{' (auto-fixed)' if changed else ''}", warnings


def _without_more(old: ChangeState, work: CallRequest, most: int) -> ChangeState:
    """The looks that are not needed any more, so that a resumed run does not take them."""
    for number in range(work.number + 1, most + 1):
        old = old.with_step(StepRecord(work.step, work.round, number, 1, StepStatus.SKIPPED, {}, clock.now()))
    return old


FORMAT_STEP = "format-fix"


def is_format_due(ctx: StepContext) -> bool:
    """A planner has written something."""
    rows = ctx.change.read().steps
    return any(step.status is StepStatus.DONE and step.name != CLARIFY_STEP for step in rows)


def format_faults(ctx: StepContext) -> tuple[RuleFinding, ...]:
    """What is left to mend after agentd has put right what it can: findings of high severity."""
    change = ctx.change
    there = [(change.folder / name).is_file() for name in ("proposal.md", "tasks.md")]
    complete = change.read().phase is not Phase.DRAFTING or there != [True, False]  # a proposal alone is a beginning
    ctx.fix_format()
    found = check_plan(change, ctx.config.validation, complete=complete)
    return tuple(one for one in found if one.severity is Severity.HIGH)


def report_faults(ctx: StepContext, found: Iterable[RuleFinding]) -> None:
    for one in found:
        made = events.FindingReported(
            id="",
            severity=one.severity,
            title=one.message,
            where=f"{one.file}:{one.line}",
            verified=True,
            by=f"rule:{one.rule}",
            state="open",
        )
        ctx.run.emit(made)


def fixes_used(state: ChangeState) -> int:
    """How often the planner has mended since the last other step, within this command."""
    since = state.run.steps_before if state.run else 0
    count = 0
    for step in reversed(state.steps[since:]):
        if step.name != FORMAT_STEP:
            break
        count += step.status is StepStatus.DONE
    return count


def run_format_fix(ctx: StepContext, found: Iterable[RuleFinding]) -> None:
    resume = ctx.planner_session()
    if resume is None:
        ctx.write_context(Role.PLANNER, Stage.PLAN)
    findings = [
        {"file": ctx.path(one.file), "line": one.line, "rule": one.rule, "message": one.message, "hint": one.hint}
        for one in found
    ]
    before = ctx.change.hashes()
    work = ctx.planner_work(
        FORMAT_STEP,
        ctx.prompt(FORMAT_STEP, Role.PLANNER, Stage.PLAN, findings=findings, fresh=resume is None),
        number=_number(ctx.change.read().steps, ctx.round),
        effect=None,  # what is left is validated again
        resume=resume,
        on_session=None if resume else ctx.keep_session,
    )
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    after = ctx.change.hashes()
    retries.finish_step(ctx.run, work, done, {name: one for name, one in after.items() if before.get(name) != one})


def _number(steps: Iterable[StepRecord], round_: int) -> int:
    """The next one; one that was cut off is done again under its number."""
    rows = [step for step in steps if (step.name, step.round) == (FORMAT_STEP, round_)]
    last = max((step.number for step in rows), default=0)
    is_done = any(step.number == last and step.status is StepStatus.DONE for step in rows)
    return last + 1 if is_done or not rows else last


CLARIFY_STEP = "clarify"


@dataclass(frozen=True)
class OpenQuestions:
    """What the planner wants to know (topic, question, why, options, recommended), and the answers so far."""

    questions: Sequence[Mapping[str, Any]]
    answers: tuple[Clarification, ...] = ()


def ask_planner(ctx: StepContext) -> OpenQuestions:
    """Kept until all is answered: a run that is cut off meanwhile neither pays nor asks again."""
    ctx.write_context(Role.PLANNER, Stage.CLARIFY)
    report = ctx.run.folder / QUESTIONS
    work = CallRequest(
        step=CLARIFY_STEP,
        role=Role.PLANNER,
        stage=Stage.CLARIFY,
        prompt=ctx.prompt(CLARIFY_STEP, Role.PLANNER, Stage.CLARIFY),
        effect=report.is_file,
        reminder=ctx.reminder(Role.PLANNER, Stage.CLARIFY, "No questions were sent, not even none.", "ask_questions"),
    )
    done = retries.perform_call(ctx.run, work)
    asked = OpenQuestions(json.loads(report.read_bytes()))
    if asked.questions:
        save_questions(ctx.change, asked)
    count = len(asked.questions)
    retries.finish_step(ctx.run, work, done, {}, f"{count or 'no'} question{'' if count == 1 else 's'}")
    return asked


def saved_questions(change: Change) -> OpenQuestions | None:
    try:
        data = json.loads(change.questions_file.read_bytes())
        if data["created_at"] != change.read().created_at:
            return None  # an earlier change had this id
        return OpenQuestions(data["questions"], tuple(Clarification(**one) for one in data["answers"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None  # then it is asked anew


def save_questions(change: Change, asked: OpenQuestions) -> None:
    answers = [{name: text for name, text in asdict(one).items() if name != "span"} for one in asked.answers]
    data = {"created_at": change.read().created_at, "questions": list(asked.questions), "answers": answers}
    files.write(change.questions_file, json.dumps(data, ensure_ascii=False).encode())


def close_questions(ctx: StepContext, answered: Sequence[Clarification]) -> None:
    """No answers leave no file."""
    if answered:
        text = render_clarifications(Clarifications(ctx.change.id, clock.now()[:10], tuple(answered)))
        with ctx.change.writing(ctx.run.token):
            files.write(ctx.change.folder / CLARIFICATIONS_FILE, text.encode())
    is_there = (ctx.change.folder / CLARIFICATIONS_FILE).is_file()
    outputs = ctx.hashes(CLARIFICATIONS_FILE) if is_there else {}
    rows = [step for step in ctx.change.read().steps if step.name == CLARIFY_STEP]
    asked = any(step.status is StepStatus.DONE for step in rows) or saved_questions(ctx.change) is not None
    status = StepStatus.DONE if asked else StepStatus.SKIPPED
    row = StepRecord(CLARIFY_STEP, 1, 1, max((step.attempt for step in rows), default=1), status, outputs, clock.now())
    ctx.run.update(lambda old: old.with_step(row))
    ctx.change.questions_file.unlink(missing_ok=True)
