"""The options of a planning command, and what they say about it."""

import json
import math
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
from agentd.engine import TOOLS, RunOptions, ToolRefusal, check_arguments, clarifications_from_rows

_ANSWERS_HINT = '[{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}], at most 5'


@cache  # a pipe can be read once, and a command looks at the answers more often
def read_answers(path: str) -> tuple[Clarification, ...]:
    """A list of questions, or an object that has one."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            data: Any = json.load(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _ANSWERS_HINT) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}", _ANSWERS_HINT) from None
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
            self.fail(f"{value} is no amount above 0; --dry-run spends nothing", param, ctx)
        return amount


def run_options(command: str) -> Callable[[Callable[..., int]], click.Command]:
    """The options that all of them take; the function gets them as one."""

    def decorate(function: Callable[..., int]) -> click.Command:
        def called(change_id: str, **values: Any) -> int:
            known = {one.name: values.pop(one.name) for one in fields(CommandOptions) if one.name in values}
            known |= {name: known[name] or 0.0 for name in ("max_cost", "raise_budget")}
            settings = click.get_current_context().find_root().obj or ()
            return function(
                change_id, CommandOptions(command=command, wanted=change_id, settings=settings, **known), **values
            )

        for option in reversed(_RUN_OPTIONS):
            option(called)
        called.__click_params__ += getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(command, help=function.__doc__)(change_argument()(called))

    return decorate


_RUN_OPTIONS = (
    click.option("--new-session", is_flag=True, help="Give a fresh agent the documents and findings."),
    click.option("--max-cost", type=_MoneyType(), metavar="USD", help="What this command may spend at most."),
    click.option("--raise-budget", type=_MoneyType(), metavar="USD", help="What the change may cost from now on."),
    trust_option,
    output.yes_option,
    output.json_option,
    output.events_option,
)


def new_options(function: Callable[..., int]) -> Callable[..., int]:
    """What matters only for a change that is new."""
    for option in reversed(_NEW_OPTIONS):
        function = option(function)
    return function


detach_option = click.option("--detach", is_flag=True, help="Go on in the background; agentd wait ID waits for it.")

_NEW_OPTIONS = (
    click.option("--light", is_flag=True, help="For a small change: one session writes all, no self-review."),
    click.option("--skip-clarify", is_flag=True, help="Ask no questions; plan from the description alone."),
    click.option(
        "--clarifications",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Questions with their answers, instead of being asked.",
    ),
    click.option(
        "--git",
        "git_setup",
        type=click.Choice([str(one) for one in GitSetup]),
        help="Where a new change lives: on a branch, in a work tree of its own, or in place.",
    ),
    click.option("--depends-on", multiple=True, metavar="ID", help="A change that must be archived before this one."),
    click.option("--allow-dirty", is_flag=True, help="A work tree may leave uncommitted files behind."),
)


@dataclass(frozen=True)
class CommandOptions:
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
    def wishes(self) -> RunOptions:
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

    def again(self, change_id: str) -> str:
        """What to type to go on: the description is in STATE.yaml, and the id may have become another."""
        flags = [flag for flag, is_set in (("--yes", self.yes), ("--json", self.as_json)) if is_set]
        return " ".join(["agentd", self.command, change_id, *self._limits, *flags])

    def arguments(self, change_id: str) -> list[str]:
        """The same command on the change as it is now made, for another process."""
        settings = [word for one in self.settings for word in ("--set", one)]
        flags = {
            "--light": self.light,
            "--skip-clarify": self.skip_clarify,
            "--new-session": self.new_session,
            "--rechallenge": self.rechallenge,
            "--review": self.review,
            "--trust": self.trusting,
            "--yes": self.yes,
            "--json": self.as_json,
        }
        values = {
            "--clarifications": self.clarifications,
            "--tasks": self.tasks,
            "--known-failures": self.known_failures,
            "--raise-budget": f"{self.raise_budget:.10g}" if self.raise_budget else "",
        }
        given = [word for flag, value in values.items() if value for word in (flag, value)]
        chosen = [flag for flag, is_set in flags.items() if is_set]
        return [*settings, self.command, change_id, *self._limits, *given, *chosen]

    @property
    def _limits(self) -> list[str]:
        rounds = ["--rounds", str(self.rounds)] if self.rounds is not None else []
        return [*rounds, *(["--max-cost", f"{self.max_cost:.10g}"] if self.max_cost else [])]

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
