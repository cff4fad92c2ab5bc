"""An agent that reports no usage: its cost is unknown wherever cost is told, and never 0."""

import pytest

from playbooks import APPROVED
from program import AGENTD
from scenario import Scenario
from terminal import start_on_terminal

JUDGE = "#!/bin/sh\ncat > /dev/null\necho 'It holds.'\necho '**Verdict**: APPROVED'\n"
MINE = "[agents.mine]\nkind = 'command'\ncommand = './my-judge'\n"


def judged_silently(box: Scenario) -> None:
    """A plan whose challenger is a program that tells nothing of tokens."""
    box.write("my-judge", JUDGE).chmod(0o755)
    box.proposed(APPROVED, more=MINE)
    box.assign("challenger", "mine")


def test_agent_without_usage_has_unknown_cost_in_every_command(project: Scenario) -> None:
    judged_silently(project)
    judged = project.run("plan")
    assert judged.code == 0 and "Cost    unknown, 1 call without a known price" in judged.out
    lines = project.agentd("cost", "add-oauth").out.splitlines()
    assert ["challenge", "1", "?", "?", "?", "unknown"] in [line.split() for line in lines]
    assert "Not included: 1 call without a known price (an unknown model)" in lines
    total = project.agentd("cost", "add-oauth", "--json").json["total"]
    assert (total["calls"], total["calls_without_price"], total["cost"]) == (1, 1, 0.0)
    status = project.agentd("status", "add-oauth")
    assert "Cost      unknown, 1 call without a known price" in status.out
    assert "no usage reported, cost unknown" in project.agentd("log", "add-oauth").out


def test_run_with_unknown_cost_is_shown_next_to_the_change_cost(project: Scenario) -> None:
    project.proposed(APPROVED, more=MINE)
    assert "Cost    0.05 USD this run, 0.05 USD for the change\n" in project.run("plan").out
    project.write("my-judge", JUDGE).chmod(0o755)
    project.assign("challenger", "mine")
    again = project.run("plan", "--rechallenge")
    words = "Cost    unknown this run, 0.05 USD for the change, 1 call without a known price"
    assert again.code == 0 and words in again.out
    cost = project.run("plan", "--rechallenge", "--json").json["cost"]
    assert (cost["run"], cost["change"], cost["calls_without_price"]) == (None, 0.05, 2)
    assert "0.05 USD of 10.00 USD in 3 calls" in project.agentd("status", "add-oauth").out


def test_live_view_shows_unknown_cost(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    judged_silently(project)
    monkeypatch.chdir(project.root)
    person = start_on_terminal([AGENTD, "plan", "add-oauth", "--yes"], project.env)
    assert person.waits() == 0
    assert "  cost unknown · 0:0" in person.display.text and "0 tokens in" not in person.display.text


def test_program_that_cannot_start_is_not_counted_as_a_call(project: Scenario) -> None:
    judged_silently(project)
    (project.root / "my-judge").write_text("#!/no/such/shell\n")
    project.assign("challenger", "mine")
    assert project.run("plan").code != 0
    assert "No call has reported its usage yet." in project.agentd("cost", "add-oauth").out
