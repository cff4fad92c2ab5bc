"""A project whose planner and challenger play a playbook, and a way to let them work as a step would."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agentd import config, events, trust
from agentd.calls import attempts
from agentd.calls import run as runs
from agentd.calls.work import Done, Work
from agentd.change import entry
from agentd.change.folder import Change
from agentd.guard import plan_rule
from agentd.project import find_project
from agentd.terms import Role, Workflow
from agentd.tools.table import Stage
from stages import example_arguments
from support import Box

COMMAND = "agentd plan add-oauth"
ROLES = '[roles]\nplanner = "play"\nchallenger = "play"\nimplementer = "play"\nreviewer = "play"\n'
PLAY = '[agents.play]\nkind = "scripted"\nplaybook = "playbook.json"\n'
QUICK = "[workflow]\nretry_delay_secs = 0.05\n"

Action = dict[str, Any]


def say(text: str) -> Action:
    return {"say": text}


def usage(cost: float | None = None, tokens: int = 1000) -> Action:
    return {"usage": {"in": tokens, "out": 10} | ({} if cost is None else {"cost": cost})}


def propose() -> Action:
    return {"call": "create_proposal", "with": example_arguments()["create_proposal"]}


def play(box: Box, more: str = "", **steps: list[Action]) -> Change:
    """A committed project with that playbook (`challenge_r2_a1` is round 2, attempt 1), trusted, and a new change."""
    keys = {re.sub(r"-[ra](?=\d)", "/", name.replace("_", "-")): actions for name, actions in steps.items()}
    box.write("playbook.json", json.dumps({"steps": keys}))
    settle(box, f"schema_version = 1\n{QUICK}{ROLES}{PLAY}{more}")
    return entry.create(find_project(), "add-oauth", "Let people sign in")


def settle(box: Box, text: str) -> None:
    """That configuration, committed and trusted."""
    box.write("agentd/config.toml", text)
    box.commit("settings")
    project = find_project()
    trust.give(project, trust.wanted(project, config.load(project.config_file)), os.environ)


@contextmanager
def at_work(change: Change, watch: Callable[[events.Entry], None] = lambda entry: None) -> Iterator[runs.Run]:
    with runs.begin(change, lambda: config.load(change.project.config_file), Workflow.PLAN, COMMAND, watch) as run:
        yield run


def planning(run: runs.Run, **other: Any) -> Work:
    """The planner is to write proposal.md."""
    values: dict[str, Any] = {
        "step": "proposal-gen",
        "role": Role.PLANNER,
        "stage": Stage.PLAN,
        "prompt": "Write the proposal.",
        "reminder": "There is no proposal yet: call create_proposal.",
        "effect": (run.change.folder / "proposal.md").is_file,
        "may_edit": plan_rule(run.change.id),
    }
    return Work(**{**values, **other})


def challenging(run: runs.Run, **other: Any) -> Work:
    """The challenger is to report."""
    values: dict[str, Any] = {
        "step": "challenge",
        "role": Role.CHALLENGER,
        "stage": Stage.CHALLENGE,
        "prompt": "Find what breaks.",
        "reminder": "There is no report yet: call append_review.",
        "effect": (run.folder / "report.json").is_file,
    }
    return Work(**{**values, **other})


def perform(change: Change, **other: Any) -> Done:
    with at_work(change) as run:
        return attempts.perform(run, planning(run, **other))


def told(change: Change, kind: type[events.Happened]) -> list[Any]:
    return [entry.event for entry in change.journal().since(0)[0] if isinstance(entry.event, kind)]
