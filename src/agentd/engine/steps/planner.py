"""The planner's steps before the challenge: ask questions, write the documents, self-review, fix the format."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from agentd.change import Change, ChangeState, StepRecord, check_plan
from agentd.documents import (
    CLARIFICATIONS_FILE,
    PROPOSAL_FILE,
    TASKS_FILE,
    Clarification,
    Clarifications,
    SelfReviewResult,
    read_self_review,
    render_clarifications,
)
from agentd.domain import Phase, Role, Severity, StepStatus, clock, events, pluralize
from agentd.engine.calls import document_backup, retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.calls.run_context import change_project
from agentd.engine.steps.step_context import StepContext, read_plan_facts
from agentd.engine.tools.question_tools import QUESTIONS
from agentd.engine.tools.tool import Stage
from agentd.guard import plan_write_rule
from agentd.storage import files
from agentd.validation import RuleFinding

CLARIFY_STEP = "clarify"
FORMAT_STEP = "format-fix"


def call_planner(
    ctx: StepContext,
    step: str,
    prompt: str,
    values: Mapping[str, Any],
    *,
    number: int = 1,
    effect: Callable[[], bool] | None = None,
    missing: str = "",
    tool: str = "",
    resume: str | None = None,
    saves_session: bool = False,
) -> tuple[CallRequest, CallResult]:
    """Call the planner, who may write the documents of its own change, and fix the format of what it wrote.

    `missing` and `tool` are for the reminder, when the call has had no effect.
    """
    if resume is None:
        ctx.write_context(Role.PLANNER, Stage.PLAN)
    call = ctx.call_agent(
        Role.PLANNER,
        Stage.PLAN,
        step=step,
        round=ctx.round,
        number=number,
        prompt=ctx.prompt(prompt, Role.PLANNER, Stage.PLAN, **values),
        effect=effect,
        reminder=ctx.reminder(Role.PLANNER, Stage.PLAN, missing, tool) if tool else "",
        resume=resume,
        on_session=ctx.save_session if saves_session and resume is None else None,
        may_edit=plan_write_rule(ctx.change.id),
    )
    ctx.fix_format()
    return call


# ---- questions


@dataclass(frozen=True)
class OpenQuestions:
    """The planner's questions (topic, question, why, options, recommended) and the answers so far."""

    questions: Sequence[Mapping[str, Any]]
    answers: tuple[Clarification, ...] = ()


def ask_planner(ctx: StepContext) -> OpenQuestions:
    """Ask the planner for questions. They are saved, so an interrupted run does not pay for them again."""
    ctx.write_context(Role.PLANNER, Stage.CLARIFY)
    report = ctx.run.folder / QUESTIONS
    missing = "You have not sent your questions; if there are none, send an empty list."
    request, result = ctx.call_agent(
        Role.PLANNER,
        Stage.CLARIFY,
        step=CLARIFY_STEP,
        prompt=ctx.prompt(CLARIFY_STEP, Role.PLANNER, Stage.CLARIFY),
        effect=report.is_file,
        reminder=ctx.reminder(Role.PLANNER, Stage.CLARIFY, missing, "ask_questions"),
    )
    asked = OpenQuestions(json.loads(report.read_bytes()))
    if asked.questions:
        save_questions(ctx.change, asked)
    message = pluralize(len(asked.questions), "question") if asked.questions else "no questions"
    retries.finish_step(ctx.run, request, result, {}, message)
    return asked


