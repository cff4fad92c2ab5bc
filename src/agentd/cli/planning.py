"""What `plan`, `proposal` and `challenge` share: from the options to a run, and from the run to its end in words."""

import json
import math
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import click

from agentd import config
from agentd.calls import run as runs
from agentd.change.folder import Change
from agentd.cli import closing, output
from agentd.cli.common import change_argument
from agentd.cli.live import watching
from agentd.cli.person import AtTerminal
from agentd.cli.trust import ensure_trust, trust_option
from agentd.config import Config
from agentd.errors import AgentdError
from agentd.project import Project, find_project
from agentd.steps import facts
from agentd.steps.desk import Desk
from agentd.terms import Workflow
from agentd.workflows import course, opening, result
from agentd.workflows.course import Ahead
from agentd.workflows.verdict import challenges, is_answering
from agentd.workflows.wishes import Wishes

Work = Callable[[Desk, Wishes], None]
Mode = Literal["live", "lines", "events", "quiet"]


class _Money(click.ParamType[float]):
    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            amount = float(value)
        except ValueError:
            amount = 0.0
        if not 0 < amount < math.inf:
            self.fail(f"{value} is no amount above 0; --dry-run spends nothing", param, ctx)
        return amount


def run_options(command: str) -> Callable[[Callable[..., int]], click.Command]:
    """The options that all of them take; the function gets them as one."""

    def decorate(function: Callable[..., int]) -> click.Command:
        def called(change_id: str, **values: Any) -> int:
            known = {name: values.pop(name) for name in _SHARED if name in values}
            known["max_cost"] = known["max_cost"] or 0.0
            settings = click.get_current_context().find_root().obj or ()
            return function(change_id, Options(command=command, wanted=change_id, settings=settings, **known), **values)

        for option in reversed(_RUN_OPTIONS):
            option(called)
        called.__click_params__ += getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(command, help=function.__doc__)(change_argument()(called))

    return decorate


_RUN_OPTIONS = (
    click.option("--new-session", is_flag=True, help="Give a fresh planner the documents and findings."),
    click.option("--max-cost", type=_Money(), metavar="USD", help="What this command may spend at most."),
    trust_option,
    output.yes_option,
    output.json_option,
    output.events_option,
)
_SHARED = ("new_session", "max_cost", "trusting", "yes", "as_json", "as_events", "light", "rounds", "rechallenge")


@dataclass(frozen=True)
class Options:
    """How the command speaks, and what it was told."""

    command: str
    wanted: str
    settings: tuple[str, ...]
    as_json: bool = False
    as_events: bool = False
    yes: bool = False
    trusting: bool = False
    light: bool = False
    new_session: bool = False
    max_cost: float = 0.0
    rounds: int | None = None
    rechallenge: bool = False

    @property
    def wishes(self) -> Wishes:
        return Wishes(
            yes=self.yes,
            light=self.light,
            new_session=self.new_session,
            rechallenge=self.rechallenge,
            rounds=self.rounds,
        )

    def again(self, change_id: str) -> str:
        """What to type to go on: the description is in STATE.yaml, and the id may have become another."""
        flags = [f"--rounds {self.rounds}"] if self.rounds is not None else []
        flags += [f"--max-cost {self.max_cost:g}"] if self.max_cost else []
        flags += [flag for flag, is_set in (("--yes", self.yes), ("--json", self.as_json)) if is_set]
        return " ".join(["agentd", self.command, change_id, *flags])

    @property
    def can_ask(self) -> bool:
        return output.interactive(self.as_json or self.as_events, self.yes)

    @property
    def mode(self) -> Mode:
        if self.as_events:
            return "events"
        if self.as_json:
            return "quiet"
        return "live" if sys.stderr.isatty() else "lines"


def trust(project: Project, options: Options) -> Config:
    """What the repository wants run is trusted, or nothing goes on."""
    in_force = config.load(project.config_file, flags=options.settings)
    ensure_trust(project, in_force, options.trusting, options.can_ask)
    return in_force


def begin(change_id: str, description: str | None, skip_clarify: bool, options: Options, work: Work) -> int:
    """Plan a change that may be new."""
    project = find_project()
    opened = opening.open_plan(project, change_id, description)
    for note in opened.notes:
        output.tell(note)
    change = opened.change
    if change is None:
        trust(project, options)  # before anything is made
        change = opening.begin(project, opened, description or "", skip_clarify, options.can_ask)
    if message := opening.settled(change, options.rechallenge):
        return tell(change, options, len(change.read().llm_calls), message)
    return run(change, options, work)


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
    return tell(change, options, before, "" if failure else message, failure, code)


def tell(
    change: Change,
    options: Options,
    before: int,
    message: str = "",
    error: AgentdError | None = None,
    code: int | None = None,
) -> int:
    data = result.result(change, options.command, options.wanted, before, message, error, code)
    if options.as_events:
        output.stream([json.dumps(data, ensure_ascii=False)])
        return int(data["exit_code"])
    if error and not options.as_json:
        output.tell(closing.summary(data))
        return error.exit_code
    return output.show(options.command, options.as_json, data, lambda: closing.summary(data), data["exit_code"], error)
