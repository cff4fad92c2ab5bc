"""`agentd doctor`: what it finds, what it advises, and that it leaves everything as it was."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.agents.registry import CLIS
from agentd.change import lifecycle
from agentd.cli.text_table import display_width
from agentd.doctor import agent_checks, diagnosis, system_checks
from agentd.doctor.report import DoctorReport, DoctorRow, DoctorState, agent_section
from agentd.domain.terms import Role
from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from processes import Clock
from program import PATIENCE
from scenario import Result, Scenario
from terminal import run_on_terminal

VERSIONS = {"gemini": "0.61.0", "codex": "codex-cli 0.166.0", "claude": "2.1.197 (Claude Code)"}
KEYS = {"GEMINI_API_KEY": "a-key", "CODEX_API_KEY": "a-key", "ANTHROPIC_API_KEY": "a-key"}
PINNED = Path(__file__).parent.parent / "loopback" / "package.json"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """All there is of PATH: git, and what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    git = shutil.which("git")
    assert git
    (folder / "git").symlink_to(git)
    return folder


@pytest.fixture
def here(project: Scenario, bin_folder: Path) -> Scenario:
    """A project whose three agents are installed and logged in by a key."""
    for name, says in VERSIONS.items():
        program(bin_folder / name, f"echo '{says}'")
    project.env |= {"PATH": str(bin_folder), **KEYS}
    return project


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def says(box: Scenario, text: str, trusted: bool = True) -> None:
    box.write("agentd/config.toml", f"schema_version = 1\n{text}")
    if trusted:
        assert box.agentd("trust", "--yes").code == 0


def row(ran: Result, about: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in ran.json["rows"] if (one["about"], one["name"]) == (about, name)]
    return dict(found)


def seated(box: Scenario, agent: str, **env: str) -> dict[str, DoctorRow]:
    """The rows about one agent, as if it sat in every role, by their names."""
    found, scratch = find_project(), box.home.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    environ = {**box.env, **env}
    settings = replace(load_config(found.config_file, environ=environ), roles=dict.fromkeys(Role, agent))
    around = agent_checks.AgentEnvironment(found, settings, environ, box.home, scratch)
    return {one.name: one for one in agent_checks.agent_rows(around)}


def files_in(*folders: Path) -> dict[Path, object]:
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None
        for folder in folders
        for path in folder.rglob("*")
    }


# ---- all of it -------------------------------------------------------------------------------------


def test_healthy_project_passes_and_is_unchanged(here: Scenario) -> None:
    says(here, '[[checks]]\nname = "tests"\ncommand = "false"\n')
    before = files_in(here.root, here.home)
    ran = here.agentd("doctor", "--json")
    assert ran.code == 0 and ran.err == "" and files_in(here.root, here.home) == before
    data = ran.json
    assert (data["schema_version"], data["command"], data["error"], data["exit_code"]) == (1, "doctor", None, 0)
    assert data["project"] == str(here.root)
    assert {one["state"] for one in data["rows"]} == {"ok"} and {one["fix"] for one in data["rows"]} == {None}
    assert data["roles"]["reviewer"] == {"agent": "codex", "can_run": True}
    assert row(ran, "project", "MCP server")["words"] == "answers with its 6 tools"
    assert row(ran, "project", "checks")["words"] == "tests"


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("no-such-runner -q", "problem"),
        ("CI=1 no-such-runner", "problem"),
        ("./missing.sh", "problem"),
        ("no-such-runner || true", "ok"),  # what a shell must understand is not judged
        ("'unclosed", "ok"),
        ("git --version", "ok"),
    ],
)
def test_missing_program_of_a_check_is_reported(command: str, state: str, here: Scenario) -> None:
    says(here, f'[[checks]]\nname = "tests"\ncommand = "{command}"\nrequired = true\n')
    ran = here.agentd("doctor", "--json")
    found = row(ran, "project", "checks")
    assert found["state"] == state, found
    if state == "problem":
        assert "which is not here" in found["words"] and found["fix"].startswith("install it")
    for agent, says_ in VERSIONS.items():
        match = re.search(r"[\d.]+", says_)
        assert match and row(ran, f"agent {agent}", "version")["words"] == f"{match[0]}, known"
    assert "a-key" not in ran.out


