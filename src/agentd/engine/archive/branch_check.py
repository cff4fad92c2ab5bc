"""The branch that a change is on: does it know the current specs, and what is left to do in git afterwards."""

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass

from agentd.change import Change, GitLocation
from agentd.domain import StaleBranch
from agentd.project import Project, git


@dataclass(frozen=True)
class GitCommands:
    """What to type, from where the person stands."""

    commit: tuple[str, ...]
    merge: tuple[str, ...] = ()
    pull_request: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def refuse_outdated_branch(change: Change, place: GitLocation, again: str) -> None:
    """Its branch contains the tip of the target, or we stand on the target with the work merged."""
    target, here = place.target, _branch(change)
    names = git.branches(change.project.repo)
    tip = _tip(change, target, names) if target and git.head_commit(change.tree) else None
    if target is None or tip is None:
        return
    at = _at(change)
    if here == target:
        if place.branch in names and not _contains(change, f"refs/heads/{place.branch}"):
            words = f"the work of {change.id} is on {place.branch}, which is not merged into {target}"
            raise StaleBranch(words, f"git{at} merge {shlex.quote(place.branch or '')}, then {again}")
        return
    if not _contains(change, tip):
        lacking = git.run(change.tree, "rev-list", "--count", f"HEAD..{tip}")
        commits = "a commit" if lacking == "1" else f"{lacking} commits"
        name = tip.removeprefix("refs/heads/").removeprefix("refs/remotes/")
        words = f"{here or 'the detached HEAD'} lacks {commits} of {name}, so its specs may not be those of today"
        raise StaleBranch(words, f"git{at} merge {shlex.quote(name)}, then {again}")


def _tip(change: Change, target: str, names: Collection[str]) -> str | None:
    """The target here; in a clone that never had it checked out, as it was fetched."""
    if target in names:
        return f"refs/heads/{target}"
    found = git.run(change.tree, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{target}").splitlines()
    return next((one for one in found if one.startswith("refs/remotes/origin/")), next(iter(found), None))


def behind_upstream(change: Change, place: GitLocation) -> str | None:
    """A word about the target's own upstream, as far as it was fetched."""
    target = place.target
    if not target:
        return None
    upstream = git.run(change.tree, "rev-parse", "--abbrev-ref", f"{target}@{{upstream}}", failing="")
    count = upstream and git.run(change.tree, "rev-list", "--count", f"{target}..{upstream}", failing="0")
    if not count or count == "0":
        return None
    return f"{target} is {count} behind {upstream}, which may have newer specs: git pull, then merge {target}"


def on_no_branch(change: Change) -> str | None:
    """A word where a commit would soon be out of sight."""
    if _branch(change) or not git.head_commit(change.tree):
        return None
    return f"HEAD is detached, so a commit would be on no branch: git{_at(change)} switch --create agentd/{change.id}"


def git_commands(change: Change, place: GitLocation, message: str) -> GitCommands:
    """To commit, to bring it to the target, and to be rid of branch and worktree once it is there."""
    repo, at, target = change.project.repo, _at(change), place.target
    commit = (f"git{at} add --all", f"git{at} commit --message {shlex.quote(message)}")
    branch = place.branch if place.branch in git.branches(repo) else None
    if branch is None or not target:
        return GitCommands(commit)
    quoted, trees = shlex.quote(branch), git.worktrees(repo)
    own = next((one.path for one in trees if one.branch == branch and one.path != repo.main), None)
    if _branch(change) != branch:  # it is merged already
        return GitCommands(commit, remove=_removal(repo, own, change.tree, quoted))
    remotes = git.run(change.tree, "remote").splitlines()
    remote = "origin" if "origin" in remotes else next(iter(remotes), None)
    requested = (f"git{at} push --set-upstream {shlex.quote(remote)} {quoted}",) if remote else ()
    holder = next((one.path for one in trees if one.branch == target), None)
    tree = holder or (repo.main if own else change.tree)
    there = change_directory(tree, repo.top)
    switch = () if holder else (f"git{there} switch {shlex.quote(target)}",)
    off = (f"git{at} switch --detach",) if holder and not own else ()  # git keeps a branch that is checked out
    return GitCommands(
        commit, (*switch, f"git{there} merge {quoted}"), requested, (*off, *_removal(repo, own, tree, quoted))
    )


def _removal(repo: git.Repository, own: str | None, tree: str, branch: str) -> tuple[str, ...]:
    """Its worktree is not removed by somebody who stands in it; its branch where git sees that it is merged."""
    if own == repo.top:
        away = f"cd {shlex.quote(repo.main)}", f"git worktree remove {shlex.quote(own)}"
        return *away, f"git{change_directory(tree, repo.main, repo.main)} branch --delete {branch}"
    delete = f"git{change_directory(tree, repo.top)} branch --delete {branch}"
    return (f"git worktree remove {shlex.quote(os.path.relpath(own))}", delete) if own else (delete,)


def _at(change: Change) -> str:
    return change_directory(change.tree, change.project.repo.top)


def change_directory(tree: str, standing: str, start: str = os.curdir) -> str:
    """What leads git to another tree than the one that somebody stands in."""
    return "" if tree == standing else f" -C {shlex.quote(os.path.relpath(tree, start))}"


def current_branch(project: Project, tree: str) -> str | None:
    return next((one.branch for one in git.worktrees(project.repo) if one.path == tree), None)


def _branch(change: Change) -> str | None:
    return current_branch(change.project, change.tree)


def _contains(change: Change, ref: str) -> bool:
    return git.succeeds(change.tree, "merge-base", "--is-ancestor", ref, "HEAD")
