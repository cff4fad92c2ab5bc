"""Questions for the person at the terminal, asked while the live display is paused."""

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
    """Show the file in the pager if the stream is a terminal, else print it."""
    try:
        pager = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:
        pager = []  # unbalanced quotes in $PAGER
    if stream.isatty() and pager and shutil.which(pager[0]) and path.is_file():
        subprocess.run([*pager, str(path)], stdout=stream.fileno(), check=False)
        return
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else f"{path.name} no longer exists.\n"
    for line in text.removesuffix("\n").split("\n"):
        stream.write(f"{text_table.strip_control(line)}\n")
    stream.flush()


_NO_EFFECT = ("view", "stop")


class TerminalPerson:
    def __init__(self, view: RunView, tree: str) -> None:
        self._view = view
        self._tree = tree
        self.shown_findings: list[str] = []
        """The findings printed above the last question, until it is answered."""

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        options = [terminal_prompts.PromptOption(option.id, option.label) for option in question.options]
        delivered: list[DecisionAnswer] = []

        def poll_delivered() -> str | None:
            if answer := otherwise():
                delivered.append(answer)
            return delivered[0].id if delivered else None

        with self._view.pause():
            if question.about:
                self._show_findings(question.about)
            if question.why:
                output.report(output.paint(_wrap_to_terminal(text_table.clean_line(question.why)), dim=True))
            chosen = terminal_prompts.ask_choice(question.text, options, question.recommended, poll_delivered)
            if delivered:
                output.report(f"{delivered[0].by} decided: {chosen}")
                return delivered[0]
            if chosen not in _NO_EFFECT:
                self.shown_findings = []
            asks = question.answers[chosen].asks
            reason = terminal_prompts.ask_text(asks) if asks else ""
        return DecisionAnswer(chosen, f"person:{git.user_name(self._tree)}", "terminal", reason)

    def _show_findings(self, about: Mapping[str, Any]) -> None:
        """Print the verdict and findings, unless they are already on the screen."""
        width = _columns()
        findings = run_summary.findings_text(about, width)
        if findings != self.shown_findings:
            output.report("\n".join([*run_summary.verdict_lines(about, width), "", *findings, ""]))
            self.shown_findings = findings

    def tell(self, lines: Sequence[str]) -> None:
        with self._view.pause():
            for line in lines:
                output.report(text_table.strip_control(line))

    def wait(self, text: str) -> None:
        with self._view.pause():
            terminal_prompts.confirm_when_ready(text)

    def show(self, path: str) -> None:
        """Show the file on stderr; stdout is for the result."""
        with self._view.pause():
            show_in_pager(Path(path), sys.stderr)


def _wrap_to_terminal(text: str) -> str:
    """Wrap to the terminal's width."""
    return textwrap.fill(text, max(_columns() - 1, 20))


def _columns() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80
