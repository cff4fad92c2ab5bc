"""What a planning command was told: who can be asked, and what is answered already."""

from dataclasses import dataclass

from agentd.documents import Clarification as Answered
from agentd.domain import Lane
from agentd.engine.workflows.decision_questions import Person


@dataclass(frozen=True)
class RunOptions:
    person: Person | None = None
    yes: bool = False
    light: bool = False
    skip_clarify: bool = False
    clarifications: tuple[Answered, ...] = ()  # questions with their answers, from a file
    new_session: bool = False
    rechallenge: bool = False
    rounds: int | None = None  # None: as many as the configuration says
    tasks: tuple[str, ...] = ()  # only these; none: all
    review: bool = False  # judge the code again
    known_failures: str = ""  # why checks that failed before the first edit may fail

    def granted(self, lane: Lane, iterations: int) -> int:
        """Rounds that the command may use by itself; the light lane has none."""
        if self.rounds is not None:
            return self.rounds
        return 0 if lane is Lane.LIGHT else iterations
