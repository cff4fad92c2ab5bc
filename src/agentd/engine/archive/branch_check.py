"""The branch of a change: whether it has the current specs, and the git commands left to run."""

import os
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agentd.change import Change, GitLocation
from agentd.domain import StaleBranch
from agentd.project import Project, git


@dataclass(frozen=True)
class GitCommands:
    """The commands to run in the current folder."""

    commit: tuple[str, ...]
    merge: tuple[str, ...] = ()
    pull_request: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def refuse_outdated_branch(change: Change, place: GitLocation, again: str) -> None:
    """Refuse unless the branch contains the target's tip, or the target is checked out with the work merged."""
    target, names = place.target, git.branches(change.project.repo)
    tip = _target_tip(change, target, names) if target and git.head_commit(change.tree) else None
    if target is None or tip is None:
        return
    directory = git_directory(change.tree, change.project.repo.top)
    here = current_branch(change.project, change.tree)
    if here == target:
        if place.branch in names and not _contains(change, f"refs/heads/{place.branch}"):
            message = f"the work of {change.id} is on {place.branch}, which is not merged into {target}"
            raise StaleBranch(message, f"git{directory} merge {shlex.quote(place.branch or '')}, then {again}")
    elif not _contains(change, tip):
        count = git.run(change.tree, "rev-list", "--count", f"HEAD..{tip}")
        commits = "a commit" if count == "1" else f"{count} commits"
        name = tip.removeprefix("refs/heads/").removeprefix("refs/remotes/")
        message = f"{here or 'the detached HEAD'} lacks {commits} of {name}, so its specs may be outdated"
        raise StaleBranch(message, f"git{directory} merge {shlex.quote(name)}, then {again}")


def _target_tip(change: Change, target: str, names: Collection[str]) -> str | None:
    """Return the ref of the target; in a clone that never checked it out, the fetched one."""
    if target in names:
        return f"refs/heads/{target}"
    found = git.run(change.tree, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{target}").splitlines()
    return next((one for one in found if one.startswith("refs/remotes/origin/")), next(iter(found), None))


def _contains(change: Change, ref: str) -> bool:
    return git.succeeds(change.tree, "merge-base", "--is-ancestor", ref, "HEAD")


def branch_warnings(change: Change, place: GitLocation) -> Iterator[str]:
    """Warn if the target is behind its upstream, as last fetched, or if HEAD is detached."""
    if target := place.target:
        upstream = git.run(change.tree, "rev-parse", "--abbrev-ref", f"{target}@{{upstream}}", failing="")
        count = upstream and git.run(change.tree, "rev-list", "--count", f"{target}..{upstream}", failing="0")
        if count and count != "0":
            yield f"{target} is {count} behind {upstream}, which may have newer specs: git pull, then merge {target}"
    if not current_branch(change.project, change.tree) and git.head_commit(change.tree):
        directory = git_directory(change.tree, change.project.repo.top)
        command = f"git{directory} switch --create agentd/{change.id}"
        yield f"HEAD is detached, so a commit would be on no branch: {command}"


def git_commands(change: Change, place: GitLocation, message: str) -> GitCommands:
    """Return the commands to commit, bring the work to the target, and then remove the branch and worktree."""
    repo, target = change.project.repo, place.target
    git_here = f"git{git_directory(change.tree, repo.top)}"
    commit = (f"{git_here} add --all", f"{git_here} commit --message {shlex.quote(message)}")
    branch = place.branch if place.branch in git.branches(repo) else None
    if branch is None or not target:
        return GitCommands(commit)
    quoted, trees = shlex.quote(branch), git.worktrees(repo)
    own = next((one.path for one in trees if one.branch == branch and one.path != repo.main), None)
    if current_branch(change.project, change.tree) != branch:  # already merged
        return GitCommands(commit, remove=_removal(repo, own, change.tree, quoted))
    remotes = git.run(change.tree, "remote").splitlines()
    remote = "origin" if "origin" in remotes else next(iter(remotes), None)
    push = (f"{git_here} push --set-upstream {shlex.quote(remote)} {quoted}",) if remote else ()
    holder = next((one.path for one in trees if one.branch == target), None)
    tree = holder or (repo.main if own else change.tree)
    git_there = f"git{git_directory(tree, repo.top)}"
    switch = () if holder else (f"{git_there} switch {shlex.quote(target)}",)
    detach = (f"{git_here} switch --detach",) if holder and not own else ()  # git does not delete a checked-out branch
    remove = (*detach, *_removal(repo, own, tree, quoted))
    return GitCommands(commit, (*switch, f"{git_there} merge {quoted}"), push, remove)


def _removal(repo: git.Repository, own: str | None, tree: str, branch: str) -> tuple[str, ...]:
    """Return the commands to remove the worktree, after leaving it, and to delete the merged branch."""
    if own == repo.top:
        leave = f"cd {shlex.quote(repo.main)}", f"git worktree remove {shlex.quote(own)}"
        return *leave, f"git{git_directory(tree, repo.main, repo.main)} branch --delete {branch}"
    delete = f"git{git_directory(tree, repo.top)} branch --delete {branch}"
    return (f"git worktree remove {shlex.quote(os.path.relpath(own))}", delete) if own else (delete,)


def git_directory(tree: str, current: str, start: str = os.curdir) -> str:
    """Return the option that runs git in `tree`; empty if that is the current worktree."""
    return "" if tree == current else f" -C {shlex.quote(os.path.relpath(tree, start))}"


def current_branch(project: Project, tree: str) -> str | None:
    return next((one.branch for one in git.worktrees(project.repo) if one.path == tree), None)
