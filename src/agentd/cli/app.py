"""The `agentd` command: loads subcommands on demand and reports every error in one place."""

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

# name: (module, or module:attribute; one-line summary)
COMMANDS = {
    "init": ("init", "Set up agentd in this repository."),
    "plan": ("plan", "Plan a change: proposal, specs and tasks, challenged by another agent."),
    "impl": ("impl", "Implement a planned change: code, verified by checks, reviewed by another agent."),
    "archive": ("archive", "Archive a complete change and merge its specs into the project's specs."),
    "rebase": ("rebase", "Rebase a change onto the current specs."),
    "run": ("run", "Plan a change, then implement it."),
    "list": ("list_command", "List the changes."),
    "status": ("status", "Show the status of one change, or of all open changes."),
    "cost": ("cost", "Show what changes have cost."),
    "validate": ("validate", "Check the documents of a change against the rules."),
    "trace": ("trace", "Show the tasks, files and tests behind each requirement."),
    "view": ("view", "Read, comment and decide in the browser."),
    "log": ("log", "Show what happened to a change, and what its agents said."),
    "wait": ("wait", "Wait until a change's run ends or needs a decision."),
    "stop": ("stop", "Stop the run of a change."),
    "drop": ("drop", "Move a change to the archive as dropped."),
    "import": ("migrate_commands:import_command", "Import a project from OpenSpec or Spec Kit."),
    "export": ("migrate_commands:export_command", "Export the specs to OpenSpec."),
    "trust": ("trust", "Review and trust the commands this repository wants to run."),
    "doctor": ("doctor", "Check that everything agentd needs is installed and configured."),
    "config": ("config", "Show the effective configuration and where each value comes from."),
    "demo": ("demo", "Run a complete change in a sample project, without calling any model."),
    "mcp": ("mcp", "Serve agentd's tools over MCP to agents and your own sessions."),
    "completion": ("completion", "Print a shell completion script."),
}

# Single workflow phases, for scripts.
PHASES = {
    "proposal": ("phase_commands:proposal_command", "Write proposal, specs and tasks."),
    "challenge": ("phase_commands:challenge_command", "Have the challenger review the plan."),
    "reproposal": ("phase_commands:reproposal_command", "Have the planner answer the findings."),
    "implement": ("phase_commands:implement_command", "Write the code."),
    "review": ("phase_commands:review_command", "Run the checks and have the reviewer review the code."),
    "resolve-reviews": ("phase_commands:resolve_command", "Have the implementer answer the findings."),
}
_ALL = {**COMMANDS, **PHASES}
_WITH_PROGRESS = {"plan", "impl", "run", *PHASES}

# Command names of older versions: accepted, but not listed.
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
        if not any("--quiet" in param.opts for param in command.params):
            command.params += output.loudness_options(is_hidden=cmd_name not in _WITH_PROGRESS)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])
        with formatter.section("Phases, for scripts"):
            formatter.write_dl([(name, summary) for name, (_, summary) in PHASES.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in {*_ALL, *ALIASES} and not args[0].startswith("-"):
            import difflib  # deferred: only needed after a typo

            matches = difflib.get_close_matches(args[0], _ALL, 1)
            hint = f"did you mean agentd {matches[0]}?" if matches else "agentd --help lists all commands"
            raise UsageError(f"unknown command '{args[0]}'", hint)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="agentd", message="%(prog)s %(version)s")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a configuration value for this invocation."
)
@click.pass_context
def app(ctx: click.Context, settings: tuple[str, ...]) -> None:
    """Take a change from one sentence to reviewed specs, tested code and an up-to-date spec archive.

    Everything is plain files under agentd/ in your git repository.
    """
    ctx.obj = settings
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


app.params += output.loudness_options(is_hidden=False)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; report any failure with a hint."""
    _prepare_streams()
    gc.set_threshold(100_000)  # a command is short-lived; collecting cycles would only slow down long listings
    try:
        code: Any = app.main(list(arguments), "agentd", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except AgentdError as error:
        failure = error
    except click.UsageError as error:
        hint = f"{error.ctx.command_path} --help" if error.ctx else "agentd --help"
        message, _, more = _lower_first(error.format_message()).partition(". ")
        failure = UsageError(message, f"{_lower_first(more)} {hint}" if more else hint)
    except (click.Abort, KeyboardInterrupt):
        failure = Interrupted("interrupted")
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        failure = SetupError(message, "check that the path is correct and that you have read and write permission")
    except Exception as error:
        failure = _save_bug_report(error)
        if {"-v", "--verbose"} & set(arguments):
            output.report(_format_traceback(error))
    return output.fail(failure, arguments, {*_ALL, *ALIASES})


def _lower_first(sentence: str) -> str:
    """Return click's message in our style: lower-case first letter, no full stop."""
    message = sentence.strip().removesuffix(".").removeprefix("(").removesuffix(")")
    return message[:1].lower() + message[1:]


def _prepare_streams() -> None:
    """Keep closed streams and unencodable characters from raising."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
        elif number:
            stream.reconfigure(errors="replace")


def _format_traceback(error: Exception) -> str:
    import traceback  # deferred: only needed after a crash

    return "".join(traceback.format_exception(error)).rstrip()


def _save_bug_report(error: Exception) -> Bug:
    import tempfile

    with tempfile.NamedTemporaryFile(
        "w", prefix="agentd-bug-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
    ) as file:
        file.write(f"agentd {__version__}, Python {sys.version}\n\n")
        file.write(f"{_format_traceback(error)}\n")
    return Bug(f"agentd has a bug: {type(error).__name__}: {error}", f"details for a bug report: {file.name}")
