"""Where a new change lives, asked on a terminal where neither a flag nor the configuration says it."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import IO

from agentd.change import Change, new_change_folder
from agentd.cli import output, run_command, terminal_prompts
from agentd.cli.options import CommandOptions
from agentd.cli.run_command import StepsFunction, WorkflowFunction, load_trusted_config, run_workflow
from agentd.cli.terminal_prompts import PromptOption
from agentd.domain import GitSetup, Role, SetupError
from agentd.engine import (
    OpenedChange,
    add_dependencies,
    begin_change,
    check_dependencies,
    commit_pending,
    ensure_agent_installed,
    inspect_repository,
    list_names,
    needs_no_clarification,
    nobody_to_ask_error,
    open_change_to_plan,
    plan_settled,
    plan_steps,
    refuse_second_clarification,
)
from agentd.project import Config, Project, find_project, git

_WAYS = (
    PromptOption(GitSetup.BRANCH, "On a branch of its own", "in this folder; what is not committed comes along"),
    PromptOption(
        GitSetup.WORKTREE, "In a work tree of its own", "beside this folder, so that you can go on working here"
    ),
    PromptOption(GitSetup.IN_PLACE, "In place", "here, on the branch that is checked out"),
)
_TAIL = 20  # lines of a set-up command that failed
_TAIL_BYTES = 20_000


def choose_setup(project: Project, change_id: str, flag: str | None, in_force: Config, can_ask: bool) -> GitSetup:
    """Asked for, configured, answered; else in place."""
    if flag:
        way = GitSetup(flag)
    elif in_force.git.setup:
        way = in_force.git.setup
    elif can_ask:
        way = GitSetup(terminal_prompts.ask_choice(f"Where should {change_id} live?", _WAYS, GitSetup.BRANCH))
    else:
        way = GitSetup.IN_PLACE
    if way is not GitSetup.IN_PLACE and can_ask:
        _offer_commit(project, change_id, way)
    return way


def _offer_commit(project: Project, change_id: str, way: GitSetup) -> None:
    ground = inspect_repository(project, change_id)
    if not ground.uncommitted:
        return
    options = (PromptOption("commit", "Commit it"), PromptOption("stop", "Stop here"))
    question = f"A {way} needs agentd/ committed, and git lacks {list_names(ground.uncommitted)}. Commit it now?"
    if terminal_prompts.ask_choice(question, options, "commit") == "commit":
        commit_pending(ground)


def worktree_preparation(command: str) -> Callable[[str], None]:
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


def describe_location(change: Change) -> str:
    place = change.read().git
    source = f", which begins from {place.target}" if place.target else ""
    if place.setup is GitSetup.WORKTREE:
        return f"{change.id} lives in {os.path.relpath(change.tree)}, on the branch {place.branch}{source}"
    if place.setup is GitSetup.BRANCH:
        return f"{change.id} lives on the branch {place.branch}{source}"
    return f"{change.id} lives here{f', on {place.target}' if place.target else ''}"


def begin_plan(
    change_id: str,
    description: str | None,
    options: CommandOptions,
    work: WorkflowFunction,
    settled: Callable[[Change, bool], str | None] = plan_settled,
    ahead: StepsFunction = plan_steps,
) -> int:
    """Plan a change that may be new."""
    project = find_project()
    wish = GitSetup(options.git_setup) if options.git_setup else None
    opened = open_change_to_plan(project, change_id, description, wish)
    for note in opened.notes:
        output.note(note)
    change = opened.change
    if options.depends_on:
        check_dependencies(project, opened.id, options.depends_on)
    if change is None:
        in_force = load_trusted_config(project, options)
        change = _new(project, opened, description or "", in_force, options)
    if options.depends_on:
        add_dependencies(change, options.depends_on)
    if message := settled(change, options.rechallenge):
        return run_command.show_settled(change, options, message)
    return (
        run_command.start_detached(change, options)
        if options.detach
        else run_workflow(change, options, work, ahead=ahead)
    )


def _new(project: Project, opened: OpenedChange, description: str, in_force: Config, options: CommandOptions) -> Change:
    ensure_agent_installed(in_force, Role.PLANNER, os.environ)
    born = new_change_folder(project, opened.id) or project.changes_in(project.tree) / opened.id
    refuse_second_clarification(opened.id, options.wishes, born)
    can_answer = options.yes or (options.can_ask and not options.detach)
    if not can_answer and not needs_no_clarification(options.wishes, in_force, born):
        raise nobody_to_ask_error(opened.id)  # before anything is made
    setup = choose_setup(project, opened.id, options.git_setup, in_force, options.can_ask)
    prepare = worktree_preparation(in_force.git.worktree_setup)
    change = begin_change(project, opened.id, description, setup, prepare, options.allow_dirty)
    output.note(describe_location(change))
    return change
