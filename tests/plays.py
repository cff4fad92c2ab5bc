"""Playbooks for whole plans of the contract's example: three specs, one of them a delta on an existing one."""

import json
from pathlib import Path
from typing import Any

from stages import example_arguments
from support import EXAMPLE, Box, Ran
from working import PLAY, QUICK, ROLES, Action, say, settle, usage

IN_PLACE = '[git]\nsetup = "in-place"\n'  # nobody is asked where a change should live
DESCRIPTION = "Let people sign in with Google or GitHub"
SPECS = ("user-model", "auth-flow", "api-endpoints")
PASS = "<review>PASS</review>"
APPROVE = {"verdict": "APPROVED", "summary": "It holds.", "findings": [], "previous": []}


def call(tool: str, **arguments: Any) -> Action:
    return {"call": tool, "with": arguments}


def spec(spec_id: str) -> Action:
    """The example's own text of a spec."""
    return call("write_spec", spec_id=spec_id, content=(EXAMPLE / "specs" / f"{spec_id}.md").read_text())


def finding(severity: str = "high", title: str = "It breaks", **more: Any) -> dict[str, Any]:
    return {"severity": severity, "title": title, "what": "So it does.", "suggestion": "Mend it.", **more}


def verdict(word: str, *findings: dict[str, Any], **more: Any) -> list[Action]:
    report = {**APPROVE, "verdict": word, "findings": list(findings), **more}
    return [call("append_review", **report), usage(0.05), say("Reported.")]


def whole_plan() -> dict[str, list[Action]]:
    """Every step of a plan that goes well."""
    arguments = example_arguments()
    look = [usage(0.001), say(f"Looked.\n\n{PASS}")]
    steps: dict[str, list[Action]] = {
        "proposal-gen": [call("create_proposal", **arguments["create_proposal"]), usage(0.01), say("Written.")],
        "proposal-review": look,
        "spec-review-*": look,
        "tasks-gen": [call("create_tasks", **arguments["create_tasks"]), usage(0.01), say("Written.")],
        "tasks-review": look,
        "challenge": verdict("APPROVED"),
    }
    for one in SPECS:
        steps[f"spec-gen-{one}"] = [spec(one), usage(0.01), say("Written.")]
    every = [steps["proposal-gen"][0], *(spec(one) for one in SPECS), steps["tasks-gen"][0]]
    steps["plan-gen"] = [*every, usage(0.03), say("All written.")]
    steps["plan-review"] = look
    return steps


def small_plan() -> dict[str, list[Action]]:
    """A plan with one new spec, for tests that play it many times."""
    steps = whole_plan()
    proposal = json.loads(json.dumps(example_arguments()["create_proposal"]))
    proposal["impact"] |= {"scope": "patch", "affected_specs": ["user-model"], "affected_files": 2}
    tasks = example_arguments()["create_tasks"]["tasks"][:2]
    steps["proposal-gen"][0] = call("create_proposal", **proposal)
    steps["tasks-gen"][0] = call("create_tasks", tasks=tasks)
    steps["plan-gen"] = [steps["proposal-gen"][0], spec("user-model"), steps["tasks-gen"][0], usage(0.03), say("All.")]
    return steps


def stage(box: Box, steps: dict[str, list[Action]], more: str = "", workflow: str = "") -> None:
    """A committed and trusted project in which every role plays these steps; the example's main spec is there."""
    box.write("playbook.json", json.dumps({"steps": steps}))
    box.write("agentd/specs/api-endpoints.md", (EXAMPLE / "base" / "api-endpoints.md").read_text())
    box.write("agentd/.gitignore", "/changes/*/GEMINI.md\n/changes/*/AGENTS.md\n.*.tmp\n")
    settle(box, f"schema_version = 1\n{QUICK}{workflow}{IN_PLACE}{ROLES}{PLAY}{more}")


def plan(box: Box, *flags: str) -> Ran:
    """The command itself, on a new change or on the one that is there."""
    return box.agentd("plan", "add-oauth", DESCRIPTION, "--skip-clarify", *flags)


def folder(box: Box) -> Path:
    return box.root / "agentd" / "changes" / "add-oauth"
