"""What a step asks of an agent, and what it gets back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentd.domain import Complexity, Role
from agentd.engine.tools.tool import Stage


@dataclass(frozen=True, kw_only=True)
class CallRequest:
    """`effect` looks on disk for what was asked; without one the step may change nothing (self-review, questions)."""

    step: str
    round: int = 1
    number: int = 1
    role: Role
    stage: Stage
    prompt: str
    effect: Callable[[], bool] | None
    answer: Callable[[str], bool] = lambda text: False  # whether the agent's words alone are what was asked for
    reminder: str = ""  # added to the prompt when the agent ended well and did nothing
    complexity: Complexity = Complexity.MEDIUM
    resume: str | None = None  # the session to go on with
    on_session: Callable[[str], None] | None = None  # told as soon as the agent names its session
    may_edit: Callable[[str], bool] = lambda path: False  # guarded files that are this step's own to write
    commands: tuple[str, ...] = ()  # shell commands that the agent may run

    @property
    def only_reads(self) -> bool:
        return self.role.is_judge or self.stage is Stage.CLARIFY

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.step, self.round, self.number)

    def names(self, attempt: int) -> dict[str, Any]:
        """Which call of it, as every event says."""
        return {"step": self.step, "round": self.round, "number": self.number, "attempt": attempt}


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """The attempt that did it: what the agent said in the end, and the session it said it in."""

    attempt: int
    text: str
    session: str | None
    duration_ms: int
