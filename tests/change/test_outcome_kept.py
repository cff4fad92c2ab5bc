"""How a run ended is kept where that is possible; where it is not, the run has ended all the same."""

from agentd.change import run_control
from scenario import Scenario

FOUND = ("High", "It breaks")


def test_command_reports_its_outcome_even_if_it_cannot_be_saved(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", FOUND).change
    project.write(".git/agentd/outcomes", "no folder")
    ended = project.agentd("plan", "add-oauth", "--accept", "Good enough.", "--json")
    assert (ended.code, ended.json["phase"]) == (0, "challenged"), ended.err
    assert run_control.last_outcome(change) is None
