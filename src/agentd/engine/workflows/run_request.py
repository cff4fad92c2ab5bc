"""What to run on a change: a command, its options and its limits. Interfaces build it, the engine runs it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agentd.documents import Clarification
from agentd.domain import Lane
from agentd.engine.workflows.decision_questions import Person


@dataclass(frozen=True)
class RunOptions:
    person: Person | None = None  # who can be asked; None: nobody
    yes: bool = False  # take the recommended answer to every question
    light: bool = False
    skip_clarify: bool = False
    clarifications: tuple[Clarification, ...] = ()  # questions with their answers, from a file
    new_session: bool = False
    rechallenge: bool = False
    rounds: int | None = None  # None: as configured
    tasks: tuple[str, ...] = ()  # only these; empty: all
    review: bool = False  # review the code again
    known_failures: str = ""  # why checks that failed before the first edit may fail

    def granted_rounds(self, lane: Lane, iterations: int) -> int:
        """Return how many rounds the command may use without asking; the light lane has none."""
        if self.rounds is not None:
            return self.rounds
        return 0 if lane is Lane.LIGHT else iterations


@dataclass(frozen=True)
class PersonDecision:
    """A decision made without being asked. `seen` is the digest of what the person read, "" if not given."""

    answer: str
    reason: str
    by: str
    seen: str = ""


@dataclass(frozen=True)
class RunRequest:
    command: str
    options: RunOptions = field(default_factory=RunOptions)
    settings: tuple[str, ...] = ()  # configuration overrides, as given with --set
    requested_id: str = ""  # the id asked for, if the change got another one
    max_cost: float = 0.0  # USD this run may spend; 0: no limit
    raise_budget: float = 0.0  # USD the change may cost from now on; 0: unchanged
    decision: PersonDecision | None = None
    command_line: str = ""  # what was typed
    resume_flags: tuple[str, ...] = ()  # added to the command that resumes this run

    def command_text(self, change_id: str) -> str:
        """Return the command that runs, or resumes, this request."""
        options = self.options
        words = ["agentd", self.command, change_id]
        words += ["--rounds", str(options.rounds)] if options.rounds is not None else []
        words += ["--rechallenge"] if options.rechallenge else []
        words += ["--max-cost", f"{self.max_cost:.10g}"] if self.max_cost else []
        return " ".join([*words, *(["--yes"] if options.yes else []), *self.resume_flags])

    def to_json(self) -> dict[str, Any]:
        return asdict(replace(self, options=replace(self.options, person=None)))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "RunRequest":
        options = dict(data["options"])
        options["clarifications"] = tuple(Clarification(**row) for row in options["clarifications"])
        options["tasks"] = tuple(options["tasks"])
        decision = PersonDecision(**data["decision"]) if data["decision"] else None
        lists = {name: tuple(data[name]) for name in ("settings", "resume_flags")}
        return RunRequest(**{**data, **lists, "options": RunOptions(**options), "decision": decision})
