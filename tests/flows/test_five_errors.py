"""Five errors that everybody meets sooner or later: each names the thing, says what to type, and loses nothing."""

import json
from typing import Any

from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from agentd.project.trust.items import trust_items
from agentd.project.trust.store import grant_trust
from plans import TASKS_TEXT
from playbooks import plan_steps, say, write_document
from scenario import NO_REVIEWS, Result, Scenario

CYCLE = TASKS_TEXT.replace("depends_on: []", 'depends_on: ["1.2"]')


def error(ran: Result) -> dict[str, Any]:
    assert ran.json["error"], ran.out
    return dict(ran.json["error"])


def test_unavailable_mcp_tools_are_reported_and_the_plan_can_continue(project: Scenario) -> None:
    """MCP tool failure: agentd's server does not come up in the agent."""
    told = {
        "type": "system",
        "subtype": "init",
        "session_id": "x",
        "mcp_servers": [{"name": "agentd", "status": "failed"}],
    }
    program = project.home / "claude"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(told)}'\nsleep 600\n")
    program.chmod(0o755)
    project.with_agents(plan_steps(), f'[agents.claude]\ncommand = "{program}"\n', NO_REVIEWS)
    text = (project.root / "agentd/config.toml").read_text().replace('planner = "play"', 'planner = "claude"')
    project.write("agentd/config.toml", text)
    grant_trust(find_project(), trust_items(find_project(), load_config(find_project().config_file)), project.env)
    failed = error(project.run("plan", "--json"))
    assert failed["code"] == "tools-missing" and "agentd is failed" in failed["message"]
    assert failed["hint"] == "run agentd doctor to see why, then run the command again"
    assert project.change.read().phase == "drafting"
    project.write("agentd/config.toml", text.replace('planner = "claude"', 'planner = "play"'))
    assert project.run("plan").code == 0, "the same command goes on"


def test_lost_planner_session_suggests_new_session(project: Scenario) -> None:
    broken = plan_steps(proposal_gen=[write_document("proposal.md", "no proposal\n"), say("Written.")])
    broken["format-fix"] = [{"fault": "session-lost"}]
    project.with_agents(broken, workflow=NO_REVIEWS)
    lost = error(project.run("plan", "--json"))
    assert (lost["code"], lost["message"]) == ("session-lost", "Session not found, please re-run proposal")
    assert "agentd plan add-oauth --new-session" in lost["hint"]
    project.replay(plan_steps(format_fix=[write_document("proposal.md"), say("Mended.")]))
    assert project.run("plan", "--new-session").code == 0


def test_persistent_format_errors_are_reported_and_a_manual_fix_continues(project: Scenario) -> None:
    broken = plan_steps(
        proposal_gen=[write_document("proposal.md", "no proposal\n"), say("Written.")], format_fix=[say("Done.")]
    )
    project.with_agents(broken, workflow=NO_REVIEWS)
    wrong = error(project.run("plan", "--json"))
    assert wrong["code"] == "format-invalid"
    assert wrong["message"].startswith("Format validation still failing after 2 iterations\n  proposal.md:")
    assert wrong["hint"] == "fix them (agentd validate add-oauth lists all), then: agentd plan add-oauth"
    project.write("agentd/changes/add-oauth/proposal.md", write_document("proposal.md")["text"])
    assert project.run("plan").code == 0, "fixed by hand, it continues"


def test_unreadable_verdict_moves_nothing_and_points_to_the_transcript(project: Scenario) -> None:
    change = project.proposed([say("Looks good to me, ship it.")]).change
    unknown = error(project.agentd("challenge", "add-oauth", "--json"))
    assert (unknown["code"], unknown["message"]) == ("verdict-unknown", "Could not parse challenge verdict")
    assert unknown["hint"].startswith("agentd log add-oauth --transcript --step challenge shows what it answered")
    assert change.read().phase == "proposed", "no word is a yes"
    shown = project.agentd("log", "add-oauth", "--transcript", "--step", "challenge")
    assert "ship it" in shown.out


def test_circular_task_dependencies_are_reported_before_the_challenge(project: Scenario) -> None:
    change = project.proposed([say("**Verdict**: APPROVED")], {"format-fix": [say("Done.")]}).change
    project.write("agentd/changes/add-oauth/tasks.md", CYCLE)
    circle = error(project.agentd("challenge", "add-oauth", "--json"))
    assert circle["code"] == "format-invalid"
    assert "Circular dependency detected: data.1 → data.2 → data.1" in circle["message"]
    assert "agentd validate add-oauth" in circle["hint"]
    assert change.read().phase == "proposed" and not change.records()
    project.write("agentd/changes/add-oauth/tasks.md", TASKS_TEXT)
    assert project.agentd("challenge", "add-oauth").code == 0
