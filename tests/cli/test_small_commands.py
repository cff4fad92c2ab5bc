"""`drop`, `config`, `completion`, and how errors and bugs are told."""

import os
import signal
import subprocess
from contextlib import suppress

import pytest

from agentd.change import lifecycle, state
from agentd.change.state import GitLocation
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import GitSetup
from agentd.project.layout import find_project
from processes import wait_until
from program import AGENTD, PATIENCE, Program
from scenario import Scenario
from terminal import run_on_terminal


@pytest.fixture
def one(project: Scenario) -> Scenario:
    lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    return project


# ---- drop ----------------------------------------------------------------------------------------


def test_drop_moves_the_folder_and_keeps_everything(one: Scenario) -> None:
    one.write("agentd/changes/add-oauth/proposal.md", "# Change\n")
    ran = one.agentd("drop", "add-oauth", "--yes", "--reason", "not needed", "--json")
    assert ran.code == 0, ran.err
    folder = one.root / ran.json["folder"]
    assert folder.parent == one.root / "agentd/archive" and folder.name.endswith("-add-oauth")
    assert (folder / "proposal.md").read_text() == "# Change\n"
    dropped = state.parse_state((folder / "STATE.yaml").read_text())
    (moved,) = dropped.history
    assert (dropped.phase, moved.by, moved.why, list(moved.hashes)) == (
        "dropped",
        "person:dev",
        "not needed",
        ["proposal.md"],
    )
    assert one.agentd("list", "--json").json["changes"] == []
    (row,) = one.agentd("list", "--all", "--json").json["changes"]
    assert (row["change_id"], row["phase"], row["next"]) == ("add-oauth", "dropped", None)
    assert one.agentd("drop", "add-oauth", "--yes").code == 1


def test_drop_asks_on_a_terminal_and_needs_yes_without_one(one: Scenario) -> None:
    ran = one.agentd("drop", "add-oauth")
    assert ran.code == 1 and "agentd drop add-oauth --yes" in ran.err
    assert run_on_terminal(one, "drop", "add-oauth", typed="n\n").code == 1
    assert (one.root / "agentd/changes/add-oauth").exists()
    assert run_on_terminal(one, "drop", "add-oauth", typed="y\n").code == 0
    assert not (one.root / "agentd/changes/add-oauth").exists()


def test_two_drops_of_one_id_on_the_same_day_get_two_folders(one: Scenario) -> None:
    for _ in range(2):
        assert one.agentd("drop", "add-oauth", "--yes").code == 0
        lifecycle.create_change(find_project(), "add-oauth", "again")
    names = sorted(path.name for path in (one.root / "agentd/archive").iterdir())
    assert len(names) == 2 and names[1] == f"{names[0]}-1"
    assert [row["change_id"] for row in one.agentd("list", "--all", "--json").json["changes"]] == ["add-oauth"] * 3


def test_drop_of_a_busy_change_is_refused(one: Scenario) -> None:
    with lifecycle.open_change(find_project(), "add-oauth").running("agentd impl add-oauth"):
        ran = one.agentd("drop", "add-oauth", "--yes")
    assert ran.code == 5 and f"'agentd impl add-oauth' (process {os.getpid()}, since " in ran.err


def test_drop_of_a_worktree_change_says_how_to_remove_the_worktree(project: Scenario) -> None:
    tree = "../notes-service-agentd/x"
    project.git("worktree", "add", "-q", "-b", "agentd/x", tree)
    lifecycle.create_change(find_project(), "x", "words", GitLocation(GitSetup.WORKTREE, "agentd/x", tree, "main"))
    ran = project.agentd("drop", "x", "--yes")
    assert ran.code == 0
    assert f"git worktree remove --force {tree}" in ran.out and "git branch -D agentd/x" in ran.out
    assert list((project.root / tree / "agentd/archive").iterdir())


# ---- config --------------------------------------------------------------------------------------


def test_config_shows_each_value_and_its_source(one: Scenario) -> None:
    one.write("agentd/config.toml", "schema_version = 1\n\n[budget]\nper_change = 3.5\n")
    (one.home / ".config/agentd").mkdir(parents=True)
    (one.home / ".config/agentd/config.toml").write_text("[workflow]\nplanning_iterations = 4\n")
    ran = one.agentd("--set", "git.setup=branch", "config", "--json", AGENTD_WORKFLOW__SCRIPT_RETRIES="7")
    assert ran.code == 0, ran.err
    values = ran.json["values"]
    assert values["budget.per_change"] == {"value": 3.5, "from": "agentd/config.toml:4"}
    assert values["workflow.planning_iterations"]["value"] == 4
    assert values["workflow.planning_iterations"]["from"].endswith("agentd/config.toml:2")
    assert values["workflow.script_retries"] == {"value": 7, "from": "AGENTD_WORKFLOW__SCRIPT_RETRIES"}
    assert values["git.setup"] == {"value": "branch", "from": "--set"}
    assert values["budget.per_day"] == {"value": 0.0, "from": "default"}
    assert one.agentd("config", "budget.per_change").out == "3.5\n"
    assert len(one.agentd("config", "budget").out.splitlines()) == 3


