"""Checked values -> the typed configuration."""

import re
from typing import Any

from agentd.config.merge import Merged
from agentd.config.model import (
    Agent,
    Budget,
    Check,
    Config,
    GitSettings,
    Limits,
    Model,
    Price,
    Validation,
    WorkflowSettings,
)
from agentd.config.schema import ASK, OFF
from agentd.config.template import check_defaults
from agentd.domain.terms import Complexity, GitSetup, Role, Severity


def build(merged: Merged) -> Config:
    tree = merged.tree()
    git, limits = tree["git"], tree["limits"]
    return Config(
        project_name=tree["project_name"],
        workflow=WorkflowSettings(**tree["workflow"]),
        git=GitSettings(**git | {"setup": None if git["setup"] == ASK else GitSetup(git["setup"])}),
        roles=_by_role(tree["roles"]),
        agents={name: _agent(name, **agent) for name, agent in tree["agents"].items()},
        limits=Limits(
            **limits | {"wall_secs": _by_role(limits["wall_secs"]), "idle_secs": _by_role(limits["idle_secs"])}
        ),
        budget=Budget(**tree["budget"]),
        prices={model: Price(**price) for model, price in tree["prices"].items()},
        checks=tuple(Check(**check_defaults() | check) for check in tree["checks"]),
        validation=_validation(tree["validation"]),
        leaves=merged.leaves,
    )


def _by_role(table: dict[str, Any]) -> dict[Role, Any]:
    return {Role(role): value for role, value in table.items()}


def _agent(
    name: str,
    *,
    kind: Any,
    args: list[str],
    shell: list[str],
    env: list[str],
    models: list[dict[str, Any]],
    command: str = "",
    playbook: str = "",
    resume: Any = None,
) -> Agent:
    chosen = tuple(Model(**model | {"complexity": tuple(map(Complexity, model["complexity"]))}) for model in models)
    return Agent(name, kind, command, playbook, tuple(args), tuple(shell), tuple(env), resume, chosen)


def _validation(table: dict[str, Any]) -> Validation:
    severity = table["severity"].items()
    return Validation(
        requirement_pattern=re.compile(table["requirement_pattern"]),
        scenario_pattern=re.compile(table["scenario_pattern"]),
        scenario_min_count=table["scenario_min_count"],
        required_headings={kind: tuple(headings) for kind, headings in table["required_headings"].items()},
        max_lines=table["max_lines"],
        severity={rule: None if word == OFF else Severity(word) for rule, word in severity},
    )
