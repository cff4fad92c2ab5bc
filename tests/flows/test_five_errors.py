"""Five errors that everybody meets sooner or later: each names the thing, says what to type, and loses nothing."""

import json
from typing import Any

from agentd import config, trust
from agentd.project import find_project
from planned import NO_LOOKS, TASKS_TEXT, change_of, proposed, put, quick_plan, replay
from plays import plan, stage
from support import Box, Ran
from working import say

CYCLE = TASKS_TEXT.replace("depends_on: []", 'depends_on: ["1.2"]')


def error(ran: Ran) -> dict[str, Any]:
    assert ran.json["error"], ran.out
    return dict(ran.json["error"])


def test_the_agents_tools_are_not_there(project: Box) -> None:
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
    stage(project, quick_plan(), f'[agents.claude]\ncommand = "{program}"\n', NO_LOOKS)
    text = (project.root / "agentd/config.toml").read_text().replace('planner = "play"', 'planner = "claude"')
    project.write("agentd/config.toml", text)
    trust.give(find_project(), trust.wanted(find_project(), config.load(find_project().config_file)), project.env)
    failed = error(plan(project, "--json"))
    assert failed["code"] == "tools-missing" and "agentd is failed" in failed["message"]
    assert failed["hint"] == "agentd doctor says why; then run the command again"
    assert change_of(project).read().phase == "drafting"
    project.write("agentd/config.toml", text.replace('planner = "claude"', 'planner = "play"'))
    assert plan(project).code == 0, "the same command goes on"


def test_the_planners_session_is_lost(project: Box) -> None:
    broken = quick_plan(proposal_gen=[put("proposal.md", "no proposal\n"), say("Written.")])
    broken["format-fix"] = [{"fault": "session-lost"}]
    stage(project, broken, workflow=NO_LOOKS)
    lost = error(plan(project, "--json"))
    assert (lost["code"], lost["message"]) == ("session-lost", "Session not found, please re-run proposal")
    assert "agentd plan add-oauth --new-session" in lost["hint"]
    replay(project, quick_plan(format_fix=[put("proposal.md"), say("Mended.")]))
    assert plan(project, "--new-session").code == 0


def test_the_form_is_still_wrong_after_two_tries(project: Box) -> None:
    broken = quick_plan(proposal_gen=[put("proposal.md", "no proposal\n"), say("Written.")], format_fix=[say("Done.")])
    stage(project, broken, workflow=NO_LOOKS)
    wrong = error(plan(project, "--json"))
    assert wrong["code"] == "format-invalid"
    assert wrong["message"].startswith("Format validation still failing after 2 iterations\n  proposal.md:")
    assert wrong["hint"] == "mend them (agentd validate add-oauth lists all), then: agentd plan add-oauth"
    project.write("agentd/changes/add-oauth/proposal.md", put("proposal.md")["text"])
    assert plan(project).code == 0, "mended by hand, it goes on"


def test_the_verdict_cannot_be_read(project: Box) -> None:
    change = proposed(project, [say("Looks good to me, ship it.")])
    unknown = error(project.agentd("challenge", "add-oauth", "--json"))
    assert (unknown["code"], unknown["message"]) == ("verdict-unknown", "Could not parse challenge verdict")
    assert unknown["hint"].startswith("agentd log add-oauth --transcript --step challenge shows what it answered")
    assert change.read().phase == "proposed", "no word is a yes"
    shown = project.agentd("log", "add-oauth", "--transcript", "--step", "challenge")
    assert "ship it" in shown.out


def test_tasks_depend_on_each_other_in_a_circle(project: Box) -> None:
    change = proposed(project, [say("**Verdict**: APPROVED")], {"format-fix": [say("Done.")]})
    project.write("agentd/changes/add-oauth/tasks.md", CYCLE)
    circle = error(project.agentd("challenge", "add-oauth", "--json"))
    assert circle["code"] == "format-invalid"
    assert "Circular dependency detected: data.1 → data.2 → data.1" in circle["message"]
    assert "agentd validate add-oauth" in circle["hint"]
    assert change.read().phase == "proposed" and not change.records()
    project.write("agentd/changes/add-oauth/tasks.md", TASKS_TEXT)
    assert project.agentd("challenge", "add-oauth").code == 0
