"""Output shared by all commands: text for people, one JSON object for programs, errors with a hint."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import click

from agentd.cli import text_table
from agentd.domain import DEMO_PART, AgentdError, Interrupted, format_usd, seconds_since, utc_now

SCHEMA = 1
PIPE = 100  # columns when stdout is not a terminal
LABEL = 8  # width of a label column, including the gap

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
events_option = click.option(
    "--events",
    "as_events",
    is_flag=True,
    help="Print journal events as JSON lines while they happen, then the result on one line.",
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Accept the recommended answer to every question.")


_VERBOSITY = "agentd.verbosity"


def _set_verbosity(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and ctx.meta.setdefault(_VERBOSITY, param.name) != param.name:
        raise click.UsageError("--quiet and --verbose cannot be used together", ctx)


def loudness_options(is_hidden: bool) -> list[click.Parameter]:
    """Return the --quiet and --verbose options, accepted before and after every command name."""
    help_texts = {
        "quiet": "Print only the result, questions, warnings and errors.",
        "verbose": "Print agent activity line by line, and tracebacks for bugs.",
    }
    return [
        click.Option(
            [f"--{name}", f"-{name[0]}"],
            is_flag=True,
            expose_value=False,
            hidden=is_hidden,
            callback=_set_verbosity,
            help=text,
        )
        for name, text in help_texts.items()
    ]


def is_quiet() -> bool:
    return _has_verbosity("quiet")


def is_verbose() -> bool:
    return _has_verbosity("verbose")


def _has_verbosity(level: str) -> bool:
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(_VERBOSITY) == level


def is_part() -> bool:
    """Return whether this command runs as part of the demo, which reports interruptions itself."""
    return bool(os.environ.get(DEMO_PART))


def interactive(as_json: bool, yes: bool) -> bool:
    """Return whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not as_json and not yes


def colour() -> bool | None:
    """Return False to disable colour, or None to let click decide (colour on a terminal only)."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def paint(text: str, **style: Any) -> str:
    """Style the text if stdout is a terminal that shows colour."""
    return click.style(text, **style) if _uses_colour() else text


@cache
def _uses_colour() -> bool:
    return colour() is None and sys.stdout.isatty()


def width() -> int | None:
    """Return the terminal's width, or None if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def show_result(
    command: str,
    as_json: bool,
    data: dict[str, Any],
    text: Callable[[], str],
    exit_code: int = 0,
    error: AgentdError | None = None,
) -> int:
    if as_json:
        head = {"schema_version": SCHEMA, "command": command}
        _print(_json({**head, **data, "error": _problem(error) if error else None, "exit_code": exit_code}))
    else:
        _print(text())
    return exit_code


def print_json(data: dict[str, Any]) -> None:
    _print(_json(data))


def print_text(text: str) -> None:
    _print(text)


def _json(data: dict[str, Any]) -> str:
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(data, indent=2, ensure_ascii=not is_utf8)


def _print(text: str) -> None:
    """Print to stdout and flush. The text is already coloured if it should be."""
    try:
        click.echo(text, color=True)
        sys.stdout.flush()
    except BrokenPipeError:
        quiet()  # the reader closed the pipe
    except OSError:
        quiet()
        raise


def stream(lines: Iterable[str]) -> None:
    """Print lines as they arrive, until they end or the reader closes the pipe."""
    try:
        for line in lines:
            click.echo(line, color=True)
            sys.stdout.flush()
    except BrokenPipeError:
        quiet()


def quiet() -> None:
    """Redirect stdout to /dev/null, so Python does not fail again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def report(text: str) -> None:
    """Print a message to stderr."""
    click.echo(text, err=True, color=colour())


def note(text: str) -> None:
    """Print a message to stderr unless --quiet was given."""
    if not is_quiet():
        report(text)


def fail(error: AgentdError, arguments: Sequence[str], commands: Collection[str]) -> int:
    if "--json" in arguments:
        command = next((word for word in arguments if word in commands), None)
        data = {"schema_version": SCHEMA, "command": command, "error": _problem(error), "exit_code": error.exit_code}
        with contextlib.suppress(OSError):
            _print(_json(data))
    elif not (is_part() and isinstance(error, Interrupted)):
        report(f"{click.style('Error:', fg='red', bold=True)} {error.message}")
        if error.hint:
            report(f"  {click.style('→', fg='cyan')} {error.hint}")
    return error.exit_code


def _problem(error: AgentdError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": error.hint}


@cache
def _now() -> datetime:
    """Return the current time, fixed once per command so all ages agree."""
    return utc_now()


def format_age(time: str) -> str:
    seconds = seconds_since(time, _now())
    if seconds is None:
        return "-"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    if seconds < 86400:
        return f"{seconds // 3600:.0f} h ago"
    if seconds < 14 * 86400:
        return f"{seconds // 86400:.0f} d ago"
    return f"{seconds // 604800:.0f} w ago"


def prose(text: str, indent: str = "", hang: str = "") -> list[str]:
    """Return the text as lines: wrapped on a terminal, one line otherwise."""
    columns = width()
    lines = [text] if columns is None else text_table.wrap_text(text, max(columns - len(indent), 1), hang)
    return [f"{indent}{line}" for line in lines]


def label(name: str, text: str, width: int | None = None, label_width: int = LABEL) -> list[str]:
    """Return a dim label with text beside it, wrapped to the width (None: not wrapped)."""
    lines = [text] if width is None else text_table.wrap_text(text, max(width - label_width, label_width))
    return [_labelled(name if number == 0 else "", line, label_width) for number, line in enumerate(lines)]


def heading(change_id: str, text: str) -> list[str]:
    """Return a bold change id with its phase, on two lines if the terminal is too narrow."""
    line, columns = f"{paint(change_id, bold=True)}  {text}", width()
    if columns is None or text_table.display_width(line) <= columns:
        return [line]
    return [paint(change_id, bold=True), *prose(text, "  ")]


def following(command: str, label_width: int = LABEL, name: str = "Next") -> list[str]:
    """Return a labelled command to type, on its own line if it does not fit beside the label."""
    columns = width()
    if columns is None or label_width + text_table.display_width(command) <= columns:
        return [_labelled(name, command, label_width)]
    return [paint(name, dim=True), command]


def _labelled(name: str, text: str, label_width: int) -> str:
    return paint(name.ljust(label_width), dim=True) + text


def money_cell(usd: float) -> str:
    """Format an amount for a table; a dash for zero."""
    return format_usd(usd) if usd else "-"


def charted(line: str, bar: str) -> str:
    """Append a bar, if there is one."""
    return f"{line}  {paint(bar, fg='cyan')}" if bar else line


def findings(high: int, medium: int, low: int) -> str:
    if not (high or medium or low):
        return "-"
    counts = ((high, "high"), (medium, "medium"), (low, "low"))
    return ", ".join(f"{count} {severity}" for count, severity in counts if count)
