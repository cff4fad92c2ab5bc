"""Which change a planning command means, and whether there is anything left to plan."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentd.change import Change, ChangeLocator, ChangeStanding, create_change, resolve_change
from agentd.domain import GitSetup, Phase, Workflow, WrongPhase
from agentd.engine.workflows import worktree_setup
from agentd.engine.workflows.verdict_status import JUDGED_EVENTS, is_plan_edited
from agentd.project import Project


@dataclass(frozen=True)
class OpenedChange:
    """`wanted` is the id asked for. `change` is None for one that does not exist yet."""

    wanted: str
    id: str
    change: Change | None
    notes: tuple[str, ...] = ()


def open_change_to_plan(
    project: Project, wanted: str, description: str | None, wish: GitSetup | None = None
) -> OpenedChange:
    found = resolve_change(ChangeLocator(project), wanted, description)
    if found.standing is ChangeStanding.NEW:
        taken = (f"{wanted} is taken, so this is {found.id}",) if found.id != wanted else ()
        return OpenedChange(wanted, found.id, None, taken)
    assert found.found
    change = Change(project, found.id, found.found.tree or "", Path(found.found.folder or ""))
    return OpenedChange(wanted, found.id, change, tuple(_ignored(change, description, wish)))


def _ignored(change: Change, description: str | None, wish: GitSetup | None) -> Iterator[str]:
    """What was said only for a new change."""
    if description:
        yield f"{change.id} goes on; the new description is ignored"
    place = change.read().git
    if wish and wish is not place.setup:
        where = f"on the branch {place.branch}" if place.branch else "in place"
        yield f"{change.id} goes on where it lives, {where}; --git {wish} is ignored"


def begin_change(
    project: Project,
    change_id: str,
    description: str,
    setup: GitSetup,
    prepare: Callable[[str], None],
    allow_dirty: bool = False,
) -> Change:
    """The branch or work tree, the folder and its first STATE.yaml. Nothing is made while something stands against it.

    `prepare` makes a work tree ready to work in. STATE.yaml comes last: cut off, the same command does it again.
    """
    to_be = Change(project, change_id, project.tree, project.changes_in(project.tree) / change_id)
    with to_be.running(f"agentd plan {change_id}") as held:  # nobody else begins it meanwhile
        ground = worktree_setup.inspect_repository(project, change_id)
        worktree_setup.refuse_setup(ground, change_id, setup, allow_dirty)
        place = worktree_setup.set_up_location(project, change_id, setup, ground)
        if setup is GitSetup.WORKTREE:
            prepare(os.path.join(ground.tree, project.prefix))
        worktree_setup.move_clarifications(project, change_id, place)
        return create_change(project, change_id, description, place, held.token)


def plan_settled(change: Change, rechallenge: bool = False) -> str | None:
    """What to say when there is nothing to plan; None: there is. A rejected plan is a no."""
    state = change.read()
    phase, is_cut = state.phase, state.run is not None and state.run.workflow == Workflow.PLAN
    if phase in (Phase.DRAFTING, Phase.PROPOSED) or ((is_cut or rechallenge) and phase in JUDGED_EVENTS):
        return None  # a run that was killed after its verdict is ended properly
    if phase is Phase.REJECTED:
        page = f"agentd/changes/{change.id}/CHALLENGE.md"
        what = f"the plan was edited since {page}" if is_plan_edited(change) else f"read {page} and edit the plan"
        raise WrongPhase(f"{change.id} was rejected", f"{what}; then: agentd plan {change.id} --rechallenge")
    if phase is not Phase.CHALLENGED:
        return f"{change.id} is {phase}, which is beyond planning"
    if is_plan_edited(change):
        return f"Planning of {change.id} is complete, but the plan was edited since it was approved"
    return f"Planning of {change.id} is complete"
