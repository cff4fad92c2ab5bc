"""A new branch or work tree is made in parts: the set-up command, hooks, and a kill -9 between any two of them."""

import os
import subprocess

import pytest

from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from agentd.project.trust.items import trust_items
from agentd.project.trust.store import grant_trust, revoke_trust
from git_setups import BEGIN, BRANCH, begin, home, is_set_up, is_untouched, prepare_project
from plans import SIGN_IN
from playbooks import FOLDER
from program import AGENTD, CrashPoint, Program
from scenario import Scenario

CLEAR = ("proposal", "add-oauth", SIGN_IN)  # its clarifications are there
CLARIFIED = "---\nchange: add-oauth\n---\n\n# Clarifications\n\n## Which providers?\n\n**Answer**: Google\n"
# hooks and commands that end the agentd which started them, the first time
KILL_ONCE = 'if [ ! -e "{flag}" ]; then touch "{flag}"; {kill}; fi'
OF_A_HOOK = "kill -9 $(ps -o ppid= -p $PPID)"  # its parent is git


def set_up(command: str) -> str:
    return f"[git]\nsetup = \"worktree\"\nworktree_setup = '''{command}'''\n"


def hook(box: Scenario, text: str, folder: str = ".git/hooks") -> None:
    box.write(f"{folder}/post-checkout", f"#!/bin/sh\n{text}\n").chmod(0o755)


def kill_once(box: Scenario, kill: str) -> str:
    return KILL_ONCE.format(flag=box.home / "killed", kill=kill)


# ---- worktree_setup


def test_setup_command_runs_in_the_new_worktree_with_the_users_locale(project: Scenario) -> None:
    prepare_project(project, set_up("pwd > made; echo größe >> made; echo $LC_ALL >> made"))
    ran = project.agentd(*BEGIN, cwd=project.root / "src", LC_ALL="C.UTF-8")
    assert ran.code == 0 and "Setting up the worktree: pwd > made" in ran.err
    assert (project.worktree() / "made").read_text() == f"{project.worktree()}\ngröße\nC.UTF-8\n"
    assert project.git("status", "--porcelain") == ""


def test_failed_setup_command_shows_its_output_and_runs_again(project: Scenario) -> None:
    ok = project.home / "ok"
    prepare_project(project, set_up(f"echo once >> count; seq 100; echo too bad >&2; test -e {ok}"))
    failed = project.agentd(*BEGIN, "--json")
    assert failed.code == 3
    lines = failed.json["error"]["message"].splitlines()
    assert lines[0].startswith("worktree_setup ended with exit code 1: echo once")
    assert lines[1:] == [*(f"  {number}" for number in range(82, 101)), "  too bad"]
    assert "../notes-service-agentd/add-oauth stays as it is" in failed.hint
    assert not (project.worktree() / FOLDER).exists() and project.agentd("list", "--json").json["changes"] == []
    ok.touch()
    assert project.agentd(*BEGIN).code == 0
    assert (project.worktree() / "count").read_text() == "once\nonce\n" and is_set_up(project, "worktree")


def test_setup_command_may_leave_a_process_running(project: Scenario) -> None:
    """A server that it started has its output open, and nobody waits for that."""
    prepare_project(project, set_up("sleep 300 & echo $! > pid"))
    assert project.agentd(*BEGIN).code == 0
    os.kill(int((project.worktree() / "pid").read_text()), 9)


def test_untrusted_setup_command_is_not_run_and_nothing_is_written(project: Scenario) -> None:
    prepare_project(project, set_up("touch made"))
    revoke_trust(find_project(), os.environ)
    assert project.agentd(*BEGIN, "--json").json["error"]["code"] == "not-trusted"
    assert is_untouched(project)
    wanted = trust_items(find_project(), load_config(find_project().config_file))
    grant_trust(find_project(), [one for one in wanted if "touch made" not in one.text], os.environ)
    assert project.agentd(*BEGIN, "--json").json["error"]["code"] == "not-trusted"
    assert is_untouched(project)


# ---- hooks


