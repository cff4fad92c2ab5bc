"""Where a person should decide: the question, who answers it, and the word about it in the journal."""

from dataclasses import dataclass
from typing import Protocol

from agentd import events
from agentd.calls.run import Run


@dataclass(frozen=True)
class Option:
    """One answer. `flag` gives it without a terminal, `command` is the whole line to type."""

    id: str
    label: str
    flag: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    options: tuple[Option, ...]
    recommended: str


class Person(Protocol):
    """Whoever sits at the terminal."""

    @property
    def name(self) -> str: ...

    def choose(self, question: Question) -> str:
        """The id of the option taken."""
        ...

    def wait(self, text: str) -> None:
        """Until the person has done what the text says."""
        ...


def decide(run: Run, question: Question, person: Person | None, yes: bool = False) -> str | None:
    """The person's answer; the recommended one if all questions were answered so before; else None."""
    ids = tuple(option.id for option in question.options)
    if person is None and not yes:
        return None
    run.emit(
        events.DecisionAsked(id=question.id, question=question.text, options=ids, recommended=question.recommended)
    )
    answer, via = (person.choose(question), "terminal") if person else (question.recommended, "flag")
    by = f"person:{person.name}" if person else "agentd"
    run.emit(events.DecisionMade(id=question.id, answer=answer, reason=None, by=by, via=via))
    return answer