def saved_questions(change: Change) -> OpenQuestions | None:
    try:
        data = json.loads(change.questions_file.read_bytes())
        if data["created_at"] != change.read().created_at:
            return None  # an earlier change had this id
        return OpenQuestions(data["questions"], tuple(Clarification(**one) for one in data["answers"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None  # then the planner is asked again


def save_questions(change: Change, asked: OpenQuestions) -> None:
    answers = [{name: text for name, text in asdict(one).items() if name != "span"} for one in asked.answers]
    data = {"created_at": change.read().created_at, "questions": list(asked.questions), "answers": answers}
    files.write(change.questions_file, json.dumps(data, ensure_ascii=False).encode())


def close_questions(ctx: StepContext, answers: Sequence[Clarification]) -> None:
    """Write clarifications.md if there are answers, and finish the step."""
    path = ctx.change.folder / CLARIFICATIONS_FILE
    if answers:
        text = render_clarifications(Clarifications(ctx.change.id, clock.now()[:10], tuple(answers)))
        with ctx.change.writing(ctx.run.token):
            files.write(path, text.encode())
    outputs = ctx.hashes(CLARIFICATIONS_FILE) if path.is_file() else {}
    steps = [step for step in ctx.change.read().steps if step.name == CLARIFY_STEP]
    was_asked = any(step.status is StepStatus.DONE for step in steps) or saved_questions(ctx.change) is not None
    status = StepStatus.DONE if was_asked else StepStatus.SKIPPED
    attempt = max((step.attempt for step in steps), default=1)
    row = StepRecord(CLARIFY_STEP, 1, 1, attempt, status, outputs, clock.now())
    ctx.run.update(lambda old: old.with_step(row))
    ctx.change.questions_file.unlink(missing_ok=True)


# ---- documents


def generate_document(ctx: StepContext, kind: str, spec: str) -> None:
    """Write one document (`proposal-gen`, `spec-gen` or `tasks-gen`); one that exists was written by a person.

    The session that writes the proposal becomes the planner's own: format-fix and reproposal resume it.
    """
    name = _document_name(kind, spec)
    exists = (ctx.change.folder / name).is_file()
    request, result = call_planner(
        ctx,
        f"{kind}-{spec}" if spec else kind,
        kind,
        {**_document_values(ctx, spec), "there": ctx.path(name) if exists else ""},
        effect=lambda: exists or document_backup.was_changed(ctx.change, ctx.run.folder, name),
        missing=f"{name} has not been written.",
        tool=f"create_{kind.removesuffix('-gen')}",
        saves_session=kind == "proposal-gen",
    )
    retries.finish_step(ctx.run, request, result, ctx.hashes(name))


def generate_plan(ctx: StepContext) -> None:
    """Write all missing documents in one session; if the planner has a session with a proposal, in that one."""

    def names() -> list[str]:
        return [PROPOSAL_FILE, *(f"specs/{one}.md" for one in _specs(ctx)), TASKS_FILE]

    def is_written(name: str) -> bool:
        return (ctx.change.folder / name).is_file()

    has_proposal = any(step.name == "proposal-gen" for step in ctx.change.read().steps)
    resume = ctx.planner_session() if has_proposal else None
    if resume:
        ctx.write_context(Role.PLANNER, Stage.PLAN)  # the prompt refers to it
    request, result = call_planner(
        ctx,
        "plan-gen",
        "plan-gen",
        {"there": [ctx.path(name) for name in filter(is_written, names())]},
        effect=lambda: all(map(is_written, names())),
        missing="Not every document of the plan has been written.",
        tool="create_tasks",
        resume=resume,
        saves_session=True,
    )
    retries.finish_step(ctx.run, request, result, ctx.hashes(*names()))


def save_base_specs(ctx: StepContext) -> None:
    """Keep each affected spec as the project has it now, once, for the merge when the change is archived."""
    saved = ctx.change.read().base.specs
    bases: dict[str, str | None] = {}
    for spec in _specs(ctx):
        if spec in saved:
            continue
        bases[spec] = None
        if main := _main_spec(ctx, spec):
            data = files.read(change_project(ctx.change).root / main)
            with ctx.change.writing(ctx.run.token):
                files.write(ctx.change.folder / "base" / f"{spec}.md", data)
            bases[spec] = files.hash_bytes(data)
    if bases:
        ctx.run.update(lambda old: replace(old, base=replace(old.base, specs={**old.base.specs, **bases})))


def _document_name(kind: str, spec: str) -> str:
    return f"specs/{spec}.md" if spec else PROPOSAL_FILE if kind.startswith("proposal") else TASKS_FILE


def _document_values(ctx: StepContext, spec: str) -> dict[str, Any]:
    """Return the values of the prompts that write or review one document."""
    specs, proposal = _specs(ctx), ctx.path(PROPOSAL_FILE)
    if not spec:
        return {"proposal": proposal, "specs": [ctx.path(f"specs/{one}.md") for one in specs]}
    index = specs.index(spec)
    return {
        "spec": spec,
        "number": index + 1,
        "total": len(specs),
        "proposal": proposal,
        "earlier": [ctx.path(f"specs/{one}.md") for one in specs[:index]],
        "main": _main_spec(ctx, spec),
    }


def _main_spec(ctx: StepContext, spec: str) -> str:
    """Return the path of the project's own spec relative to the project root; "" if there is none."""
    name = f"agentd/specs/{spec}.md"
    return name if (change_project(ctx.change).root / name).is_file() else ""


def _specs(ctx: StepContext) -> tuple[str, ...]:
    facts = read_plan_facts(ctx.change)
    return facts.specs if facts else ()


# ---- self-review


def run_self_review(ctx: StepContext, kind: str, spec: str, number: int, limit: int) -> None:
    """Let the planner review and fix what it wrote: in a fresh session, or for a whole plan in the same one."""
    before = ctx.change.hashes()
    if kind == "plan-review":
        label, names, resume = "the documents", tuple(before), ctx.planner_session()
        values: dict[str, Any] = {"documents": [ctx.path(name) for name in names], "fresh": resume is None}
    else:
        label, resume = _document_name(kind, spec), None
        names, values = (label,), {**_document_values(ctx, spec), "document": ctx.path(label)}
    step = f"{kind}-{spec}" if spec else kind
    request, call = call_planner(ctx, step, kind, values, number=number, resume=resume)
    after = ctx.change.hashes()
    result = read_self_review(call.text.replace(request.prompt.strip(), ""))  # a repeated prompt is no answer
    message, warnings = self_review_outcome(result, before != after, label, number, limit)
    for code, warning in warnings:
        ctx.run.emit(events.WarningIssued(**request.names(call.attempt), code=code, message=warning))
    outputs = {name: after[name] for name in names if name in after}

    def skip_rest(old: ChangeState) -> ChangeState:
        if result is SelfReviewResult.NEEDS_REVISION:
            return old
        for later in range(number + 1, limit + 1):  # so that a resumed run does not do them
            old = old.with_step(StepRecord(step, request.round, later, 1, StepStatus.SKIPPED, {}, clock.now()))
        return old

    retries.finish_step(ctx.run, request, call, outputs, message, skip_rest)


def self_review_outcome(
    result: SelfReviewResult, is_changed: bool, label: str, number: int, limit: int
) -> tuple[str, list[tuple[str, str]]]:
    """Return the message of the step, and warnings as code and text."""
    head = f"Review {number}"
    if result is SelfReviewResult.MISSING:
        return f"{head}: PASS", [("review-marker", f"{head} of {label} ended without its marker; taken as PASS")]
    if result is SelfReviewResult.PASS:
        return f"{head}: PASS", []
    warnings = []
    if not is_changed:
        warnings.append(("review-unchanged", f"{head} says NEEDS_REVISION, but nothing in {label} was changed"))
    if number == limit:
        text = f"{label}: {pluralize(limit, 'review')}, and the last one still asked for changes"
        warnings.append(("review-limit", text))
    return f"{head}: NEEDS_REVISION{' (auto-fixed)' if is_changed else ''}", warnings


# ---- format


def is_format_due(ctx: StepContext) -> bool:
    """Return whether a planner has written something."""
    steps = ctx.change.read().steps
    return any(step.status is StepStatus.DONE and step.name != CLARIFY_STEP for step in steps)


def format_faults(ctx: StepContext) -> tuple[RuleFinding, ...]:
    """Return the findings of high severity that are left after agentd has fixed what it can."""
    change = ctx.change
    exists = [(change.folder / name).is_file() for name in (PROPOSAL_FILE, TASKS_FILE)]
    is_complete = change.read().phase is not Phase.DRAFTING or exists != [True, False]  # else more documents follow
    ctx.fix_format()
    found = check_plan(change, ctx.config.validation, complete=is_complete)
    return tuple(one for one in found if one.severity is Severity.HIGH)


def report_faults(ctx: StepContext, faults: Iterable[RuleFinding]) -> None:
    for one in faults:
        event = events.FindingReported(
            id="",
            severity=one.severity,
            title=one.message,
            where=f"{one.file}:{one.line}",
            verified=True,
            by=f"rule:{one.rule}",
            state="open",
        )
        ctx.run.emit(event)


def fixes_used(state: ChangeState) -> int:
    """Count the format-fix steps of this command since the last other step."""
    steps = state.steps[state.run.steps_before if state.run else 0 :]
    recent = takewhile(lambda step: step.name == FORMAT_STEP, reversed(steps))
    return sum(step.status is StepStatus.DONE for step in recent)


def run_format_fix(ctx: StepContext, faults: Iterable[RuleFinding]) -> None:
    """Let the planner fix the faults in its own session. They are validated again afterwards."""
    resume, before, round_ = ctx.planner_session(), ctx.change.hashes(), ctx.round
    fields = ("line", "rule", "message", "hint")
    findings = [{"file": ctx.path(one.file), **{name: getattr(one, name) for name in fields}} for one in faults]
    done = [
        step.number
        for step in ctx.change.read().steps
        if (step.name, step.round, step.status) == (FORMAT_STEP, round_, StepStatus.DONE)
    ]
    values = {"findings": findings, "fresh": resume is None}
    number = max(done, default=0) + 1
    request, result = call_planner(
        ctx, FORMAT_STEP, FORMAT_STEP, values, number=number, resume=resume, saves_session=True
    )
    retries.finish_step(ctx.run, request, result, ctx.changed_since(before))
