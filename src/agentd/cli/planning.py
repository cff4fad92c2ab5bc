"""A change that may be new, and where it is to live: what `plan`, `proposal` and `run` share."""

import os
from collections.abc import Callable

from agentd.calls import seat
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.cli import detaching, output, place, running
from agentd.cli.options import Options
from agentd.cli.running import Course, Work, run, trust
from agentd.domain.terms import GitSetup, Role
from agentd.project.config import Config
from agentd.project.layout import Project, find_project
from agentd.workflows import course, dependence, opening
from agentd.workflows.clarifying import is_clear, nobody_to_ask, refuse_twice
from agentd.workflows.opening import Opened


def begin(
    change_id: str,
    description: str | None,
    options: Options,
    work: Work,
    settled: Callable[[Change, bool], str | None] = opening.settled,
    ahead: Course = course.of_plan,
) -> int:
    """Plan a change that may be new."""
    project = find_project()
    wish = GitSetup(options.git_setup) if options.git_setup else None
    opened = opening.open_plan(project, change_id, description, wish)
    for note in opened.notes:
        output.note(note)
    change = opened.change
    if options.depends_on:
        dependence.check(project, opened.id, options.depends_on)
    if change is None:
        in_force = trust(project, options)
        change = _new(project, opened, description or "", in_force, options)
    if options.depends_on:
        dependence.add(change, options.depends_on)
    if message := settled(change, options.rechallenge):
        return running.settled(change, options, message)
    return detaching.start(change, options) if options.detach else run(change, options, work, ahead=ahead)


def _new(project: Project, opened: Opened, description: str, in_force: Config, options: Options) -> Change:
    seat.ensure_installed(in_force, Role.PLANNER, os.environ)
    born = lifecycle.new_change_folder(project, opened.id) or project.changes_in(project.tree) / opened.id
    refuse_twice(opened.id, options.wishes, born)
    can_answer = options.yes or (options.can_ask and not options.detach)
    if not can_answer and not is_clear(options.wishes, in_force, born):
        raise nobody_to_ask(opened.id)  # before anything is made
    setup = place.chosen(project, opened.id, options.git_setup, in_force, options.can_ask)
    prepare = place.preparing(in_force.git.worktree_setup)
    change = opening.begin(project, opened.id, description, setup, prepare, options.allow_dirty)
    output.note(place.told(change))
    return change
