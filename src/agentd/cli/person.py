"""The person at the terminal, asked while the live view steps aside."""

import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.cli import closing, output, pager, questions, table
from agentd.cli.view import View
from agentd.engine.workflows.decision_questions import DecisionAnswer, Question
from agentd.project import git

_NOTHING_HAPPENS = ("view", "stop")


class AtTerminal:
    def __init__(self, view: View, tree: str) -> None:
        self._view = view
        self._tree = tree
        self.told: list[str] = []
        """The findings above the last question, while nothing has come of it."""

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        options = [questions.Option(one.id, one.label) for one in question.options]
        delivered: list[DecisionAnswer] = []

        def elsewhere() -> str | None:
            if answer := otherwise():
                delivered.append(answer)
            return delivered[0].id if delivered else None

        with self._view.pause():
            if question.about:
                self._tell_standing(question.about)
            if question.why:
                output.tell(output.paint(_wrapped(table.clean(question.why)), dim=True))
            chosen = questions.ask(question.text, options, question.recommended, elsewhere)
            if delivered:
                output.tell(f"{delivered[0].by} decided: {chosen}")
                return delivered[0]
            if chosen not in _NOTHING_HAPPENS:
                self.told = []
            asks = question.answers[chosen].asks
            reason = questions.ask_text(asks) if asks else ""
        return DecisionAnswer(chosen, f"person:{git.user_name(self._tree)}", "terminal", reason)

    def _tell_standing(self, about: Mapping[str, Any]) -> None:
        """Once, also where the question comes again."""
        width = _columns()
        found = closing.findings(about, width)
        if found != self.told:
            output.tell("\n".join([*closing.verdict(about, width), "", *found, ""]))
            self.told = found

    def tell(self, lines: Sequence[str]) -> None:
        with self._view.pause():
            for line in lines:
                output.tell(table.harmless(line))

    def wait(self, text: str) -> None:
        with self._view.pause():
            questions.confirm_when_ready(text)

    def show(self, path: str) -> None:
        """On stderr, as stdout is for the result."""
        with self._view.pause():
            pager.show(Path(path), sys.stderr)


def _wrapped(text: str) -> str:
    """Lines that fit the terminal, so that it breaks no word."""
    return textwrap.fill(text, max(_columns() - 1, 20))


def _columns() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80
