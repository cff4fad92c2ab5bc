"""A project with an agent in it that does what a test tells it to, and a guard around that."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.guard.call_record import GuardResult, Violation
from agentd.guard.guard import Guard, allow_nothing
from agentd.project.config.settings import CheckSettings
from agentd.project.layout import find_project
from scenario import Scenario

AWKWARD = b"first\r\nsecond\x00\xff\xfe no newline at the end"
OWN = "agentd/changes/add-oauth"


def check(command: str) -> CheckSettings:
    return CheckSettings("tests", command, True, 60)


class GuardProject:
    """A project with a change, its neighbour, specs, an archive, hooks and a user's home; and an agent in it."""

    def __init__(self, box: Scenario, change: Change, tmp: Path) -> None:
        self.box = box
        self.change = change
        self.folder = tmp / "run" / "guard"
        self.user = box.home / ".config" / "agentd"

    def guard(
        self, *checks: str, judge: bool = False, may_edit: Callable[[str], bool] = allow_nothing, call: bool = True
    ) -> Guard:
        guard = Guard(self.change, self.folder, [check(one) for one in checks], judge, may_edit)
        if call:
            guard.before()
        return guard

    def agent(self, code: str) -> None:
        """What an agent does: Python, run where it works."""
        start = "import os, shutil, subprocess\nfrom pathlib import Path\n"
        done = subprocess.run(
            [sys.executable, "-c", start + code],
            cwd=self.box.root / self.change.project.prefix,
            env=self.box.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def watched(
        self, code: str, *checks: str, judge: bool = False, may_edit: Callable[[str], bool] = allow_nothing
    ) -> GuardResult:
        guard = self.guard(*checks, judge=judge, may_edit=may_edit)
        self.agent(code)
        return finish(guard)

    def kept(self, trespass: Violation) -> Path:
        assert trespass.kept.startswith(".git/agentd/kept/add-oauth/")
        return Path(self.change.project.repo.main, trespass.kept)

    def everything(self) -> dict[str, object]:
        """All that is protected in the repository and the user's folder, to the byte, with modes and links."""
        found: dict[str, object] = {}
        for top in (self.box.root / "agentd", self.box.root / ".git/hooks", self.box.root / ".git/info", self.user):
            for path in (top, *top.rglob("*")):
                found[str(path)] = looks(path)
        found["config"] = looks(self.box.root / ".git/config")
        return found


def finish(guard: Guard) -> GuardResult:
    """What it tells at the end of a call, recorded."""
    watched = guard.after()
    guard.close()
    return watched


def looks(path: Path) -> object:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    return (mode, path.read_bytes()) if stat.S_ISREG(mode) else mode


def make_guard_project(project: Scenario, tmp_path: Path) -> GuardProject:
    found = find_project()
    change = lifecycle.create_change(found, "add-oauth", "Let people sign in")
    lifecycle.create_change(found, "other", "Something else")
    project.write(f"{OWN}/proposal.md", "# Proposal\n")
    project.write("agentd/specs/auth.md", "# Auth\n")
    project.write("agentd/specs/CHANGELOG.md", "# Changes\n")
    project.write("agentd/archive/20260101-old/proposal.md", "old\n")
    project.write("agentd/prompts/challenge.md", "Be kind.\n")
    (project.root / "agentd/notes.bin").write_bytes(AWKWARD)
    (project.root / "agentd/link").symlink_to("config.toml")
    project.write("src/app.py", "print('hello')\n")
    (project.root / ".git/hooks/commit-msg").write_text("#!/bin/sh\nexit 0\n")
    yard = GuardProject(project, change, tmp_path)
    yard.user.mkdir(parents=True)
    (yard.user / "trust.json").write_text("{}\n")
    (yard.user / "config.toml").write_text("project_name = 'x'\n")
    project.commit("a project at work")
    let_files_age()
    return yard


def let_files_age() -> None:
    """Files are then older than the moment in which a stat cannot be relied on, as in real life."""
    time.sleep(0.06)
