"""A change that may be new, and where it is to live: what `plan`, `proposal` and `run` share."""

import os
from collections.abc import Callable

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.cli import detaching, output, place, running
from agentd.cli.options import Options
from agentd.cli.running import Course, Work, run, trust
from agentd.domain.terms import GitSetup, Role
from agentd.engine.calls import agent_selection
from agentd.engine.workflows import change_opening, dependencies, plan_steps
from agentd.engine.workflows.change_opening import OpenedChange
from agentd.engine.workflows.clarification import (
    needs_no_clarification,
    nobody_to_ask_error,
    refuse_second_clarification,
)
from agentd.project.config import Config
from agentd.project.layout import Project, find_project


def begin(
    change_id: str,
    description: str | None,
    options: Options,
    work: Work,
    settled: Callable[[Change, bool], str | None] = change_opening.plan_settled,
    ahead: Course = plan_steps.plan_steps,
) -> int:
    """Plan a change that may be new."""
    project = find_project()
    wish = GitSetup(options.git_setup) if options.git_setup else None
    opened = change_opening.open_change_to_plan(project, change_id, description, wish)
    for note in opened.notes:
        output.note(note)
    change = opened.change
    if options.depends_on:
        dependencies.check_dependencies(project, opened.id, options.depends_on)
    if change is None:
        in_force = trust(project, options)
        change = _new(project, opened, description or "", in_force, options)
    if options.depends_on:
        dependencies.add_dependencies(change, options.depends_on)
    if message := settled(change, options.rechallenge):
        return running.settled(change, options, message)
    return detaching.start(change, options) if options.detach else run(change, options, work, ahead=ahead)


def _new(project: Project, opened: OpenedChange, description: str, in_force: Config, options: Options) -> Change:
    agent_selection.ensure_agent_installed(in_force, Role.PLANNER, os.environ)
    born = lifecycle.new_change_folder(project, opened.id) or project.changes_in(project.tree) / opened.id
    refuse_second_clarification(opened.id, options.wishes, born)
    can_answer = options.yes or (options.can_ask and not options.detach)
    if not can_answer and not needs_no_clarification(options.wishes, in_force, born):
        raise nobody_to_ask_error(opened.id)  # before anything is made
    setup = place.chosen(project, opened.id, options.git_setup, in_force, options.can_ask)
    prepare = place.preparing(in_force.git.worktree_setup)
    change = change_opening.begin_change(project, opened.id, description, setup, prepare, options.allow_dirty)
    output.note(place.told(change))
    return change
