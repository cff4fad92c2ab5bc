"""Questions on a terminal: arrow keys where the terminal knows them, numbers where it does not."""

import contextlib
import os
import select
import sys
import termios
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from agentd.cli import output, text_table

if TYPE_CHECKING:
    from prompt_toolkit import Application


_RECOMMENDED = "(recommended)"
_KEYS = "(↑↓)"
_STYLE = [
    ("qmark", "fg:ansicyan bold"),
    ("question", "bold"),
    ("pointer", "fg:ansicyan bold"),
    ("instruction", "fg:ansibrightblack"),
    ("why", "fg:ansibrightblack"),
    ("answer", ""),
]
_INDENT = 3  # columns of the pointer


_PAUSE = 0.2  # seconds between two looks for an answer from elsewhere

Alternative = Callable[[], str | None]


def _nobody() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class PromptOption:
    id: str
    label: str
    why: str = ""


def ask_choice(
    question: str, options: Sequence[PromptOption], recommended: str | None, otherwise: Alternative = _nobody
) -> str:
    """The id of the option chosen, or what `otherwise` brings first; Ctrl-C and Esc raise KeyboardInterrupt."""
    question = text_table.clean_line(question)
    labels = {one.id: _label(one, recommended) for one in options}
    _forget_keys()
    if _is_plain():
        return _by_number(question, options, labels, otherwise)
    chosen = _by_arrows(question, options, labels, recommended, otherwise)
    _tell_answer(question, labels.get(chosen, chosen).removesuffix(_RECOMMENDED))
    return chosen


def ask_text(question: str) -> str:
    """Some words on one line; nothing is no answer."""
    question = text_table.clean_line(question)
    _forget_keys()
    while True:
        answer = " ".join((_line(question) if _is_plain() else _typed(question)).split())
        if answer:
            return answer
        output.report("A few words are needed; Ctrl-C stops.")


def confirm_when_ready(text: str) -> None:
    """Wait for Enter."""
    _forget_keys()
    _line(text_table.clean_line(text))


def _label(option: PromptOption, recommended: str | None) -> str:
    label = text_table.clean_line(option.label)
    return f"{label} {_RECOMMENDED}" if option.id == recommended else label


def _is_plain() -> bool:
    return os.environ.get("TERM", "dumb") in ("dumb", "unknown")


def _forget_keys() -> None:
    """What was typed before the question was there is no answer to it."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _by_arrows(
    question: str,
    options: Sequence[PromptOption],
    labels: dict[str, str],
    recommended: str | None,
    otherwise: Alternative,
) -> str:
    import questionary  # late: heavy, and most commands ask nothing

    choices = [questionary.Choice(_title(labels[one.id], one.why), one.id) for one in options]
    asked = questionary.select(
        _wrapped(f"{question} {_KEYS}", 2).removesuffix(_KEYS).rstrip(" "),
        choices,
        default=recommended if recommended in labels else None,
        pointer="❯",
        instruction=_KEYS,
        style=questionary.Style(_STYLE),
        erase_when_done=True,
        **_terminal(),
    )
    return str(_answered(asked.application, otherwise))


def _title(label: str, why: str) -> list[tuple[str, str]]:
    """Broken into lines that fit, as a list of choices is cut at the edge."""
    parts = [("class:text", _wrapped(label, _INDENT))]
    if why:
        parts.append(("class:why", f"\n{' ' * _INDENT}{_wrapped(text_table.clean_line(why), _INDENT)}"))
    return parts


def _wrapped(text: str, indent: int) -> str:
    """Lines as wide as the terminal, the first to stand where something of the indent's width stands already."""
    from rich.console import Console  # late: knows how wide letters are, and is heavy
    from rich.text import Text

    width = max((os.get_terminal_size(sys.stderr.fileno()).columns or 80) - indent - 1, 10)
    lines = Text(text).wrap(Console(file=sys.stderr), width)
    return f"\n{' ' * indent}".join(line.plain.rstrip() for line in lines)


def _tell_answer(question: str, answer: str) -> None:
    """What was asked and answered stays; the choices do not."""
    output.report(f"{click.style('?', fg='cyan')} {_wrapped(f'{question} {answer}', 2)}")


def _typed(question: str) -> str:
    import questionary  # late: heavy, and most commands ask nothing

    return str(
        _answered(questionary.text(_wrapped(question, 2), style=questionary.Style(_STYLE), **_terminal()).application)
    )


def _terminal() -> dict[str, Any]:
    """Drawn on stderr: stdout is for the result."""
    from prompt_toolkit.output import create_output

    return {"output": create_output(stdout=sys.stderr)}


def _answered(application: "Application[Any]", otherwise: Alternative = _nobody) -> Any:
    import asyncio

    from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings

    leaving = KeyBindings()

    @leaving.add("escape")
    def leave(event: Any) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    application.key_bindings = merge_key_bindings([application.key_bindings or KeyBindings(), leaving])
    application.ttimeoutlen = application.timeoutlen = 0.1  # seconds, to know Esc from the beginning of another key

    async def look_elsewhere() -> None:
        while (answer := otherwise()) is None:
            await asyncio.sleep(_PAUSE)
        application.exit(result=answer)

    def begin() -> None:
        if otherwise is not _nobody:
            application.create_background_task(look_elsewhere())

    try:
        return application.run(pre_run=begin)
    except EOFError:
        raise KeyboardInterrupt from None


def _by_number(question: str, options: Sequence[PromptOption], labels: dict[str, str], otherwise: Alternative) -> str:
    output.report(question)
    for number, one in enumerate(options, 1):
        output.report(f"  {number}  {labels[one.id]}{f': {text_table.clean_line(one.why)}' if one.why else ''}")
    while True:
        click.echo(f"1 to {len(options)}: ", err=True, nl=False)
        while not select.select([sys.stdin], [], [], _PAUSE)[0]:
            if delivered := otherwise():
                output.report("")
                return delivered
        answer = _read().strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1].id


def _line(question: str) -> str:
    """A line as the terminal gives it."""
    click.echo(f"{question} ", err=True, nl=False)
    return _read()


def _read() -> str:
    answer = sys.stdin.readline()
    if not answer:  # nobody is there any more
        raise KeyboardInterrupt
    return answer
