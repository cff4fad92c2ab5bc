"""`agentd view --plain`: the latest word on a change, in a pager or as it is."""

from pathlib import Path

from agentd.change import lifecycle
from agentd.project.layout import find_project
from scenario import Scenario
from terminal import run_on_terminal


def born(project: Scenario) -> Path:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in").folder


def test_view_shows_the_latest_verdict_or_else_the_proposal(project: Scenario) -> None:
    folder = born(project)
    (folder / "proposal.md").write_text("# Change: add-oauth\n")
    assert project.agentd("view", "add-oauth", "--plain").out == "# Change: add-oauth\n"
    (folder / "CHALLENGE.md").write_text("**Verdict**: APPROVED\x1b[2J\n")
    assert project.agentd("view", "add-oauth", "--plain").out == "**Verdict**: APPROVED�[2J\n"


def test_view_without_documents_says_what_to_do(project: Scenario) -> None:
    born(project)
    ran = project.agentd("view", "add-oauth", "--plain")
    assert (ran.code, ran.out) == (1, "")
    assert "no documents yet" in ran.err and "agentd plan add-oauth" in ran.err


def test_view_opens_the_pager_on_a_terminal(project: Scenario, tmp_path: Path) -> None:
    (born(project) / "proposal.md").write_text("# Change: add-oauth\n")
    program = tmp_path / "my pager"
    program.write_text('#!/bin/sh\necho "paged: $1"; head -1 "$2"\n')
    program.chmod(0o755)
    project.env["PAGER"] = f"'{program}' -R"
    seen = run_on_terminal(project, "view", "add-oauth", "--plain")
    assert (seen.code, seen.lines) == (0, ["paged: -R", "# Change: add-oauth"])
