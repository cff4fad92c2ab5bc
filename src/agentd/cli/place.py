"""Where a new change lives, asked on a terminal where neither a flag nor the configuration says it."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import IO

from agentd.change.folder import Change
from agentd.cli import output, questions
from agentd.cli.questions import Option
from agentd.domain.errors import SetupError
from agentd.domain.terms import GitSetup
from agentd.engine.workflows import worktree_setup
from agentd.project import git
from agentd.project.config import Config
from agentd.project.layout import Project

_WAYS = (
    Option(GitSetup.BRANCH, "On a branch of its own", "in this folder; what is not committed comes along"),
    Option(GitSetup.WORKTREE, "In a work tree of its own", "beside this folder, so that you can go on working here"),
    Option(GitSetup.IN_PLACE, "In place", "here, on the branch that is checked out"),
)
_TAIL = 20  # lines of a set-up command that failed
_TAIL_BYTES = 20_000


def chosen(project: Project, change_id: str, flag: str | None, in_force: Config, can_ask: bool) -> GitSetup:
    """Asked for, configured, answered; else in place."""
    if flag:
        way = GitSetup(flag)
    elif in_force.git.setup:
        way = in_force.git.setup
    elif can_ask:
        way = GitSetup(questions.ask(f"Where should {change_id} live?", _WAYS, GitSetup.BRANCH))
    else:
        way = GitSetup.IN_PLACE
    if way is not GitSetup.IN_PLACE and can_ask:
        _offer_commit(project, change_id, way)
    return way


def _offer_commit(project: Project, change_id: str, way: GitSetup) -> None:
    ground = worktree_setup.inspect_repository(project, change_id)
    if not ground.uncommitted:
        return
    options = (Option("commit", "Commit it"), Option("stop", "Stop here"))
    question = f"A {way} needs agentd/ committed, and git lacks {worktree_setup.list_names(ground.uncommitted)}. Commit it now?"
    if questions.ask(question, options, "commit") == "commit":
        worktree_setup.commit_pending(ground)


def preparing(command: str) -> Callable[[str], None]:
    """Run the project's set-up command in a fresh work tree."""

    def prepare(tree: str) -> None:
        if not command:
            return
        output.note(f"Setting up the work tree: {command}")
        with tempfile.TemporaryFile() as said:  # a pipe would wait for whatever the command leaves running
            done = subprocess.run(  # noqa: S602 - a command of the project, trusted like a check
                command,
                shell=True,
                cwd=tree,
                env={**git.environment(), "LC_ALL": os.environ.get("LC_ALL", "")},  # its words are the person's
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode:
                raise _failed(command, done.returncode, tree, _tail(said))

    return prepare


def _tail(said: IO[bytes]) -> list[str]:
    said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return said.read().decode("utf-8", "replace").splitlines()[-_TAIL:]


def _failed(command: str, code: int, tree: str, tail: list[str]) -> SetupError:
    words = [f"worktree_setup ended with exit code {code}: {command}", *(f"  {one}" for one in tail)]
    hint = f"put that right ({os.path.relpath(tree)} stays as it is), then run the command again"
    return SetupError("\n".join(words), hint)


def told(change: Change) -> str:
    place = change.read().git
    source = f", which begins from {place.target}" if place.target else ""
    if place.setup is GitSetup.WORKTREE:
        return f"{change.id} lives in {os.path.relpath(change.tree)}, on the branch {place.branch}{source}"
    if place.setup is GitSetup.BRANCH:
        return f"{change.id} lives on the branch {place.branch}{source}"
    return f"{change.id} lives here{f', on {place.target}' if place.target else ''}"
