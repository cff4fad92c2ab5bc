"""What `plan`, `proposal` and `challenge` share: from the options to a run, and from the run to its end in words."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentd import config
from agentd.calls import run as runs
from agentd.change import outcome
from agentd.change.folder import Change
from agentd.cli import closing, detaching, output, place
from agentd.cli.live import watching
from agentd.cli.options import Options
from agentd.cli.person import AtTerminal
from agentd.cli.trust import ensure_trust
from agentd.config import Config
from agentd.errors import AgentdError, Busy
from agentd.project import Project, find_project
from agentd.steps import facts
from agentd.steps.desk import Desk
from agentd.terms import Workflow
from agentd.workflows import course, opening, result
from agentd.workflows.clarifying import is_clear, nobody_to_ask
from agentd.workflows.course import Ahead
from agentd.workflows.opening import Opened
from agentd.workflows.verdict import challenges, is_answering
from agentd.workflows.wishes import Wishes

Work = Callable[[Desk, Wishes], None]


def trust(project: Project, options: Options) -> Config:
    """What the repository wants run is trusted, or nothing goes on."""
    in_force = config.load(project.config_file, flags=options.settings)
    ensure_trust(project, in_force, options.trusting, options.can_ask)
    return in_force


def begin(change_id: str, description: str | None, options: Options, work: Work) -> int:
    """Plan a change that may be new."""
    project = find_project()
    opened = opening.open_plan(project, change_id, description)
    for note in opened.notes:
        output.tell(note)
    change = opened.change
    if change is None:
        in_force = trust(project, options)
        change = _new(project, opened, description or "", in_force, options)
    if message := opening.settled(change, options.rechallenge):
        return tell(change, options, message)
    return detaching.start(change, options) if options.detach else run(change, options, work)


def _new(project: Project, opened: Opened, description: str, in_force: Config, options: Options) -> Change:
    born = project.changes_in(project.tree) / opened.id
    can_answer = options.yes or (options.can_ask and not options.detach)
    if not can_answer and not is_clear(options.wishes, in_force, born):
        raise nobody_to_ask(opened.id)  # before anything is made
    setup = place.chosen(project, opened.id, options.git_setup, in_force, options.can_ask)
    prepare = place.preparing(in_force.git.worktree_setup)
    change = opening.begin(project, opened.id, description, setup, prepare, options.allow_dirty)
    output.tell(place.told(change))
    return change


def run(change: Change, options: Options, work: Work, message: str = "", code: int | None = None) -> int:
    """Do the work, look on, and tell how it ended: a verdict and a failure alike as one result.

    `message` and `code` are for work whose end is no verdict.
    """
    there = runs.there(change)
    in_force = trust(there, options)
    before, failure = len(change.read().llm_calls), None

    def steps() -> list[Ahead]:
        looks = in_force.workflow.self_review_iterations
        round_ = len(challenges(change)) + 1
        return course.ahead(change.read(), looks, facts.read(change), round_, is_answering(change))

    try:
        with watching(f"agentd {options.command} {change.id}", steps, options.mode) as view:
            person = AtTerminal(view, change.tree) if options.can_ask else None
            wishes = replace(options.wishes, person=person)
            begun = runs.begin(
                change,
                lambda: config.load(there.config_file, flags=options.settings),
                Workflow.PLAN,
                f"agentd {shlex.join(sys.argv[1:])}",
                view,
                again=options.again(change.id),
                max_cost=options.max_cost,
            )
            with begun as at_work:
                work(Desk(at_work, os.environ), wishes)
                ended = result.result(change, options.command, options.wanted, before, message, None, code)
                at_work.endings.append((ended["exit_code"], ended["message"]))
    except AgentdError as error:
        failure = error
    data = result.result(change, options.command, options.wanted, before, "" if failure else message, failure, code)
    if not isinstance(failure, Busy):
        outcome.keep(change, os.getpid(), data)
    return show(options, data, failure)


def tell(change: Change, options: Options, message: str = "", code: int | None = None) -> int:
    """How the change stands, where nothing had to run."""
    before = len(change.read().llm_calls)
    return show(options, result.result(change, options.command, options.wanted, before, message, None, code))


def show(options: Options, data: dict[str, Any], error: AgentdError | None = None) -> int:
    if options.as_events:
        output.stream([json.dumps(data, ensure_ascii=False)])
        return int(data["exit_code"])
    if error and not options.as_json:
        output.tell(closing.summary(data))
        return error.exit_code
    return output.show(options.command, options.as_json, data, lambda: closing.summary(data), data["exit_code"], error)