@pytest.mark.parametrize("way", ["branch", "worktree"])
@pytest.mark.parametrize("folder", [".git/hooks", "hooks"])
def test_failing_git_hook_does_not_undo_the_setup(project: Scenario, way: str, folder: str) -> None:
    hook(project, "echo printed; echo failed >&2; exit 3", folder)
    prepare_project(project)
    if folder == "hooks":
        project.git("config", "core.hooksPath", str(project.root / folder))
    ran = begin(project, way, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["git"]["setup"] == way and is_set_up(project, way)


# ---- a change being born


def test_existing_clarifications_move_to_the_worktree(project: Scenario) -> None:
    prepare_project(project, workflow="")
    project.write(f"{FOLDER}/clarifications.md", CLARIFIED)
    begun = project.agentd(*CLEAR, "--git", "worktree", "--json", cwd=project.root / "src")
    assert (begun.code, begun.json["change_id"]) == (0, "add-oauth"), begun.err
    assert (project.worktree() / FOLDER / "clarifications.md").read_text() == CLARIFIED
    assert project.git("status", "--porcelain") == "" and not (project.root / FOLDER).exists()


# ---- killed


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_setup_killed_after_git_created_the_branch_is_resumed(project: Scenario, way: str) -> None:
    prepare_project(project)
    hook(project, kill_once(project, OF_A_HOOK))
    assert begin(project, way).code == -9
    assert not (home(project, way) / FOLDER).exists()
    assert BRANCH in project.git("branch", "--list", BRANCH)
    assert begin(project, way).code == 0
    assert is_set_up(project, way)


def test_setup_killed_during_git_checkout_is_completed_by_the_same_command(project: Scenario) -> None:
    """All of them at once, as when the power goes."""
    project.write(".gitattributes", "*.big filter=deadly\n")
    project.write("src/data.big", "big\n")
    prepare_project(project)
    project.git("config", "filter.deadly.smudge", f"{kill_once(project, 'kill -9 0')}; cat")
    argv = [AGENTD, *BEGIN, "--git", "worktree"]
    with Program(argv, cwd=project.root, env=project.env, stdin=subprocess.DEVNULL, process_group=0) as killed:
        killed.communicate()
    assert killed.returncode == -9 and not (project.worktree() / "src/data.big").exists()
    again = begin(project, "worktree")
    assert again.code == 0, again.err
    assert (project.worktree() / "src/data.big").read_text() == "big\n" and is_set_up(project, "worktree")
    assert "D " not in project.git("status", "--porcelain", cwd=project.worktree())
    project.git("worktree", "remove", "--force", str(project.worktree()))  # which git refuses while it is locked


def test_setup_killed_in_the_setup_command_is_resumed(project: Scenario) -> None:
    prepare_project(project, set_up(f"echo begun >> count; {kill_once(project, 'kill -9 $PPID')}; echo ended >> count"))
    assert project.agentd(*BEGIN).code == -9
    assert project.agentd(*BEGIN).code == 0
    assert (project.worktree() / "count").read_text().endswith("begun\nended\n") and is_set_up(project, "worktree")


def fell(box: Scenario, way: str, moment: str, number: int) -> bool:
    """Killed at the number-th write of a document, in whichever tree; False: it came to its end."""
    done = box.agentd(*CLEAR, "--git", way, crash=CrashPoint(moment, number, str(box.root)))
    assert done.code in (0, -9), done.err
    return done.code == -9


@pytest.mark.parametrize("way", ["branch", "worktree"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_setup_killed_at_any_write_keeps_clarifications_and_id(project: Scenario, way: str, moment: str) -> None:
    """A change being born, with clarifications.md in the tree where the command is given."""
    prepare_project(project, workflow="")
    for number in range(1, 9):
        project.write(f"{FOLDER}/clarifications.md", CLARIFIED)
        assert fell(project, way, moment, number)
        is_begun = (home(project, way) / FOLDER / "STATE.yaml").exists()
        assert project.agentd(*CLEAR, "--git", way).code == 0, number
        assert is_set_up(project, way)
        assert (home(project, way) / FOLDER / "clarifications.md").read_text() == CLARIFIED
        assert way == "branch" or not (project.root / FOLDER).exists()
        if is_begun:
            break
        again(project, way)
    assert is_begun and number > 1


def again(box: Scenario, way: str) -> None:
    """As if nothing had been."""
    dropped = box.agentd("drop", "add-oauth", "--yes", "--json")
    for command in dropped.json["to_remove"]:
        box.git(*command.split()[1:])
    box.git("clean", "-qfdx")


# ---- two at once


@pytest.mark.parametrize("way", ["in-place", "branch", "worktree"])
def test_one_of_two_concurrent_plans_of_a_new_change_succeeds(project: Scenario, way: str) -> None:
    prepare_project(project)
    argv, pipe = [AGENTD, *BEGIN, "--git", way, "--json"], subprocess.PIPE
    both = [
        Program(argv, cwd=project.root, env=project.env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes[0] == 0 and codes[1] in (0, 1, 3, 5), said
    assert b"Traceback" not in b"".join(err for _, err in said)
    if way != "in-place":
        assert is_set_up(project, way)
    assert project.agentd("status", "add-oauth", "--json").json["phase"] == "proposed"
