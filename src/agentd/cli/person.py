"""The person at the terminal, asked while the live view steps aside."""

from agentd import git
from agentd.cli import questions
from agentd.cli.live import View
from agentd.workflows.asking import Question


class AtTerminal:
    def __init__(self, view: View, tree: str) -> None:
        self._view = view
        self._tree = tree

    @property
    def name(self) -> str:
        return git.user_name(self._tree)

    def choose(self, question: Question) -> str:
        options = [questions.Option(one.id, one.label) for one in question.options]
        with self._view.pause():
            return questions.ask(question.text, options, question.recommended)

    def wait(self, text: str) -> None:
        with self._view.pause():
            questions.confirm_when_ready(text)
