"""The `agentd` command: loads subcommands on demand and reports every error in one place."""

import gc
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from agentd import __version__
from agentd.cli import output
from agentd.domain import AgentdError, Bug, Interrupted, SetupError, UsageError

_PHASES = 500  # positions from here on are phases, for scripts
_DECLARED = re.compile(r'^(?:COMMANDS = \{|    )"([\w-]+)": \((\d+), "(.*)"\)', re.MULTILINE)

# Command names of older versions: accepted, but not listed.
ALIASES = {"validate-proposal": "validate", "plan-change": "plan", "impl-change": "impl", "merge-change": "archive"}


def declared_commands(module: str) -> dict[str, tuple[int, str]]:
    """Return a module's `COMMANDS`, position and summary by name; read from its source, as importing takes longer."""
    with open(os.path.join(os.path.dirname(__file__), f"{module}.py"), encoding="utf-8") as file:
        _, found, source = file.read().partition("\nCOMMANDS = ")
    block = source.partition("}\n")[0]
    return {name: (int(at), words) for name, at, words in _DECLARED.findall(f"COMMANDS = {block}")} if found else {}


def all_commands() -> dict[str, tuple[int, str, str]]:
    """Return every command with its position, summary and module, in the order of the help."""
    found = {}
    for entry in os.listdir(os.path.dirname(__file__)):
        module, _, kind = entry.partition(".")
        if kind == "py":
            found.update({name: (*row, module) for name, row in declared_commands(module).items()})
    return dict(sorted(found.items(), key=lambda item: item[1]))


def command_groups() -> dict[str, dict[str, str]]:
    """Return the summaries of all commands, in the groups of the help."""
    groups: dict[str, dict[str, str]] = {"Commands": {}, "Phases, for scripts": {}}
    for name, (position, summary, _) in all_commands().items():
        groups["Commands" if position < _PHASES else "Phases, for scripts"][name] = summary
    return groups


def find_module(name: str) -> str | None:
    """Return a command's module. Most are named after their command, so a quick command reads no other module."""
    for module in (name, f"{name}_command"):
        path = os.path.join(os.path.dirname(__file__), f"{module}.py")
        if name.isidentifier() and os.path.isfile(path) and name in declared_commands(module):
            return module
    return all_commands().get(name, (0, "", None))[2]


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        name = find_module(cmd_name)
        if name is None:
            return None
        module = importlib.import_module(f"agentd.cli.{name}")
        attribute = f"{cmd_name.replace('-', '_')}_command"
        command: click.Command = getattr(module, attribute if hasattr(module, attribute) else "command")
        if not any("--quiet" in param.opts for param in command.params):
            has_progress = any(param.name == "as_events" for param in command.params)
            command.params += output.loudness_options(is_hidden=not has_progress)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, summaries in command_groups().items():
            with formatter.section(title):
                formatter.write_dl(list(summaries.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and not find_module(ALIASES.get(args[0], args[0])):
            import difflib  # deferred: only needed after a typo

            matches = difflib.get_close_matches(args[0], all_commands(), 1)
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
    return output.fail(failure, arguments, {*all_commands(), *ALIASES})


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
