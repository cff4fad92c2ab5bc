"""How every command speaks: text for people, one JSON object for programs, errors with the next command."""

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
PIPE = 100  # columns where there is no terminal
LABEL = 8  # columns of a label with its gap

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
events_option = click.option(
    "--events", "as_events", is_flag=True, help="Print the journal's lines as they happen, then the result as one line."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Take the recommended answer to every question.")


_LOUDNESS = "agentd.loudness"


def _loudness(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and ctx.meta.setdefault(_LOUDNESS, param.name) != param.name:
        raise click.UsageError("--quiet and --verbose cannot both be meant", ctx)


def loudness_options(is_hidden: bool) -> list[click.Parameter]:
    """Understood by every command, and before it; listed where there is progress to tell."""
    told = {
        "quiet": "No progress and no notes: only the result, questions, warnings and errors.",
        "verbose": "Tell what the agents do, line by line; of a bug also where it is.",
    }
    return [
        click.Option(
            [f"--{name}", f"-{name[0]}"],
            is_flag=True,
            expose_value=False,
            hidden=is_hidden,
            callback=_loudness,
            help=words,
        )
        for name, words in told.items()
    ]


def is_quiet() -> bool:
    return _is_meant("quiet")


def is_verbose() -> bool:
    return _is_meant("verbose")


def _is_meant(loudness: str) -> bool:
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(_LOUDNESS) == loudness


def is_part() -> bool:
    """Of the demo, which tells itself how an interruption ends."""
    return bool(os.environ.get(DEMO_PART))


def interactive(as_json: bool, yes: bool) -> bool:
    """Somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not as_json and not yes


def colour() -> bool | None:
    """None lets click decide: colour on a terminal, none in a pipe."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def paint(text: str, **style: Any) -> str:
    """Coloured where a person sees it."""
    return click.style(text, **style) if _painting() else text


@cache
def _painting() -> bool:
    return colour() is None and sys.stdout.isatty()


def width() -> int | None:
    """The terminal's width; a pipe or file has none."""
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


def _json(data: dict[str, Any]) -> str:
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(data, indent=2, ensure_ascii=not is_utf8)


def _print(text: str) -> None:
    """To stdout, at once; painted already where that is wanted."""
    try:
        click.echo(text, color=True)
        sys.stdout.flush()
    except BrokenPipeError:
        quiet()  # whoever read our output has seen enough
    except OSError:
        quiet()
        raise


def stream(lines: Iterable[str]) -> None:
    """Line by line, as they come, until there are no more or nobody reads on."""
    try:
        for line in lines:
            click.echo(line, color=True)
            sys.stdout.flush()
    except BrokenPipeError:
        quiet()


def quiet() -> None:
    """Nothing more can be written; keep Python from trying again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def report(text: str) -> None:
    """A word beside the result, on stderr."""
    click.echo(text, err=True, color=colour())


def note(text: str) -> None:
    """A word that somebody who wants quiet does without."""
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
    """One moment for a whole command, so that its ages agree."""
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
    """Wrapped on a terminal, whole in a pipe."""
    edge = width()
    lines = [text] if edge is None else text_table.wrap_text(text, max(edge - len(indent), 1), hang)
    return [f"{indent}{line}" for line in lines]


def label(name: str, words: str, width: int | None = None, room: int = LABEL) -> list[str]:
    """A dim label and its words beside it, wrapped to the width; None leaves them whole."""
    lines = [words] if width is None else text_table.wrap_text(words, max(width - room, room))
    return [_labelled(name if number == 0 else "", line, room) for number, line in enumerate(lines)]


def heading(change_id: str, words: str) -> list[str]:
    """A bold id and its phase, or the phase below where the terminal is too narrow."""
    line, edge = f"{paint(change_id, bold=True)}  {words}", width()
    if edge is None or text_table.display_width(line) <= edge:
        return [line]
    return [paint(change_id, bold=True), *prose(words, "  ")]


def following(command: str, room: int = LABEL, name: str = "Next") -> list[str]:
    """What to type, whole so that it can be copied: on a line of its own where it does not fit beside its label."""
    edge = width()
    if edge is None or room + text_table.display_width(command) <= edge:
        return [_labelled(name, command, room)]
    return [paint(name, dim=True), command]


def _labelled(name: str, words: str, room: int) -> str:
    return paint(name.ljust(room), dim=True) + words


def money_cell(usd: float) -> str:
    """In a table, where nothing is a dash."""
    return format_usd(usd) if usd else "-"


def charted(line: str, bar: str) -> str:
    """The line with its bar, where it has one."""
    return f"{line}  {paint(bar, fg='cyan')}" if bar else line


def findings(high: int, medium: int, low: int) -> str:
    if not (high or medium or low):
        return "-"
    counts = ((high, "high"), (medium, "medium"), (low, "low"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)