def test_table_shows_a_fix_for_each_problem(here: Scenario, bin_folder: Path) -> None:
    (bin_folder / "gemini").unlink()
    program(bin_folder / "claude", "echo 9.9.9")
    ran = here.agentd("doctor")
    assert ran.code == 3 and ran.err == "" and "\x1b" not in ran.out
    assert (
        "gemini (planner)\n"
        "  problem  program     gemini is in no folder of PATH\n"
        "                       → npm install -g @google/gemini-cli; or use codex, which is installed: agentd init\n"
    ) in ran.out
    assert "codex (challenger, reviewer)\n  ok       program     " in ran.out
    assert "  note     version     9.9.9 is not known\n" in ran.out
    assert "→ if it fails: npm install -g @anthropic-ai/claude-code@2.1\n" in ran.out
    assert "  note     checks      none, so nothing proves the code\n" in ran.out
    assert ran.out.endswith("\nplanner cannot run until the problem is fixed.\n")


def test_several_roles_that_cannot_run_are_listed(here: Scenario, bin_folder: Path) -> None:
    for name in ("gemini", "codex"):
        (bin_folder / name).unlink()
    ran = here.agentd("doctor")
    assert ran.out.endswith("\nplanner, challenger and reviewer cannot run until the 2 problems are fixed.\n")


def test_agent_problem_stops_its_roles_and_other_problems_stop_all() -> None:
    roles = dict(zip(Role, ("gemini", "codex", "machine", "codex"), strict=True))

    def stopped(about: str, state: DoctorState = DoctorState.PROBLEM) -> list[str]:
        report = DoctorReport(
            (DoctorRow("machine", "git", DoctorState.OK, ""), DoctorRow(about, "x", state, "")), None, roles
        )
        return [role for role in Role if not report.can_run(role)]

    assert stopped(agent_section("codex")) == ["challenger", "reviewer"]
    assert stopped(agent_section("machine")) == ["implementer"], "an agent of that name is not the machine"
    assert stopped(agent_section("codex"), DoctorState.NOTE) == []
    assert len(stopped("machine")) == len(stopped("project")) == len(Role)


def test_no_line_is_wider_than_the_terminal(here: Scenario, bin_folder: Path) -> None:
    program(
        bin_folder / "claude", "printf 'one\\033[31m two three four five six seven eight nine ten eleven' >&2; exit 7"
    )
    seen = run_on_terminal(here, "doctor", width=60)
    assert seen.code == 3 and "\x1b[31mproblem" in seen.screen
    assert "one�[31m two" in " ".join(seen.screen.split())
    wide = [line for line in seen.lines if display_width(line) > 60]
    assert [line for line in wide if "/" not in line] == [], "only a path is not broken"


# ---- where nothing is set up -----------------------------------------------------------------------


