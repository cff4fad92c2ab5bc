"""What a planning command was told: who can be asked, and what is answered already."""

from dataclasses import dataclass

from agentd.workflows.asking import Person


@dataclass(frozen=True)
class Wishes:
    person: Person | None = None
    yes: bool = False
    light: bool = False
    new_session: bool = False
    rechallenge: bool = False
    rounds: int | None = None  # None: as many as the configuration says
