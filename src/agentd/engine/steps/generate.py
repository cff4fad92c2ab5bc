"""The planner writes: the proposal, each affected spec, the tasks; or all of them in one session."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agentd.change import ChangeState
from agentd.domain import Role
from agentd.engine.calls import document_backup, retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps import plan_facts
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

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
    found = plan_facts.read_plan_facts(ctx.change)
    return found.specs if found else ()


def _documents(ctx: StepContext) -> list[str]:
    """All that this plan needs, as far as its proposal says."""
    return [PROPOSAL, *(f"specs/{one}.md" for one in _specs(ctx)), TASKS]
