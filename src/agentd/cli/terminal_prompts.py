"""Questions on a terminal: arrow keys if the terminal supports them, numbers otherwise."""

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
_INDENT = 3  # width of the pointer
_PAUSE = 0.2  # seconds between polls for an answer from elsewhere

Alternative = Callable[[], str | None]


def _no_answer() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class PromptOption:
    id: str
    label: str
    why: str = ""


def ask_choice(
    question: str, options: Sequence[PromptOption], recommended: str | None, otherwise: Alternative = _no_answer
) -> str:
    """Return the chosen option's id, or the first answer from `otherwise`; Ctrl-C and Esc raise KeyboardInterrupt."""
    question = text_table.clean_line(question)
    labels = {option.id: _label(option, recommended) for option in options}
    _discard_typed_keys()
    if _is_plain():
        return _choose_by_number(question, options, labels, otherwise)
    chosen = _choose_by_arrows(question, options, labels, recommended, otherwise)
    _print_answer(question, labels.get(chosen, chosen).removesuffix(_RECOMMENDED))
    return chosen


def ask_text(question: str) -> str:
    """Ask for one line of text; an empty answer is asked again."""
    question = text_table.clean_line(question)
    _discard_typed_keys()
    while True:
        answer = " ".join((_prompt_line(question) if _is_plain() else _prompt_text(question)).split())
        if answer:
            return answer
        output.report("Please type an answer, or press Ctrl-C to stop.")


def confirm_when_ready(text: str) -> None:
    """Wait for Enter."""
    _discard_typed_keys()
    _prompt_line(text_table.clean_line(text))


def _label(option: PromptOption, recommended: str | None) -> str:
    label = text_table.clean_line(option.label)
    return f"{label} {_RECOMMENDED}" if option.id == recommended else label


def _is_plain() -> bool:
    return os.environ.get("TERM", "dumb") in ("dumb", "unknown")


def _discard_typed_keys() -> None:
    """Discard keys typed before the question was shown."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _choose_by_arrows(
    question: str,
    options: Sequence[PromptOption],
    labels: dict[str, str],
    recommended: str | None,
    otherwise: Alternative,
) -> str:
    import questionary  # deferred: slow to import

    choices = [questionary.Choice(_title(labels[option.id], option.why), option.id) for option in options]
    prompt = questionary.select(
        _wrapped(f"{question} {_KEYS}", 2).removesuffix(_KEYS).rstrip(" "),
        choices,
        default=recommended if recommended in labels else None,
        pointer="❯",
        instruction=_KEYS,
        style=questionary.Style(_STYLE),
        erase_when_done=True,
        **_stderr_output(),
    )
    return str(_run_prompt(prompt.application, otherwise))


def _title(label: str, why: str) -> list[tuple[str, str]]:
    """Wrap the label and its explanation, which questionary would cut at the edge."""
    parts = [("class:text", _wrapped(label, _INDENT))]
    if why:
        parts.append(("class:why", f"\n{' ' * _INDENT}{_wrapped(text_table.clean_line(why), _INDENT)}"))
    return parts


def _wrapped(text: str, indent: int) -> str:
    """Wrap to the terminal's width; lines after the first are indented."""
    from rich.console import Console  # deferred: slow to import
    from rich.text import Text

    width = max((os.get_terminal_size(sys.stderr.fileno()).columns or 80) - indent - 1, 10)
    lines = Text(text).wrap(Console(file=sys.stderr), width)
    return f"\n{' ' * indent}".join(line.plain.rstrip() for line in lines)


def _print_answer(question: str, answer: str) -> None:
    """Print the question with its answer, without the choices."""
    output.report(f"{click.style('?', fg='cyan')} {_wrapped(f'{question} {answer}', 2)}")


def _prompt_text(question: str) -> str:
    import questionary  # deferred: slow to import

    return str(
        _run_prompt(
            questionary.text(_wrapped(question, 2), style=questionary.Style(_STYLE), **_stderr_output()).application
        )
    )


def _stderr_output() -> dict[str, Any]:
    """Draw on stderr; stdout is for the result."""
    from prompt_toolkit.output import create_output

    return {"output": create_output(stdout=sys.stderr)}


def _run_prompt(application: "Application[Any]", otherwise: Alternative = _no_answer) -> Any:
    import asyncio

    from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings

    escape_binding = KeyBindings()

    @escape_binding.add("escape")
    def leave(event: Any) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    application.key_bindings = merge_key_bindings([application.key_bindings or KeyBindings(), escape_binding])
    application.ttimeoutlen = application.timeoutlen = 0.1  # seconds, to tell Esc from the start of an escape sequence

    async def poll_elsewhere() -> None:
        while (answer := otherwise()) is None:
            await asyncio.sleep(_PAUSE)
        application.exit(result=answer)

    def start_polling() -> None:
        if otherwise is not _no_answer:
            application.create_background_task(poll_elsewhere())

    try:
        return application.run(pre_run=start_polling)
    except EOFError:
        raise KeyboardInterrupt from None


def _choose_by_number(
    question: str, options: Sequence[PromptOption], labels: dict[str, str], otherwise: Alternative
) -> str:
    output.report(question)
    for number, option in enumerate(options, 1):
        output.report(
            f"  {number}  {labels[option.id]}{f': {text_table.clean_line(option.why)}' if option.why else ''}"
        )
    while True:
        click.echo(f"1 to {len(options)}: ", err=True, nl=False)
        while not select.select([sys.stdin], [], [], _PAUSE)[0]:
            if delivered := otherwise():
                output.report("")
                return delivered
        answer = _read().strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1].id


def _prompt_line(question: str) -> str:
    """Read one line, without editing support."""
    click.echo(f"{question} ", err=True, nl=False)
    return _read()


def _read() -> str:
    answer = sys.stdin.readline()
    if not answer:  # end of input
        raise KeyboardInterrupt
    return answer
