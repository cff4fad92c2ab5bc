"""`agentd status ID`: phase, rounds, findings, checks, cost by step and what to type next."""

import shutil

import pytest

from agentd.cli.text_table import display_width
from plans import EXAMPLE
from scenario import Scenario
from terminal import run_on_terminal


@pytest.fixture
def example(project: Scenario) -> Scenario:
    """The example change in place, with all its records."""
    folder = project.root / "agentd/changes/add-oauth"
    shutil.copytree(EXAMPLE, folder)
    state = folder / "STATE.yaml"
    text = state.read_text().replace("setup: branch", "setup: in-place")
    state.write_text(text.replace("branch: agentd/add-oauth", "branch: null"))
    return project


def test_status_shows_all_sections(example: Scenario) -> None:
    ran = example.agentd("status", "add-oauth")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "add-oauth  challenged"
    assert lines[1].startswith("Let people sign in")
    names = [line.split()[0] for line in lines if line[:1].isupper()][1:]
    assert [name for name in names if name != "Where"] == [
        "Verdict",
        "Rounds",
        "Findings",
        "Steps",
        "Cost",
        "Updated",
        "Next",
    ]
    assert "Rounds    challenge 1 NEEDS_REVISION, 2 APPROVED; review 1 NEEDS_CHANGES" in ran.out
    assert lines[-1] == "Next      agentd impl add-oauth"


def test_json_has_the_rounds(example: Scenario) -> None:
    data = example.agentd("status", "add-oauth", "--json").json
    assert [(one["kind"], one["round"], one["verdict"]) for one in data["rounds"]] == [
        ("challenge", 1, "NEEDS_REVISION"),
        ("challenge", 2, "APPROVED"),
        ("review", 1, "NEEDS_CHANGES"),
    ]
    assert round(sum(one["cost"] for one in data["by_step"]), 6) == data["cost"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_status_fits_narrow_and_wide_terminals(example: Scenario, width: int) -> None:
    seen = run_on_terminal(example, "status", "add-oauth", width=width)
    assert seen.code == 0 and "Rounds" in seen.screen
    for line in seen.lines:
        assert display_width(line) <= width or " " not in line.strip(), line
