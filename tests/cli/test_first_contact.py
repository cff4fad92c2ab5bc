"""The first minutes of somebody who has just installed agentd, and no agent: whatever is typed, the way on is told."""

import shutil
from pathlib import Path

import pytest
from error_messages import ARROW, leads_on

from agentd.change import lifecycle
from agentd.project.layout import find_project
from scenario import Result, Scenario
from terminal import run_on_terminal

WORDS = "Let people sign in with Google"
NO_CHANGE_NEEDED = ("plan", "proposal", "run")
ON_A_CHANGE = (
    *("view", "impl", "archive", "status", "trace", "log", "cost", "drop", "validate", "rebase", "stop", "wait"),
    *("challenge", "reproposal", "implement", "review", "resolve-reviews"),
)


@pytest.fixture
def newcomer(box: Scenario, tmp_path: Path) -> Scenario:
    """A repository and a PATH with git and a shell in it, and no agent."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    box.env["PATH"] = str(programs)
    return box


@pytest.fixture
def outside(newcomer: Scenario) -> Scenario:
    """The same in a folder that is in no repository."""
    shutil.rmtree(newcomer.root / ".git")
    return newcomer


@pytest.fixture
def settled(newcomer: Scenario) -> Scenario:
    """The same after `agentd init`, with what that writes."""
    assert newcomer.agentd("init", "--no-commit").code == 0
    return newcomer


@pytest.fixture
def begun(project: Scenario) -> Scenario:
    """A project with one change."""
    lifecycle.create_change(find_project(), "add-oauth", WORDS)
    return project


def way_on(ran: Result, code: int, names: str = "", path: Path | None = None) -> str:
    """Short enough to be read at a glance; what the last line says to do."""
    assert ran.code == code, ran.out + ran.err
    lines = ran.err.splitlines()
    assert 2 <= len(lines) <= 3 and not ran.out, ran.out + ran.err
    assert lines[0].startswith("Error: ") and names in lines[0], lines
    assert all(len(line) <= 120 or (path and str(path) in line) for line in lines), lines
    assert lines[-1].startswith(ARROW), lines
    return lines[-1].removeprefix(ARROW)


# ---- before anything is set up


def test_bare_agentd_lists_its_commands(outside: Scenario) -> None:
    shown = outside.agentd()
    assert (shown.code, shown.err) == (0, "")
    assert "init  " in shown.out and "plan  " in shown.out


def test_following_the_hints_leads_from_an_empty_folder_to_the_first_plan(outside: Scenario) -> None:
    """git init, agentd init, and then only the agent is missing."""
    typed = f'agentd plan add-oauth "{WORDS}"'
    ran = leads_on(outside, typed)
    assert leads_on(outside, way_on(ran, 3, "is not in a git repository", outside.root)).code == 0
    ran = leads_on(outside, typed)
    assert leads_on(outside, way_on(ran, 3, "agentd/config.toml", outside.root)).code == 0
    told = way_on(leads_on(outside, typed), 3, "gemini (gemini) is not installed, and it is the planner")
    assert told == "npm install -g @google/gemini-cli, then log in with: gemini"
    assert not (outside.root / "agentd/changes/add-oauth").exists(), "nothing is made that nobody can work on"
    assert "npm install -g @google/gemini-cli" in leads_on(outside, "agentd doctor").out


def test_missing_agents_are_reported_before_any_question(settled: Scenario) -> None:
    seen = run_on_terminal(settled, "plan", "add-oauth", WORDS, width=120)
    assert seen.code == 3 and "?" not in seen.screen
    assert "npm install -g @google/gemini-cli" in [line for line in seen.lines if line.strip()][-1]


@pytest.mark.parametrize("command", ["init", "list", "status", "plan x y", "view --no-open", "trust", "config"])
def test_every_command_outside_git_suggests_git_init(outside: Scenario, command: str) -> None:
    assert way_on(outside.agentd(*command.split()), 3, "is not in a git repository", outside.root) == "git init"


@pytest.mark.parametrize("command", ["list", "status", "plan x y", "impl x", "view --no-open", "trust"])
def test_every_command_without_a_project_suggests_agentd_init(newcomer: Scenario, command: str) -> None:
    assert way_on(newcomer.agentd(*command.split()), 3, "agentd/config.toml", newcomer.root) == "agentd init"


# ---- typos


@pytest.mark.parametrize(("typed", "meant"), [("paln", "plan"), ("sttaus", "status"), ("arhcive", "archive")])
def test_mistyped_command_gets_a_suggestion(outside: Scenario, typed: str, meant: str) -> None:
    assert way_on(outside.agentd(typed, "x", WORDS), 2, f"'{typed}'") == f"did you mean agentd {meant}?"


def test_unknown_command_points_to_help(outside: Scenario) -> None:
    assert way_on(outside.agentd("xyzzy"), 2, "'xyzzy'") == "agentd --help lists all commands"
    assert leads_on(outside, "agentd --help").code == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("plan x --lihgt", "--light"), ("impl x --taks 1", "--tasks"), ("list --al", "--all"), ("init --yess", "--yes")],
)
def test_mistyped_option_gets_a_suggestion(settled: Scenario, typed: str, meant: str) -> None:
    guess, _, command = way_on(settled.agentd(*typed.split()), 2, "no such option").partition("? ")
    assert guess.startswith("did you mean ") and f"'{meant}'" in guess
    assert command == f"agentd {typed.split()[0]} --help"
    assert meant in leads_on(settled, command).out


def test_id_that_looks_like_an_option_points_to_help(settled: Scenario) -> None:
    hint = way_on(settled.agentd("plan", "-x", WORDS), 2, "'-x'")
    assert "ID" in leads_on(settled, hint).out


# ---- ids


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        (("Add OAuth!", WORDS), f'agentd plan add-oauth "{WORDS}"'),
        (("Add-OAuth",), 'agentd plan add-oauth "what should change"'),
        (("add oauth",), 'agentd plan add-oauth "add oauth"'),
        (("Add OAuth!",), "agentd plan add-oauth 'Add OAuth!'"),
        (("it's $HOME",), """agentd plan it-s-home 'it'"'"'s $HOME'"""),
        ((WORDS,), f'agentd plan let-people-sign-in "{WORDS}"'),
        ((f"{WORDS} and " * 9,), 'agentd plan let-people-sign-in "what should change"'),
        (("a" * 80, WORDS), f'agentd plan {"a" * 64} "{WORDS}"'),
        (("Größe ändern", WORDS), f'agentd plan grosse-andern "{WORDS}"'),
        (("two\nlines",), 'agentd plan two-lines "two lines"'),
    ],
)
def test_invalid_id_is_answered_with_the_intended_command(
    settled: Scenario, typed: tuple[str, ...], proposed: str
) -> None:
    hint = way_on(settled.agentd("plan", *typed), 2, ": use a-z, 0-9 and dashes, at most 64 characters")
    assert hint == proposed
    assert "it is the planner" in leads_on(settled, hint).err, "it gets as far as a right command gets here"


@pytest.mark.parametrize("typed", ["", "!!!", "日本"])
def test_id_without_a_suggestion_explains_the_rules(settled: Scenario, typed: str) -> None:
    hint = way_on(settled.agentd("plan", typed, WORDS), 2, "invalid change id")
    assert hint == "use lower-case letters, digits and dashes, at most 64, not starting with a dash"


@pytest.mark.parametrize("command", ["impl", "status", "archive"])
def test_invalid_id_of_an_existing_change_points_to_list(begun: Scenario, command: str) -> None:
    hint = way_on(begun.agentd(command, "Add OAuth"), 2, "invalid change id 'Add OAuth'")
    assert hint == "use add-oauth; agentd list shows the changes"
    assert "add-oauth" in leads_on(begun, "agentd list").out


def test_missing_id_points_to_help(settled: Scenario) -> None:
    assert "ID" in leads_on(settled, way_on(settled.agentd("plan"), 2, "'ID'")).out


@pytest.mark.parametrize("command", NO_CHANGE_NEEDED)
def test_new_change_without_description_is_refused(settled: Scenario, command: str) -> None:
    hint = way_on(settled.agentd(command, "add-oauth"), 2, "add-oauth is a new change and needs a description")
    assert hint == 'agentd plan add-oauth "what should change"'
    assert "it is the planner" in leads_on(settled, hint).err


# ---- which change


@pytest.mark.parametrize("command", ON_A_CHANGE)
def test_unknown_change_points_to_list(begun: Scenario, command: str) -> None:
    assert way_on(begun.agentd(command, "nosuch"), 1, "there is no change 'nosuch'") == "agentd list"


@pytest.mark.parametrize("command", ON_A_CHANGE)
def test_mistyped_change_id_gets_a_suggestion(begun: Scenario, command: str) -> None:
    hint = way_on(begun.agentd(command, "add-oaut"), 1, "there is no change 'add-oaut'")
    assert hint == "did you mean add-oauth? agentd list --all shows all changes"


def test_mistyped_id_of_an_ended_change_gets_a_suggestion(begun: Scenario) -> None:
    assert begun.agentd("drop", "add-oauth", "--yes").code == 0
    assert way_on(begun.agentd("cost", "add-oaut"), 1).startswith("did you mean add-oauth? ")
    assert begun.agentd("cost", "add-oauth").code == 0


def test_mistyped_id_for_plan_also_offers_a_new_change(begun: Scenario) -> None:
    hint = way_on(begun.agentd("plan", "add-oaut"), 2, "add-oaut is a new change")
    assert (
        hint == 'did you mean agentd plan add-oauth? To start a new change: agentd plan add-oaut "what should change"'
    )


# ---- nobody there


def test_unanswered_clarification_questions_name_their_flags(begun: Scenario) -> None:
    begun.env["PATH"] = f"{fake_agent(begun)}:{begun.env['PATH']}"
    hint = way_on(begun.agentd("plan", "add-tags", WORDS), 1, "nobody is available to answer questions about add-tags")
    assert all(flag in hint for flag in ("--skip-clarify", "--yes", "--clarifications FILE.json"))
    assert not (begun.root / "agentd/changes/add-tags").exists()


def fake_agent(box: Scenario) -> Path:
    """A planner that is installed, and never started."""
    program = box.home / "bin/gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program.parent