def test_config_reports_all_problems_at_once(one: Scenario) -> None:
    one.write("agentd/config.toml", "[workflow]\nplaning_iterations = 2\n\n[budget]\nper_change = 'much'\n")
    ran = one.agentd("config")
    assert ran.code == 3
    assert "config.toml:2: " in ran.err and "planning_iterations" in ran.err
    assert "config.toml:5: " in ran.err
    assert one.agentd("list").code == 0, "reading commands do not need it"


def test_unknown_config_key_is_a_usage_error(one: Scenario) -> None:
    assert one.agentd("config", "nonsense").code == 2


# ---- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(one: Scenario, shell: str) -> None:
    ran = one.agentd("completion", shell)
    assert ran.code == 0 and "_AGENTD_COMPLETE" in ran.out
    assert one.agentd("completion", SHELL=f"/usr/bin/{shell}").out == ran.out
    assert one.agentd("completion", shell, "--json").json["script"] in ran.out


def test_bash_completes_commands_and_ids(one: Scenario) -> None:
    script = """
eval "$(agentd completion bash)"
COMP_WORDS=(agentd %s); COMP_CWORD=%d; _agentd_completion agentd; printf '%%s\\n' "${COMPREPLY[@]}"
"""
    path = f"{os.path.dirname(AGENTD)}:{one.env['PATH']}"

    def complete(words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", script % (words, len(words.split()))],
            cwd=one.root,
            env={**one.env, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert complete("sta") == ["status"]
    assert complete("status add") == ["add-oauth"]


def test_completion_for_an_unknown_shell_lists_the_choices(one: Scenario) -> None:
    ran = one.agentd("completion", SHELL="/bin/tcsh")
    assert ran.code == 2 and "bash | zsh | fish" in ran.err


# ---- errors --------------------------------------------------------------------------------------


def test_bug_exits_70_with_a_report_file(one: Scenario) -> None:
    broken = "import agentd.change.locator as p; p.ChangeLocator.open = lambda self: 1 / 0"
    ran = one.python(f"import sys; sys.argv = ['agentd', 'list']; {broken}; from agentd.cli import main; main()")
    assert ran.code == 70 and "ZeroDivisionError" in ran.err
    report = ran.err.split("bug report: ")[1].strip()
    with open(report) as file:
        assert "Traceback" in file.read()
    os.unlink(report)


def test_ctrl_c_exits_130_and_says_how_to_continue(one: Scenario) -> None:
    """Held up by the write lock of another process, interrupted by a person."""
    change = lifecycle.open_change(find_project(), "add-oauth")
    with change.writing():
        process = Program(
            [AGENTD, "drop", "add-oauth", "--yes"], cwd=one.root, env=one.env, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: has_open(process.pid, "add-oauth.write"), "it stands before the lock")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "run the same command again" in err
    assert change.read().phase == "drafting"


def has_open(pid: int, name: str) -> bool:
    """A file of that name."""
    with suppress(FileNotFoundError):  # one that is closed while we look
        handles = f"/proc/{pid}/fd"
        return any(os.path.basename(os.readlink(f"{handles}/{handle}")) == name for handle in os.listdir(handles))
    return False


def test_unusable_lock_folder_is_named(one: Scenario) -> None:
    """A file stands in its place; that stops root too."""
    (one.root / ".git/agentd/locks/add-oauth.run").unlink(missing_ok=True)
    (one.root / ".git/agentd/locks").rename(one.root / ".git/agentd/old")
    (one.root / ".git/agentd/locks").write_text("")
    ran = one.agentd("drop", "add-oauth", "--yes")
    assert ran.code == 3 and ".git/agentd/locks" in ran.err


def test_refused_transition_lists_the_possible_ones(one: Scenario) -> None:
    from agentd.domain.errors import WrongPhase

    change = lifecycle.open_change(find_project(), "add-oauth")
    with pytest.raises(WrongPhase, match=r"drafting cannot take 'archived' .it can take: plan-generated, dropped"):
        change.update(lambda old: old.with_transition(TransitionEvent.ARCHIVED, by="agentd", why="", at="t"))


def test_bare_agentd_lists_its_commands(one: Scenario) -> None:
    ran = one.agentd()
    assert ran.code == 0
    for name in ("init", "list", "status", "drop", "config", "completion"):
        assert f"\n  {name} " in ran.out
    assert one.agentd("--version").out.startswith("agentd 0.")


def test_control_characters_in_config_values_are_removed(project: Scenario) -> None:
    project.write("agentd/config.toml", 'schema_version = 1\n[git]\nworktree_setup = "a\\u001b[2J\\u202eb"\n')
    ran = project.agentd("config")
    assert ran.code == 0
    assert "a�[2J�b" in ran.out
    assert not {"\x1b", "\u202e"} & set(ran.out)
