"""The configuration as the rest of agentd uses it: checked, typed, frozen."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from agentd.agents import AgentSettings, PriceSettings
from agentd.domain import GitSetup, KeyPath, Role, Severity, dotted_key
from agentd.project.config.layer_merge import ConfigLeaf


class ConfigValue(NamedTuple):
    """An effective value. `source` is "default", a file with its line, a variable or "--set"."""

    key: str
    value: object
    source: str


@dataclass(frozen=True)
class WorkflowSettings:
    human_in_loop: bool
    self_review_iterations: int
    format_iterations: int
    planning_iterations: int
    implementation_iterations: int
    script_retries: int
    retry_delay_secs: float
    sequential_implementation: bool


@dataclass(frozen=True)
class GitSettings:
    """If `setup` is None, ask the user."""

    setup: GitSetup | None
    worktree_setup: str
    commit: Literal["off", "per-step"]


@dataclass(frozen=True)
class LimitSettings:
    calls_per_step: int
    output_mb: int
    wall_secs: Mapping[Role, float]
    idle_secs: Mapping[Role, float]


@dataclass(frozen=True)
class BudgetSettings:
    """Amounts in USD; 0 means no limit."""

    per_change: float
    per_day: float
    unknown_price: Literal["allow", "stop"]


@dataclass(frozen=True)
class CheckSettings:
    name: str
    command: str
    required: bool
    timeout: float


@dataclass(frozen=True)
class ValidationSettings:
    """If a rule's `severity` is None, it is off."""

    requirement_pattern: re.Pattern[str]
    scenario_pattern: re.Pattern[str]
    scenario_min_count: int
    required_headings: Mapping[str, tuple[str, ...]]
    max_lines: Mapping[str, int]
    severity: Mapping[str, Severity | None]


@dataclass(frozen=True)
class Config:
    project_name: str
    workflow: WorkflowSettings
    git: GitSettings
    roles: Mapping[Role, str]
    agents: Mapping[str, AgentSettings]
    limits: LimitSettings
    budget: BudgetSettings
    prices: Mapping[str, PriceSettings]
    checks: tuple[CheckSettings, ...]
    validation: ValidationSettings
    leaves: Mapping[KeyPath, ConfigLeaf] = field(repr=False, compare=False)

    def agent_for(self, role: Role) -> AgentSettings:
        return self.agents[self.roles[role]]

    def values(self) -> tuple[ConfigValue, ...]:
        """Return every effective value in template order, with its source."""
        return tuple(
            ConfigValue(dotted_key(path), leaf.value, leaf.layer.where(path)) for path, leaf in self.leaves.items()
        )
