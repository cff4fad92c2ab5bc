"""One call of a scripted planner or challenger, made in this process as a step makes it."""

import json
import re
from typing import Any

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain.terms import Role
from agentd.engine.calls import retries
from agentd.engine.calls import run_context as runs
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.tools.tool import Stage
from agentd.guard.guard import plan_write_rule
from agentd.project.layout import find_project
from playbooks import Action
from scenario import PLAY, RETRY_AT_ONCE, ROLES, Scenario, open_run


def play(scenario: Scenario, more: str = "", **steps: list[Action]) -> Change:
    """A project with that playbook (`challenge_r2_a1` is round 2, attempt 1), and a new change."""
    keys = {re.sub(r"-[ra](?=\d)", "/", name.replace("_", "-")): actions for name, actions in steps.items()}
    scenario.write("playbook.json", json.dumps({"steps": keys}))
    scenario.configure(f"schema_version = 1\n{RETRY_AT_ONCE}{ROLES}{PLAY}{more}")
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def planner_request(run: runs.RunContext, **other: Any) -> CallRequest:
    """The planner is to write proposal.md."""
    values: dict[str, Any] = {
        "step": "proposal-gen",
        "role": Role.PLANNER,
        "stage": Stage.PLAN,
        "prompt": "Write the proposal.",
        "reminder": "There is no proposal yet: call create_proposal.",
        "effect": (run.change.folder / "proposal.md").is_file,
        "may_edit": plan_write_rule(run.change.id),
    }
    return CallRequest(**{**values, **other})


def challenger_request(run: runs.RunContext, **other: Any) -> CallRequest:
    """The challenger is to report."""
    values: dict[str, Any] = {
        "step": "challenge",
        "role": Role.CHALLENGER,
        "stage": Stage.CHALLENGE,
        "prompt": "Find what breaks.",
        "reminder": "There is no report yet: call append_review.",
        "effect": (run.folder / "report.json").is_file,
    }
    return CallRequest(**{**values, **other})


def call_planner(change: Change, **other: Any) -> CallResult:
    with open_run(change) as run:
        return retries.perform_call(run, planner_request(run, **other))
