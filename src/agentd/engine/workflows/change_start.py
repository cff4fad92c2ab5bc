"""Creating a change: in place, on its own branch, or in its own worktree."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentd.agents import skill_paths
from agentd.change import (
    Change,
    ChangeLocator,
    ChangeStanding,
    GitLocation,
    create_change,
    current_location,
    resolve_change,
)
from agentd.documents import CLARIFICATIONS_FILE
from agentd.domain import Busy, GitSetup, Phase, SetupError, Workflow, WrongPhase
from agentd.engine.workflows.verdict_status import CHALLENGE_PHASES, is_plan_edited
from agentd.project import CONFIG_PATH, Project, git
from agentd.storage import files

_BLOCK = "agentd"
_NAMED = 5  # files named in an error
_MESSAGE = "Set up agentd"
_LOG_LINES, _LOG_BYTES = 20, 20_000  # shown of a setup command that failed


@dataclass(frozen=True)
class RepositoryState:
    """The state of the repository before anything is created."""

    target: str | None  # the branch the change starts from; None: HEAD is detached
    here: str  # the current worktree
    tree: str  # the path of the change's own worktree
    dirty: tuple[str, ...]  # agentd's own files never count
    uncommitted: tuple[str, ...]  # files of agentd/ that a new branch needs
    untracked: tuple[str, ...]  # those of them that git does not track
    is_ignored: bool  # .gitignore excludes agentd/
    has_work: bool  # the branch exists and has its own commits
    held_by: str | None  # the worktree that has it checked out
    is_blocked: bool  # a branch named agentd prevents agentd/<id>
    at_work: tuple[str, ...]  # changes in this worktree with an active run
    lives_here: str | None  # the change whose worktree this is


def inspect_repository(project: Project, change_id: str) -> RepositoryState:
    branch, tree = branch_of(change_id), _tree(project, change_id)
    branches = git.branches(project.repo)
    changed = _changed(project.tree)
    own = os.path.join(project.prefix, "agentd") + "/"
    uncommitted = tuple(name for name in changed if _is_needed(name, own))
    here_ = [found for found in ChangeLocator(project).open() if found.tree == project.tree and found.folder]
    running = (Change(project, one.id, project.tree, Path(one.folder or "")) for one in here_)
    return RepositoryState(
        target=_target(project, branch),
        here=project.tree,
        tree=tree,
        dirty=tuple(name for name in changed if not name.startswith(own) and name not in _skills(project)),
        uncommitted=uncommitted,
        untracked=tuple(name for name in uncommitted if changed[name]),
        is_ignored=not uncommitted and not _is_committed(project),
        has_work=branch in branches and branch not in git.merged_branches(project.tree),
        held_by=_held_by(project, branch),
        is_blocked=_BLOCK in branches,
        at_work=tuple(change.id for change in running if change.active_run()),
        lives_here=next((one.id for one in here_ if one.summary.setup == GitSetup.WORKTREE), None),
    )


def refuse_setup(ground: RepositoryState, change_id: str, setup: GitSetup, allow_dirty: bool) -> None:
    """Raise an error if the setup is not possible."""
    if setup is GitSetup.IN_PLACE:
        return
    if ground.is_ignored:
        message = f"a {setup} needs agentd/ committed, and a .gitignore hides it from git"
        raise SetupError(message, "take that line out and commit agentd/, or add --git in-place")
    if ground.uncommitted:
        raise SetupError(
            f"a {setup} needs agentd/ committed, and git lacks {list_names(ground.uncommitted)}",
            f"{commit_command(ground)}, then run the command again (or add --git in-place)",
        )
    _refuse_branch(ground, branch_of(change_id))
    if setup is GitSetup.BRANCH:
        _refuse_switch(ground, branch_of(change_id))
    else:
        _refuse_tree(ground, branch_of(change_id), allow_dirty)


def _refuse_branch(ground: RepositoryState, branch: str) -> None:
    if ground.has_work:
        message = f"the branch {branch} already exists and has commits of its own"
        raise SetupError(message, f"plan this under another id; git log {branch} shows its commits")
    if ground.is_blocked:
        message = f"a branch is named {_BLOCK}, so git cannot create {branch}"
        raise SetupError(message, f"git branch -m {_BLOCK} another-name, then run the command again")


def _refuse_tree(ground: RepositoryState, branch: str, allow_dirty: bool) -> None:
    if ground.held_by not in (None, ground.tree):
        raise _is_held(ground, branch)
    if os.path.exists(ground.tree) and ground.held_by is None:
        raise SetupError(f"{ground.tree} already exists and is not a worktree of {branch}", "move it out of the way")
    if ground.dirty and not allow_dirty:
        raise SetupError(
            f"a worktree starts from the last commit, without {list_names(ground.dirty)}",
            "commit or stash that first; --allow-dirty leaves it here; --git branch takes it along",
        )


def _refuse_switch(ground: RepositoryState, branch: str) -> None:
    """Refuse to switch the branch of a worktree that something else relies on."""
    if ground.held_by not in (None, ground.here):
        raise _is_held(ground, branch)
    if ground.at_work:
        one = ground.at_work[0]
        message = f"{one} is being worked on in this tree, so its branch cannot be switched"
        raise Busy(message, f"agentd wait {one}, or add --git worktree")
    if ground.lives_here:
        message = f"this is the worktree of {ground.lives_here}, and another branch here would take its place"
        raise SetupError(message, "run the command in the main worktree, or add --git worktree")


def _is_held(ground: RepositoryState, branch: str) -> SetupError:
    other = f"run the command in {ground.held_by} with --git branch"
    hint = "add --git worktree to continue there" if ground.held_by == ground.tree else other
    return SetupError(f"{branch} is checked out in {ground.held_by}", hint)


def commit_command(ground: RepositoryState) -> str:
    """Return the git command that commits the files, usable from any folder."""
    add = f"git add -- {_typed(ground.untracked)} && " if ground.untracked else ""
    return f'{add}git commit -m "{_MESSAGE}" -- {_typed(ground.uncommitted)}'


def commit_pending(ground: RepositoryState) -> None:
    """Commit the files; what else is staged stays staged."""
    if ground.untracked:
        git.run(ground.here, "--literal-pathspecs", "add", "--", *ground.untracked)
    git.run(ground.here, "--literal-pathspecs", "commit", "--quiet", "-m", _MESSAGE, "--", *ground.uncommitted)


def _typed(names: tuple[str, ...]) -> str:
    magic = [":(top,literal)" if any(one in name for one in "*?[\\") else ":/" for name in names]
    return " ".join(shlex.quote(f"{how}{name}") for how, name in zip(magic, names, strict=True))


def set_up_location(project: Project, change_id: str, setup: GitSetup, ground: RepositoryState) -> GitLocation:
    """Create the branch or worktree; after an interruption, continue with what exists."""
    branch = branch_of(change_id)
    if setup is GitSetup.IN_PLACE:
        return current_location(project)
    if setup is GitSetup.BRANCH:
        if _held_by(project, branch) != project.tree:
            _run(project, branch, project.tree, "switch", "--quiet", "-C", branch)
        return GitLocation(setup, branch, project.tree_name(project.tree), ground.target)
    if os.path.exists(ground.tree) and _is_half_made(ground.tree):
        git.run(project.tree, "worktree", "remove", "-f", "-f", ground.tree)  # twice, because it is locked
    if not os.path.exists(ground.tree):
        # -B: an existing branch has no commits of its own; -f: git may still list a worktree deleted by hand
        _run(project, branch, ground.tree, "worktree", "add", "--quiet", "-f", "-B", branch, ground.tree)
    return GitLocation(setup, branch, project.tree_name(ground.tree), ground.target)


def _run(project: Project, branch: str, tree: str, *arguments: str) -> None:
    """Run git; a hook that fails afterwards undoes nothing."""
    try:
        git.run(project.tree, *arguments)
    except git.GitFailed:
        if _held_by(project, branch) != tree:
            raise


def _is_half_made(tree: str) -> bool:
    """Whether git was killed while creating the worktree, which it keeps locked meanwhile."""
    lock = Path(git.run(tree, "rev-parse", "--absolute-git-dir"), "locked")
    return lock.is_file() and lock.read_text().startswith("initializing")


def move_clarifications(project: Project, change_id: str, place: GitLocation) -> None:
    """Move the clarifications of a new change to its worktree."""
    old, new = (project.changes_in(tree) / change_id for tree in (project.tree, project.tree_path(place.tree)))
    source = old / CLARIFICATIONS_FILE
    if old == new:
        return
    if source.is_file():
        files.write(new / CLARIFICATIONS_FILE, files.read(source))
        source.unlink()
    if old.is_dir() and not any(old.iterdir()):
        old.rmdir()


def branch_of(change_id: str) -> str:
    return f"agentd/{change_id}"


def _target(project: Project, branch: str) -> str | None:
    """Return the current branch; after an interrupted switch, the previous one."""
    current = _current(project)
    if current != branch:
        return current
    return git.run(project.tree, "rev-parse", "--abbrev-ref", "@{-1}", failing="") or None


def _tree(project: Project, change_id: str) -> str:
    """Return the path next to the main worktree, or next to a bare repository such as `notes.git`."""
    main, common = Path(project.repo.main), Path(project.repo.common)
    is_bare = all(one.path != project.repo.main for one in git.worktrees(project.repo))
    beside = common.with_suffix("") if is_bare and common.suffix == ".git" else main
    return os.path.realpath(beside.parent / f"{beside.name}-agentd" / change_id)


def _current(project: Project) -> str | None:
    return next((one.branch for one in git.worktrees(project.repo) if one.path == project.tree), None)


def _held_by(project: Project, branch: str) -> str | None:
    """Return the worktree that has the branch checked out."""
    return next((one.path for one in git.worktrees(project.repo) if one.branch == branch), None)


def _is_committed(project: Project) -> bool:
    name = os.path.join(project.prefix, CONFIG_PATH)
    return bool(git.run(project.tree, "ls-tree", "--name-only", "HEAD", "--", name, failing=""))


def _changed(tree: str) -> dict[str, bool]:
    """Return files that differ from the last commit, and whether they are untracked."""
    rows = git.run(tree, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z").split("\0")
    return {row[3:]: row.startswith("??") for row in rows if row}


def _is_needed(name: str, own: str) -> bool:
    inside = name.removeprefix(own)
    return name.startswith(own) and not inside.startswith(("changes/", "archive/"))


def _skills(project: Project) -> set[str]:
    """Return the skill files `init` has written."""
    return {os.path.join(project.prefix, path) for path in skill_paths()}


def list_names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


@dataclass(frozen=True)
class NewChange:
    """How to create a change that does not exist yet."""

    description: str = ""
    git_setup: GitSetup | None = None
    allow_dirty: bool = False
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenedChange:
    """`change` is None if it does not exist yet; `id` is then free."""

    id: str
    change: Change | None
    notes: tuple[str, ...] = ()


def open_change_to_plan(project: Project, wanted: str, new: NewChange) -> OpenedChange:
    found = resolve_change(ChangeLocator(project), wanted, new.description or None)
    if found.standing is ChangeStanding.NEW:
        taken = (f"{wanted} is taken, so this is {found.id}",) if found.id != wanted else ()
        return OpenedChange(found.id, None, taken)
    assert found.located
    change = Change(project, found.id, found.located.tree or "", Path(found.located.folder or ""))
    return OpenedChange(found.id, change, tuple(_ignored(change, new)))


def _ignored(change: Change, new: NewChange) -> Iterator[str]:
    """Yield a note for each option that only applies to a new change."""
    if new.description:
        yield f"{change.id} already exists; the new description is ignored"
    place = change.read().git
    if new.git_setup and new.git_setup is not place.setup:
        where = f"on the branch {place.branch}" if place.branch else "in place"
        yield f"{change.id} stays where it is, {where}; --git {new.git_setup} is ignored"


def begin_change(
    project: Project, change_id: str, new: NewChange, setup: GitSetup, setup_command: str, notify: Callable[[str], None]
) -> Change:
    """Create the branch or worktree, the folder and its first STATE.yaml, unless something stands in the way.

    `setup_command` prepares a new worktree. STATE.yaml comes last: interrupted, the same command does it again.
    """
    planned = Change(project, change_id, project.tree, project.changes_in(project.tree) / change_id)
    with planned.running(f"agentd plan {change_id}") as held:  # so that nobody else creates it meanwhile
        ground = inspect_repository(project, change_id)
        refuse_setup(ground, change_id, setup, new.allow_dirty)
        place = set_up_location(project, change_id, setup, ground)
        if setup is GitSetup.WORKTREE and setup_command:
            notify(f"Setting up the worktree: {setup_command}")
            _prepare_worktree(setup_command, os.path.join(ground.tree, project.prefix))
        move_clarifications(project, change_id, place)
        return create_change(project, change_id, new.description, place, held.token)


def _prepare_worktree(command: str, tree: str) -> None:
    """Run the project's setup command in a new worktree."""
    with tempfile.TemporaryFile() as log:  # a pipe would wait for processes the command leaves running
        done = subprocess.run(  # noqa: S602 - a command of the project, trusted like a check
            command,
            shell=True,
            cwd=tree,
            env={**git.environment(), "LC_ALL": os.environ.get("LC_ALL", "")},  # its output is for the person
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if not done.returncode:
            return
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
        tail = log.read().decode("utf-8", "replace").splitlines()[-_LOG_LINES:]
    lines = [f"worktree_setup ended with exit code {done.returncode}: {command}", *(f"  {line}" for line in tail)]
    hint = f"fix that ({os.path.relpath(tree)} stays as it is), then run the command again"
    raise SetupError("\n".join(lines), hint)


def plan_settled(change: Change, rechallenge: bool = False) -> str | None:
    """Return a message if there is nothing to plan; None if there is. Raises WrongPhase for a rejected plan."""
    state = change.read()
    phase, is_cut = state.phase, state.run is not None and state.run.workflow == Workflow.PLAN
    if phase in (Phase.DRAFTING, Phase.PROPOSED) or ((is_cut or rechallenge) and phase in CHALLENGE_PHASES):
        return None  # finish a run that was killed after its verdict
    if phase is Phase.REJECTED:
        page = f"agentd/changes/{change.id}/CHALLENGE.md"
        what = f"the plan was edited since {page}" if is_plan_edited(change) else f"read {page} and edit the plan"
        raise WrongPhase(f"{change.id} was rejected", f"{what}; then: agentd plan {change.id} --rechallenge")
    if phase is not Phase.CHALLENGED:
        return f"{change.id} is {phase}, past planning"
    if is_plan_edited(change):
        return f"Planning of {change.id} is complete, but the plan was edited since it was approved"
    return f"Planning of {change.id} is complete"
