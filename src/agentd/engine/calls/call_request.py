"""What a step asks of an agent, and what it gets back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentd.domain import Complexity, Role
from agentd.engine.tools.tool import Stage


@dataclass(frozen=True, kw_only=True)
class CallRequest:
    """`effect` checks on disk whether the work was done; None if nothing has to change (self-review, questions)."""

    step: str
    round: int = 1
    number: int = 1
    role: Role
    stage: Stage
    prompt: str
    effect: Callable[[], bool] | None
    answer: Callable[[str], bool] = lambda text: False  # whether the agent's text alone is the result
    reminder: str = ""  # added to the prompt if the agent exited normally but did nothing
    complexity: Complexity = Complexity.MEDIUM
    resume: str | None = None  # the session to resume
    on_session: Callable[[str], None] | None = None  # called as soon as the agent reports its session
    may_edit: Callable[[str], bool] = lambda path: False  # protected files this step may write
    commands: tuple[str, ...] = ()  # shell commands the agent may run

    @property
    def only_reads(self) -> bool:
        return self.role.is_judge or self.stage is Stage.CLARIFY

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.step, self.round, self.number)

    def names(self, attempt: int) -> dict[str, Any]:
        """Return the fields that identify the call in events."""
        return {"step": self.step, "round": self.round, "number": self.number, "attempt": attempt}


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """The successful attempt: the agent's final text and its session."""

    attempt: int
    text: str
    session: str | None
    duration_ms: int
