"""The options of the workflow commands."""

import json
import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

import click

from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.cli.trust import trust_option
from agentd.documents import Clarification
from agentd.domain import GitSetup, UsageError
from agentd.engine import (
    TOOLS,
    PersonDecision,
    RunOptions,
    RunRequest,
    ToolRefusal,
    check_arguments,
    clarifications_from_rows,
)

_ANSWERS_HINT = '[{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}], at most 5'


@cache  # a pipe can be read only once
def read_answers(path: str) -> tuple[Clarification, ...]:
    """Read a list of answered questions, or an object that has one."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            data: Any = json.load(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _ANSWERS_HINT) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}", _ANSWERS_HINT) from None
    rows = data.get("questions") if isinstance(data, dict) else data
    shape = next(tool.arguments for tool in TOOLS if tool.name == "create_clarifications").keys["questions"]
    try:
        checked = check_arguments(shape, rows, "questions")
    except ToolRefusal as error:
        raise UsageError(f"{path}: {error.what}; {error.instead}", _ANSWERS_HINT) from None
    return clarifications_from_rows(checked)


Mode = Literal["live", "lines", "events", "quiet"]


class _MoneyType(click.ParamType[float]):
    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            amount = float(value)
        except ValueError:
            amount = 0.0
        if not 0 < amount < math.inf:
            self.fail(f"{value} is not an amount above 0; --dry-run spends nothing", param, ctx)
        return amount


def run_options(command: str) -> Callable[[Callable[..., int]], click.Command]:
    """Add the options every workflow command takes; the function receives them as one object."""

    def decorate(function: Callable[..., int]) -> click.Command:
        def called(change_id: str, **values: Any) -> int:
            known = {one.name: values.pop(one.name) for one in fields(CommandOptions) if one.name in values}
            known |= {name: known[name] or 0.0 for name in ("max_cost", "raise_budget")}
            settings = click.get_current_context().find_root().obj or ()
            return function(
                change_id, CommandOptions(command=command, requested_id=change_id, settings=settings, **known), **values
            )

        for option in reversed(_RUN_OPTIONS):
            option(called)
        called.__click_params__ += getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(command, help=function.__doc__)(change_argument()(called))

    return decorate


_RUN_OPTIONS = (
    click.option("--new-session", is_flag=True, help="Continue with a fresh agent session."),
    click.option("--max-cost", type=_MoneyType(), metavar="USD", help="Limit what this command may spend."),
    click.option("--raise-budget", type=_MoneyType(), metavar="USD", help="Raise what the change may cost in total."),
    trust_option,
    output.yes_option,
    output.json_option,
    output.events_option,
)


def new_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that only matter for a new change."""
    for option in reversed(_NEW_OPTIONS):
        function = option(function)
    return function


detach_option = click.option("--detach", is_flag=True, help="Run in the background; agentd wait ID waits for it.")

_NEW_OPTIONS = (
    click.option("--light", is_flag=True, help="For a small change: one session writes everything, no self-review."),
    click.option("--skip-clarify", is_flag=True, help="Skip the questions; plan from the description alone."),
    click.option(
        "--clarifications",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Read the answers to questions from a file.",
    ),
    click.option(
        "--git",
        "git_setup",
        type=click.Choice([str(one) for one in GitSetup]),
        help="Where a new change lives: on its own branch, in its own worktree, or in place.",
    ),
    click.option("--depends-on", multiple=True, metavar="ID", help="A change that must be archived before this one."),
    click.option("--allow-dirty", is_flag=True, help="Let a worktree leave uncommitted files behind."),
)


@dataclass(frozen=True)
class CommandOptions:
    """The parsed options of a workflow command."""

    command: str
    requested_id: str
    settings: tuple[str, ...]
    as_json: bool = False
    as_events: bool = False
    yes: bool = False
    trusting: bool = False
    light: bool = False
    new_session: bool = False
    max_cost: float = 0.0
    raise_budget: float = 0.0
    seen: str = ""
    rounds: int | None = None
    rechallenge: bool = False
    skip_clarify: bool = False
    clarifications: str | None = None
    git_setup: str | None = None
    allow_dirty: bool = False
    depends_on: tuple[str, ...] = ()
    detach: bool = False
    tasks: str | None = None
    review: bool = False
    known_failures: str = ""

    @property
    def run_options(self) -> RunOptions:
        return RunOptions(
            yes=self.yes,
            light=self.light,
            skip_clarify=self.skip_clarify,
            clarifications=read_answers(self.clarifications) if self.clarifications else (),
            new_session=self.new_session,
            rechallenge=self.rechallenge,
            rounds=self.rounds,
            tasks=tuple(self.tasks.split(",")) if self.tasks is not None else (),
            review=self.review,
            known_failures=self.known_failures,
        )

    def request(self, decision: PersonDecision | None = None) -> RunRequest:
        return RunRequest(
            command=self.command,
            options=self.run_options,
            settings=self.settings,
            requested_id=self.requested_id,
            max_cost=self.max_cost,
            raise_budget=self.raise_budget,
            decision=decision,
            command_line=f"agentd {shlex.join(sys.argv[1:])}",
            resume_flags=("--json",) if self.as_json else (),
        )

    @property
    def can_ask(self) -> bool:
        return output.interactive(self.as_json or self.as_events, self.yes)

    @property
    def mode(self) -> Mode:
        if self.as_events:
            return "events"
        if output.is_quiet() or (self.as_json and not output.is_verbose()):
            return "quiet"
        return "live" if sys.stderr.isatty() and not self.as_json else "lines"
