"""What an agent may not change: agentd's files, git's own files, check definitions, and the user's agentd files."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentd.change import Change
from agentd.guard.check_definitions import files_defining
from agentd.guard.scan import ProtectedArea
from agentd.project import CheckSettings, git, user_config_file, user_config_label

TREE, GIT, POINTER, USER = "tree", "git", "pointer", "user"
PROJECT = "project"  # the worktree whose configuration applies, if the change lives in a different one

_HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-auto-gc"),
    *("post-rewrite", "post-index-change", "reference-transaction", "sendemail-validate", "fsmonitor-watchman"),
)


@dataclass(frozen=True)
class ProtectedPaths:
    """Protected areas by name. `sections` are files of the worktree in which only one section counts."""

    areas: Mapping[str, ProtectedArea]
    sections: Mapping[str, str] = field(default_factory=dict)


def protected_paths(change: Change, checks: Sequence[CheckSettings]) -> ProtectedPaths:
    top = os.path.realpath(change.tree)
    defined = [one for check in checks for one in files_defining(check.command, top, change.project.prefix)]
    whole = [one.path for one in defined if not one.section]
    hooks = _hook_folders(change)
    whole += [worktree_path(change, "agentd"), *_hook_paths(change, top, hooks)]
    partly = {one.path: one.section for one in defined if not is_covered(one.path, whole)}
    areas = {
        TREE: ProtectedArea(top, outermost_paths([*whole, *partly])),
        GIT: ProtectedArea(
            change.project.repo.common, _git_paths(change, hooks), left_out=("info/refs",)
        ),  # a repack writes it
    }
    if os.path.isfile(os.path.join(top, ".git")):  # in a linked worktree, this file names its repository
        areas[POINTER] = ProtectedArea(top, (".git",))
    if (other := os.path.realpath(change.project.tree)) != top:
        areas[PROJECT] = ProtectedArea(other, (worktree_path(change, "agentd"),))
    if user := user_config_file(os.environ):
        areas[USER] = ProtectedArea("/", outermost_paths([*_real(user), *_real(user.with_name("trust.json"))]))
    return ProtectedPaths(areas, partly)


def display_path(change: Change, area: str, root: str, path: str) -> str:
    """Return a path for display: relative to the project's root, git's files to the main worktree, home as ~."""
    if area == USER:
        return user_config_label(Path(root, path), os.environ)
    if area == PROJECT:
        return os.path.relpath(
            os.path.join(root, path), os.path.join(os.path.realpath(change.tree), change.project.prefix)
        )
    if area == GIT:
        return os.path.relpath(os.path.join(root, path), change.project.repo.main)
    return os.path.relpath(path, change.project.prefix) if change.project.prefix else path


def worktree_path(change: Change, name: str) -> str:
    """Return a path of the project relative to the top of a worktree."""
    return os.path.join(change.project.prefix, name)


def _git_paths(change: Change, hooks: Sequence[str]) -> tuple[str, ...]:
    common = change.project.repo.common
    own = os.path.relpath(git.git_folder(change.tree), common)
    names = ["config", "config.worktree", "hooks", "info"]
    if own != "." and not own.startswith(".."):
        names += [f"{own}/config.worktree", f"{own}/commondir"]
    inside = (os.path.relpath(folder, common) for folder in hooks)
    return outermost_paths([*names, *(path for path in inside if path != "." and not path.startswith(".."))])


def _hook_paths(change: Change, top: str, hooks: Sequence[str]) -> list[str]:
    """Return hooks inside the worktree. If the hooks folder also contains the project, list hooks by name."""
    found = []
    project = os.path.join(top, change.project.prefix)
    for folder in hooks:
        inside = os.path.relpath(folder, top)
        if inside.startswith("..") or inside == ".git" or inside.startswith(".git/"):
            continue
        holds_all = os.path.commonpath([folder, project]) == folder
        found += [os.path.normpath(os.path.join(inside, name)) for name in _HOOKS] if holds_all else [inside]
    return found


def _hook_folders(change: Change) -> list[str]:
    """Return the real paths of the folders where git finds hooks."""
    named = git.run(change.tree, "config", "--type=path", "--get", "core.hooksPath", failing="")
    places = [os.path.join(change.tree, named)] if named else []
    return [os.path.realpath(place) for place in (*places, os.path.join(change.project.repo.common, "hooks"))]


def _real(file: Path) -> list[str]:
    """Return a file and, if it is a link, its target, relative to /."""
    return [os.path.realpath(file.parent)[1:] + f"/{file.name}", os.path.realpath(file)[1:]]


def is_covered(path: str, whole: Sequence[str]) -> bool:
    return any(path == other or path.startswith(f"{other}/") for other in whole)


def outermost_paths(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(path for path in dict.fromkeys(paths) if not is_covered(path, [one for one in paths if one != path]))