def test_doctor_outside_a_repository_checks_machine_and_agents(here: Scenario, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran = here.agentd("doctor", "--json", cwd=elsewhere)
    assert ran.code == 3 and ran.json["project"] is None
    found = row(ran, "project", "repository")
    assert (found["state"], found["fix"]) == ("problem", "git init")
    assert row(ran, "agent claude", "version")["state"] == "ok"
    assert not any(seat["can_run"] for seat in ran.json["roles"].values())


def test_roles_without_a_project_are_those_init_would_assign(here: Scenario, bin_folder: Path) -> None:
    (here.root / "agentd/config.toml").unlink()
    (bin_folder / "gemini").unlink()
    (bin_folder / "codex").unlink()
    ran = here.agentd("doctor", "--json")
    assert ran.code == 3 and row(ran, "project", "config")["fix"] == "agentd init"
    assert {seat["agent"] for seat in ran.json["roles"].values()} == {"claude"}
    assert [one["about"] for one in ran.json["rows"] if one["state"] == "problem"] == ["project"]


def test_missing_git_is_reported_with_the_remaining_checks(here: Scenario, bin_folder: Path) -> None:
    (bin_folder / "git").unlink()
    ran = here.agentd("--set", "roles.planner=claude", "doctor", "--json")
    assert ran.code == 3 and ran.json["roles"]["planner"]["agent"] == "claude", "settings for one call count"
    assert (row(ran, "machine", "git")["state"], row(ran, "machine", "git")["fix"]) == ("problem", "install git")
    assert row(ran, "agent codex", "version")["state"] == "ok"
    assert "agent gemini" not in {one["about"] for one in ran.json["rows"]}


def test_old_git_is_noted(here: Scenario, bin_folder: Path) -> None:
    (bin_folder / "git").unlink()
    program(bin_folder / "git", "echo git version 2.20.1")
    found = {one.name: one for one in system_checks.machine_rows(here.env)}["git"]
    assert (found.state, found.words, found.fix) == ("note", "2.20.1 is old", "update it to 2.30 or newer")


def test_broken_config_is_reported_with_its_lines(here: Scenario) -> None:
    says(here, "[workflow]\nrounds = 1\n[limits]\ncalls = 2\n", trusted=False)
    ran = here.agentd("doctor", "--json")
    assert ran.code == 3 and ran.json["roles"]["planner"] == {"agent": None, "can_run": False}
    words = row(ran, "project", "config")["words"]
    assert "agentd/config.toml:3" in words and "agentd/config.toml:5" in words
    assert not [one for one in ran.json["rows"] if one["about"].startswith("agent ")]


def test_repository_owned_by_another_user_suggests_safe_directory(
    here: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = find_project().repo
    assert system_checks.repository_row(repo, here.env).state == "ok"
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own way to test this
    found = system_checks.repository_row(repo, here.env)
    assert found.state == "problem" and "another user owns it" in found.words
    assert found.fix == f"if you trust it: git config --global --add safe.directory {here.root}"


def test_repository_that_git_cannot_read_is_a_problem(here: Scenario) -> None:
    repo = find_project().repo
    here.git("config", "core.bare", "true")
    assert "is bare by its own settings" in system_checks.repository_row(repo, here.env).words
    (here.root / ".git/HEAD").unlink()
    assert system_checks.repository_row(repo, here.env).state == "problem"


def test_unwritable_folders_are_problems(here: Scenario) -> None:
    here.write(".git/agentd", "a file")
    here.write("agentd/changes", "a file")
    found = {one.name: one for one in system_checks.folder_rows(find_project())}
    assert found["local room"].words == f"{here.root}/.git/agentd is no folder"
    assert found["work tree"].words == f"{here.root}/agentd/changes is no folder"
    (here.home / ".config").write_text("a file")
    home = {one.name: one for one in system_checks.machine_rows(here.env)}["home"]
    assert (home.state, home.words) == ("problem", f"{here.home}/.config is no folder")
    nobody = {one.name: one for one in system_checks.machine_rows({"PATH": here.env["PATH"]})}["home"]
    assert nobody.state == "problem" and "set HOME" in nobody.fix


# ---- trust -----------------------------------------------------------------------------------------


def test_untrusted_program_is_not_run(here: Scenario, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    program(here.root / "mine.sh", f": >{mark}; echo 0.61.9")
    says(here, '[agents.gemini]\ncommand = "./mine.sh"\n', trusted=False)
    ran = here.agentd("doctor", "--json")
    assert ran.code == 3 and not mark.exists()
    assert row(ran, "project", "trust") | {"about": ""} == {
        "about": "",
        "name": "trust",
        "state": "problem",
        "words": "you have not trusted agent gemini",
        "fix": "agentd trust",
    }
    assert row(ran, "agent gemini", "version")["words"] == "not asked: this agent is not trusted"
    here.agentd("trust", "--yes")
    assert seated(here, "gemini")["version"].words == "0.61.9, known" and mark.exists()


# ---- agents ----------------------------------------------------------------------------------------


def test_version_is_asked_with_allowed_variables_and_a_temporary_cli_home(
    here: Scenario, bin_folder: Path, tmp_path: Path
) -> None:
    """The real Gemini CLI leaves files in its folder when it is asked."""
    script = 'echo x >"${CLAUDE_CONFIG_DIR:-$HOME/.claude}/left-behind"; /usr/bin/env >"$TMPDIR/env"; echo 2.1.5'
    program(bin_folder / "claude", script)
    mine = here.home / ".claude"
    mine.mkdir()
    env = {"TMPDIR": str(tmp_path), "CLAUDECODE": "1", "CLAUDE_CONFIG_DIR": str(mine), "MY_SECRET": "s"}
    assert seated(here, "claude", **env)["version"].words == "2.1.5, known"
    assert list(mine.iterdir()) == []
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert seen["HOME"] == str(here.home) and seen["CLAUDE_CONFIG_DIR"] != str(mine)
    assert not {"CLAUDECODE", "MY_SECRET", "GEMINI_API_KEY"} & set(seen)


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("echo 0.61.7", "ok", "0.61.7, known"),
        ("echo v0.61.0-nightly.3", "ok", "0.61.0-nightly.3, known"),
        ("echo 0.610.0", "note", "0.610.0 is not known"),
        ("echo 0.6.1", "note", "0.6.1 is not known"),
        ("echo hello", "note", "not known: it says 'hello'"),
        (
            "echo 'no node here' >&2; exit 127",
            "problem",
            "it does not start: it ended with exit code 127: no node here",
        ),
        ("while :; do echo 0.61.0 0.61.0 0.61.0; done", "problem", "it does not start: it printed without end"),
    ],
)
def test_version_output_is_classified(here: Scenario, bin_folder: Path, script: str, state: str, words: str) -> None:
    program(bin_folder / "gemini", script)
    found = seated(here, "gemini")["version"]
    assert (found.state, found.words) == (state, words)
    assert state == "ok" or "npm install -g @google/gemini-cli" in found.fix


def test_hanging_program_is_ended_after_the_time_limit(
    here: Scenario, bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_checks, "SECONDS", 1.0)
    Clock(monkeypatch).start_when((tmp_path / "pid").exists)
    program(
        bin_folder / "gemini", f"echo $$ >{tmp_path}/new; /bin/mv {tmp_path}/new {tmp_path}/pid; exec /bin/sleep 600"
    )
    found = seated(here, "gemini")["version"]
    assert (found.state, found.words) == ("problem", "it does not start: it did not answer within 1 s")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_missing_interpreter_of_a_script_is_reported(here: Scenario, bin_folder: Path) -> None:
    (bin_folder / "gemini").write_text("#!/nowhere/node\n")
    assert "the interpreter in its first line does not exist" in seated(here, "gemini")["version"].words


@pytest.mark.parametrize(
    ("text", "env", "state", "words", "fix"),
    [
        ("", {"CODEX_API_KEY": "k"}, "ok", "by CODEX_API_KEY", ""),
        ("", {}, "problem", "none", "log in with codex login, or set CODEX_API_KEY"),
        (
            "",
            {"OPENAI_API_KEY": "k"},
            "problem",
            "none: OPENAI_API_KEY is set, but codex does not take it for a login",
            "log in with codex login, or set CODEX_API_KEY",
        ),
        (
            "[agents.codex]\nenv = []\n",
            {"CODEX_API_KEY": "k"},
            "problem",
            "none: CODEX_API_KEY is set, but not passed on",
            "name it under [agents.codex] env in agentd/config.toml",
        ),
        (
            "[agents.codex]\nargs = ['-c', 'model_provider=\"mine\"']\n",
            {},
            "note",
            "cannot be seen: model_provider in its args may be one",
            "if there is none: codex login",
        ),
    ],
)
def test_login_state_is_reported_with_a_fix(
    here: Scenario, text: str, env: dict[str, str], state: str, words: str, fix: str
) -> None:
    for key in KEYS:
        del here.env[key]
    says(here, text)
    found = seated(here, "codex", **env)["login"]
    assert (found.state, found.words, found.fix) == (state, words, fix)


def test_login_file_is_reported_as_login(here: Scenario) -> None:
    del here.env["CODEX_API_KEY"]
    (here.home / ".codex").mkdir()
    (here.home / ".codex/auth.json").write_text("{}")
    assert seated(here, "codex")["login"].words == f"by {here.home}/.codex/auth.json"


def test_models_are_listed_by_complexity(here: Scenario) -> None:
    assert seated(here, "gemini")["models"].words == (
        "gemini-3-flash-preview (low medium), gemini-3-pro-preview (high critical)"
    )
    assert seated(here, "codex")["models"].words == "gpt-5.2-codex (low medium high critical)"
    says(here, "[agents.gemini]\nmodels = []\n")
    assert seated(here, "gemini")["models"].words == "its own default"


MINE = '[roles]\nplanner = "mine"\n[agents.mine]\nkind = "command"\ncommand = "my-agent"\n'


def test_command_agent_is_located_but_not_run(here: Scenario, bin_folder: Path, tmp_path: Path) -> None:
    says(here, MINE)
    missing = seated(here, "mine")["program"]
    assert missing.state == "problem" and "my-agent is in no folder of PATH" in missing.words and missing.fix
    program(bin_folder / "my-agent", f": >{tmp_path}/was-run")
    found = seated(here, "mine")
    assert list(found) == ["program"] and found["program"].state == "ok" and not (tmp_path / "was-run").exists()
    says(here, f'{MINE}args = ["-m", "{{model}}"]\n')
    assert seated(here, "mine")["models"].words == "its args use {model}, but none is named"


SCRIPTED = '[roles]\nplanner = "play"\n[agents.play]\nkind = "scripted"\nplaybook = "playbook.yaml"\n'


def absent(path: Path) -> None:
    pass


def broken(path: Path) -> None:
    path.write_text("steps: [\n")


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("make", [absent, broken, binary, os.mkfifo])
def test_invalid_playbook_is_a_problem(here: Scenario, make: Callable[[Path], None]) -> None:
    path = here.root / "playbook.yaml"
    path.write_text("steps: {challenge: [{say: hello}]}\n")
    says(here, SCRIPTED)
    assert seated(here, "play")["playbook"].state == "ok"
    path.unlink()
    make(path)
    found = seated(here, "play")["playbook"]
    assert found.state == "problem" and "playbook" in found.words and found.fix


def test_author_and_judge_of_one_vendor_are_noted(here: Scenario) -> None:
    says(here, '[roles]\nreviewer = "second"\n[agents.second]\nkind = "claude"\n')
    project = find_project()
    settings = load_config(project.config_file, environ=here.env)
    (note,) = [one for one in system_checks.settings_rows(project, settings, here.env) if one.name == "judges"]
    assert note.state == "note" and "reviewer and implementer are both of Anthropic" in note.words


def test_known_versions_match_the_tested_versions() -> None:
    pinned = json.loads(PINNED.read_text())["dependencies"]
    assert len(pinned.keys() - {"@fission-ai/openspec"}) == len(CLIS)  # that one is no agent: specs are moved from it
    for known in CLIS.values():
        assert pinned[known.to_install.split()[-1]].startswith(f"{known.tested}.")


# ---- the server and the runs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(9)", "the MCP server ended with exit code 9"),
        ("print('hello', flush=True); open(0).read()", "the MCP server wrote invalid JSON"),
        ("import time; time.sleep(600)", "it did not answer within 2 s"),
    ],
)
def test_mcp_server_that_does_not_answer_is_a_problem(
    here: Scenario, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    monkeypatch.setattr(system_checks, "SECONDS", 2.0 if "sleep" in code else PATIENCE)
    found = diagnosis.server_row(find_project(), here.env, (sys.executable, "-S", "-c", code))
    assert found.state == "problem" and words in found.words and found.fix


HOLD = """
import sys, time
from agentd.change import open_change
from agentd.project import find_project
with open_change(find_project(), "add-oauth").running("agentd plan add-oauth"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_active_and_interrupted_runs_are_reported(here: Scenario) -> None:
    lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    (quiet,) = system_checks.run_rows(find_project())
    assert (quiet.state, quiet.words) == ("ok", "none is under way")
    holder = subprocess.Popen([sys.executable, "-c", HOLD], env=here.env, stdout=subprocess.PIPE)
    try:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        (active,) = system_checks.run_rows(find_project())
        assert f"add-oauth is being worked on by 'agentd plan add-oauth' (process {holder.pid}" in active.words
        assert active.state == "note" and "agentd stop add-oauth" in active.fix
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    (dead,) = system_checks.run_rows(find_project())
    assert (dead.words, dead.fix) == ("the last run of add-oauth was cut off", "to continue: agentd plan add-oauth")
    with lifecycle.open_change(find_project(), "add-oauth").running("agentd plan add-oauth"):
        pass
    assert [one.words for one in system_checks.run_rows(find_project())] == ["none is under way"]
