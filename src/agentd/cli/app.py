"""The command `agentd`: commands are loaded when they are called, errors are shown in one place."""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from agentd import __version__
from agentd.cli import output
from agentd.domain import AgentdError, Bug, Interrupted, SetupError, UsageError

# name: (module, or module:attribute; what it does in a line)
COMMANDS = {
    "init": ("init", "Set up agentd in this repository."),
    "plan": ("plan", "Plan a change: proposal, specs and tasks, challenged by another agent."),
    "impl": ("impl", "Implement a planned change: code, proved by checks, reviewed by another agent."),
    "archive": ("archive", "Archive a complete change: its specs become those of the project."),
    "rebase": ("rebase", "Bring a change onto the specs of today."),
    "run": ("run", "Plan a change, then implement it."),
    "list": ("list_command", "List the changes."),
    "status": ("status", "Show where a change stands, or all of them."),
    "cost": ("cost", "Show what the changes have cost."),
    "validate": ("validate", "Check the documents of a change against the rules."),
    "trace": ("trace", "Show which task, file and test carries each requirement."),
    "view": ("view", "Read, comment and decide in the browser."),
    "log": ("log", "Show what happened to a change, and what its agents said."),
    "wait": ("wait", "Wait for the run of a change to end, or to need a decision."),
    "stop": ("stop", "End the run of a change."),
    "drop": ("drop", "Move a change to the archive as dropped."),
    "import": ("migrate_commands:import_command", "Move the project of another tool in: OpenSpec or Spec Kit."),
    "export": ("migrate_commands:export_command", "Give the specs to another tool: OpenSpec."),
    "trust": ("trust", "Show and trust the commands this repository wants to run."),
    "doctor": ("doctor", "Check that everything agentd needs is here."),
    "config": ("config", "Show the configuration in force and where each value comes from."),
    "demo": ("demo", "Show the whole way of one change in a sample project, without models."),
    "mcp": ("mcp", "Serve agentd's tools to agents and to your own session."),
    "completion": ("completion", "Print the completion script for a shell."),
}

# one phase of a workflow each, for scripts
PHASES = {
    "proposal": ("phase_commands:proposal_command", "Write proposal, specs and tasks."),
    "challenge": ("phase_commands:challenge_command", "Let the challenger judge the plan."),
    "reproposal": ("phase_commands:reproposal_command", "Let the planner answer the findings."),
    "implement": ("phase_commands:implement_command", "Write the code."),
    "review": ("phase_commands:review_command", "Run the checks and let the reviewer judge the code."),
    "resolve-reviews": ("phase_commands:resolve_command", "Let the implementer answer the findings."),
}
_ALL = {**COMMANDS, **PHASES}
_WITH_PROGRESS = {"plan", "impl", "run", *PHASES}

# words of older versions, read but not listed
ALIASES = {"validate-proposal": "validate", "plan-change": "plan", "impl-change": "impl", "merge-change": "archive"}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ALL)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in _ALL:
            return None
        module, _, attribute = _ALL[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"agentd.cli.{module}"), attribute or "command")
        if not any("--quiet" in one.opts for one in command.params):
            command.params += output.loudness_options(is_hidden=cmd_name not in _WITH_PROGRESS)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])
        with formatter.section("Phases, for scripts"):
            formatter.write_dl([(name, words) for name, (_, words) in PHASES.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in {*_ALL, *ALIASES} and not args[0].startswith("-"):
            import difflib  # late: only after a typo

            near = difflib.get_close_matches(args[0], _ALL, 1)
            hint = f"did you mean agentd {near[0]}?" if near else "agentd --help lists the commands"
            raise UsageError(f"there is no command '{args[0]}'", hint)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="agentd", message="%(prog)s %(version)s")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a configuration value for this call.")
@click.pass_context
def app(ctx: click.Context, settings: tuple[str, ...]) -> None:
    """Take a change from one sentence to reviewed specs, proved code and an updated spec archive.

    Everything is plain files under agentd/ in your git repository.
    """
    ctx.obj = settings
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


app.params += output.loudness_options(is_hidden=False)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code says how it went, and every failure says what to do."""
    _prepare_streams()
    gc.set_threshold(100_000)  # a command is short, and a listing of thousands makes no cycles worth a search
    try:
        code: Any = app.main(list(arguments), "agentd", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except AgentdError as error:
        failure = error
    except click.UsageError as error:
        hint = f"{error.ctx.command_path} --help" if error.ctx else "agentd --help"
        words, _, more = _as_ours(error.format_message()).partition(". ")
        failure = UsageError(words, f"{_as_ours(more)} {hint}" if more else hint)
    except (click.Abort, KeyboardInterrupt):
        failure = Interrupted("interrupted")
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        failure = SetupError(words, "check that it is what it should be and that you may read and write there")
    except Exception as error:
        failure = _bug(error)
        if {"-v", "--verbose"} & set(arguments):
            output.report(_trace(error))
    return output.fail(failure, arguments, {*_ALL, *ALIASES})


def _as_ours(sentence: str) -> str:
    """An error of click's in the form of ours: no capital, no full stop."""
    words = sentence.strip().removesuffix(".").removeprefix("(").removesuffix(")")
    return words[:1].lower() + words[1:]


def _prepare_streams() -> None:
    """A closed stream and an encoding that lacks a character are no reason to fail."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
        elif number:
            stream.reconfigure(errors="replace")


def _trace(error: Exception) -> str:
    import traceback  # late: nobody hopes for it

    return "".join(traceback.format_exception(error)).rstrip()


def _bug(error: Exception) -> Bug:
    import tempfile

    with tempfile.NamedTemporaryFile(
        "w", prefix="agentd-bug-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
    ) as file:
        file.write(f"agentd {__version__}, Python {sys.version}\n\n")
        file.write(f"{_trace(error)}\n")
    return Bug(f"agentd has a bug: {type(error).__name__}: {error}", f"the details for a report are in {file.name}")
