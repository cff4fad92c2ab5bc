"""The findings, one row each, and what they mean for the roles (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentd.domain import AgentdError, Role

MACHINE_SECTION = "machine"
PROJECT_SECTION = "project"


class DoctorState(StrEnum):
    OK = "ok"
    NOTE = "note"  # worth knowing, blocks nothing
    PROBLEM = "problem"


@dataclass(frozen=True)
class DoctorRow:
    """`about` is the machine, the project or an agent's section; `fix` is what to do or type."""

    about: str
    name: str
    state: DoctorState
    words: str
    fix: str = ""


@dataclass(frozen=True)
class DoctorReport:
    """`roles` is empty if the configuration cannot be read."""

    rows: tuple[DoctorRow, ...]
    project: str | None
    roles: Mapping[Role, str] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[DoctorRow, ...]:
        return tuple(row for row in self.rows if row.state is DoctorState.PROBLEM)

    def can_run(self, role: Role) -> bool:
        """Return whether the role can run. A machine or project problem blocks every role, an agent problem its own."""
        stopped = {row.about for row in self.problems}
        return role in self.roles and not stopped & {MACHINE_SECTION, PROJECT_SECTION, agent_section(self.roles[role])}


def agent_section(name: str) -> str:
    """Return the section for an agent's rows; the prefix avoids a clash with an agent named `machine`."""
    return f"agent {name}"


def problem_row(about: str, name: str, error: AgentdError) -> DoctorRow:
    return DoctorRow(about, name, DoctorState.PROBLEM, error.message, error.hint)
