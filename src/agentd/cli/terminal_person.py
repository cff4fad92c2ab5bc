"""The person at the terminal, asked while the live view steps aside."""

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from agentd.cli import output, run_summary, terminal_prompts, text_table
from agentd.cli.progress_view import RunView
from agentd.engine import DecisionAnswer, Question
from agentd.project import git


def show_in_pager(path: Path, stream: TextIO) -> None:
    """On that stream, until the person has seen enough of it."""
    try:
        pager = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:
        pager = []  # a quote is not closed
    if stream.isatty() and pager and shutil.which(pager[0]) and path.is_file():
        subprocess.run([*pager, str(path)], stdout=stream.fileno(), check=False)
        return
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else f"{path.name} is gone.\n"
    for line in text.removesuffix("\n").split("\n"):
        stream.write(f"{text_table.strip_control(line)}\n")
    stream.flush()


_NOTHING_HAPPENS = ("view", "stop")


class TerminalPerson:
    def __init__(self, view: RunView, tree: str) -> None:
        self._view = view
        self._tree = tree
        self.told: list[str] = []
        """The findings above the last question, while nothing has come of it."""

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        options = [terminal_prompts.PromptOption(one.id, one.label) for one in question.options]
        delivered: list[DecisionAnswer] = []

        def elsewhere() -> str | None:
            if answer := otherwise():
                delivered.append(answer)
            return delivered[0].id if delivered else None

        with self._view.pause():
            if question.about:
                self._tell_standing(question.about)
            if question.why:
                output.report(output.paint(_wrapped(text_table.clean_line(question.why)), dim=True))
            chosen = terminal_prompts.ask_choice(question.text, options, question.recommended, elsewhere)
            if delivered:
                output.report(f"{delivered[0].by} decided: {chosen}")
                return delivered[0]
            if chosen not in _NOTHING_HAPPENS:
                self.told = []
            asks = question.answers[chosen].asks
            reason = terminal_prompts.ask_text(asks) if asks else ""
        return DecisionAnswer(chosen, f"person:{git.user_name(self._tree)}", "terminal", reason)

    def _tell_standing(self, about: Mapping[str, Any]) -> None:
        """Once, also where the question comes again."""
        width = _columns()
        found = run_summary.findings_text(about, width)
        if found != self.told:
            output.report("\n".join([*run_summary.verdict_lines(about, width), "", *found, ""]))
            self.told = found

    def tell(self, lines: Sequence[str]) -> None:
        with self._view.pause():
            for line in lines:
                output.report(text_table.strip_control(line))

    def wait(self, text: str) -> None:
        with self._view.pause():
            terminal_prompts.confirm_when_ready(text)

    def show(self, path: str) -> None:
        """On stderr, as stdout is for the result."""
        with self._view.pause():
            show_in_pager(Path(path), sys.stderr)


def _wrapped(text: str) -> str:
    """Lines that fit the terminal, so that it breaks no word."""
    return textwrap.fill(text, max(_columns() - 1, 20))


def _columns() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80
