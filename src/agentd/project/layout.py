"""Where files are: the project in each worktree, and its local state."""

import os
from typing import TYPE_CHECKING, NamedTuple

from agentd.domain import NoProject, SetupError
from agentd.project import git

if TYPE_CHECKING:
    from pathlib import Path


CONFIG_PATH = os.path.join("agentd", "config.toml")


class Project(NamedTuple):
    """A git repository, or a folder in one, with `agentd/config.toml`."""

    repo: git.Repository
    prefix: str  # the project's folder within a worktree; "" is the top
    tree: str  # the worktree whose files are used: the current one, or the main one if the project is not in it

    @property
    def root(self) -> "Path":
        return _path(self.tree, self.prefix)

    @property
    def config_file(self) -> "Path":
        return _path(self.tree, self.prefix, CONFIG_PATH)

    def changes_in(self, tree: str) -> "Path":
        return _path(tree, self.prefix, "agentd", "changes")

    def archive_in(self, tree: str) -> "Path":
        return _path(tree, self.prefix, "agentd", "archive")

    def specs_in(self, tree: str) -> "Path":
        return _path(tree, self.prefix, "agentd", "specs")

    def local_state_path(self, *parts: str) -> str:
        """Return a path in the local state, which all worktrees share and which is never committed."""
        folder = os.path.join(self.repo.common, "agentd")
        if self.prefix:
            from urllib.parse import quote  # deferred: most projects are whole repositories

            folder = os.path.join(folder, "projects", quote(self.prefix, safe="", errors="surrogateescape"))
        return os.path.join(folder, *parts)

    def tree_name(self, tree: str) -> str:
        """Return the name of a worktree in STATE.yaml: its path relative to the main one."""
        return os.path.relpath(tree, self.repo.main)

    def tree_path(self, name: str) -> str:
        return os.path.realpath(os.path.join(self.repo.main, name))


def find_project(start: str | None = None) -> Project:
    """Search from this folder upward; a worktree without agentd/config.toml uses the main worktree's project."""
    start = os.path.realpath(start or current_directory())
    repo = git.find_repository(start)
    here = os.path.relpath(start, repo.top)
    for tree in dict.fromkeys((repo.top, repo.main)):
        prefix = _upward(tree, "" if here == "." else here)
        if prefix is not None:
            return Project(repo, prefix, tree)
    raise NoProject(f"{repo.top} has no {CONFIG_PATH}, so it is not an agentd project yet")


def current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise SetupError("the current folder no longer exists", "cd to another one") from None


def _upward(tree: str, prefix: str) -> str | None:
    while True:
        if os.path.isfile(os.path.join(tree, prefix, CONFIG_PATH)):
            return prefix
        if not prefix:
            return None
        prefix = os.path.dirname(prefix)


def _path(*parts: str) -> "Path":
    from pathlib import Path  # deferred: `list` does not need it, and importing it takes a tenth of its time

    return Path(*parts)
