"""Find changes by id, or list them, from anywhere in the repository.

A committed change folder is copied into every branch and worktree created later. The change itself is the folder in
the worktree that has its branch checked out or, for a change made in place, in the worktree where it was created.
"""

import os
from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from agentd.change import ids
from agentd.change.index import ChangeIndex, ChangeSummary
from agentd.domain import ChangeNotFound, GitSetup, NotCheckedOut
from agentd.project import Project, git


class LocatedChange(NamedTuple):
    """A change. If no worktree has it checked out, `folder` is None and `fix` is the command that helps."""

    id: str
    summary: ChangeSummary
    tree: str | None
    folder: str | None
    fix: str | None = None
    archived: bool = False


class ChangeLocator:
    """The worktrees of a repository and the change folders in them, read once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        if _folders(project.local_state_path("archiving")):
            from agentd.change import archive_recovery  # deferred: rarely needed
            from agentd.storage import is_read_only

            if not is_read_only():
                archive_recovery.finish_archives(project)
        self.index = ChangeIndex(project.local_state_path("index.json"))
        self._trees = {tree.path: tree for tree in git.worktrees(project.repo)}
        self._tree_names = {path: project.tree_name(path) for path in self._trees}
        self._bases: dict[tuple[str, str], tuple[str, str]] = {}
        self._merged: dict[str, dict[str, str]] = {}

    def open(self) -> list[LocatedChange]:
        """Return every change that is not archived, newest first."""
        owners: dict[str, LocatedChange] = {}
        copies: dict[str, dict[str, ChangeSummary]] = {}
        for tree in self._trees:
            key, folder = self._base(tree, "changes")
            for name in self._names(tree):
                path = f"{folder}/{name}"
                summary = self.index.summary(f"{key}/{name}", path)
                if summary is None:
                    continue
                if self._is_owner(tree, name, summary):
                    owners.setdefault(name, LocatedChange(name, summary, tree, path))
                else:
                    copies.setdefault(name, {})[tree] = summary
        for name, summaries in copies.items():
            if name not in owners and name not in self._archive_ids:
                owners[name] = self._locate_copy(name, summaries)
        for name, summary in self._absent(owners).items():
            owners[name] = self._not_checked_out(name, summary)
        self.index.complete = True
        self.index.save()
        return sorted(owners.values(), key=_newest, reverse=True)

    def archived(self) -> list[LocatedChange]:
        """Return archived and dropped changes, newest first. The current and main worktree win over others."""
        found: dict[str, LocatedChange] = {}
        for tree in dict.fromkeys((*self._trees, self.project.repo.main, self.project.tree)):
            for name in _folders(self._base(tree, "archive")[1]):
                if name in found and tree not in (self.project.repo.main, self.project.tree):
                    continue
                if summary := self._read_summary(tree, "archive", name):
                    folder = os.path.join(self._base(tree, "archive")[1], name)
                    found[name] = LocatedChange(
                        summary.change_id or ids.archived_change_id(name), summary, tree, folder, archived=True
                    )
        self.index.save()
        return sorted(found.values(), key=_newest, reverse=True)

    def find_archived(self, change_id: str) -> LocatedChange | None:
        """Return the archived or dropped change with this id, by its STATE.yaml or its folder name."""
        for found in self.archived():
            if change_id in (found.id, ids.archived_change_id(os.path.basename(found.folder or ""))):
                return found
        return None

    def find(self, change_id: str) -> LocatedChange:
        """Return the open change with this id, whichever worktree it is in."""
        seen = {tree: self._read_summary(tree, "changes", change_id) for tree in self._trees}
        summaries = {tree: summary for tree, summary in seen.items() if summary}
        owners = [tree for tree, summary in summaries.items() if self._is_owner(tree, change_id, summary)]
        if owners:
            found = self._located(change_id, owners[0], summaries[owners[0]])
        elif summaries and change_id not in self._archive_ids:
            found = self._locate_copy(change_id, summaries)
        else:
            absent = self._absent({}, change_id)
            if change_id not in absent:
                raise self._not_found(change_id)
            found = self._not_checked_out(change_id, absent[change_id])
        self.index.save()
        if found.folder is None:
            raise NotCheckedOut(self._explain_not_checked_out(found), found.fix)
        return found

    def similar_id(self, change_id: str) -> str | None:
        """Return the id that was probably meant, in case of a typo."""
        import difflib  # deferred: only needed after a typo

        known = [found.id for found in (*self.open(), *self.archived())]
        return next(iter(difflib.get_close_matches(change_id, known, 1)), None)

    def taken_ids(self) -> set[str]:
        """Return every id that a new change must not use."""
        names = {found.id for found in (*self.open(), *self.archived())}
        for tree in self._trees:
            names.update(_folders(self._base(tree, "changes")[1]))
            archived = _folders(self._base(tree, "archive")[1])
            names.update(archived, map(ids.archived_change_id, archived))
        return names

    def remember(self, tree: str, change_id: str) -> None:
        """Add a new change to the index, so that it is known when its branch is not checked out."""
        key, folder = self._base(tree, "changes")
        self.index.remember(f"{key}/{change_id}", f"{folder}/{change_id}")
        self.index.save()

    def forget(self, tree: str, change_id: str) -> None:
        self.index.forget(f"{self._base(tree, 'changes')[0]}/{change_id}")
        self.index.save()

    def _base(self, tree: str, kind: str) -> tuple[str, str]:
        """Return the index key and the path of `agentd/changes` or `agentd/archive` in a worktree."""
        known = self._bases.get((tree, kind))
        if known is None:
            inside = os.path.join(self.project.prefix, "agentd", kind)
            name = os.path.join(self.project.tree_name(tree), inside)
            known = self._bases[tree, kind] = (name, os.path.join(tree, inside))
        return known

    def _read_summary(self, tree: str, kind: str, name: str) -> ChangeSummary | None:
        key, folder = self._base(tree, kind)
        return self.index.summary(f"{key}/{name}", f"{folder}/{name}")

    def _names(self, tree: str) -> list[str]:
        """Return the folders to check: all in the current and main worktree, elsewhere those that are not copies."""
        repo = self.project.repo
        key, folder = self._base(tree, "changes")
        if tree in (repo.top, repo.main) or not self.index.complete:
            return _folders(folder)
        own = [os.path.basename(row) for row in self.index.known() if os.path.dirname(row) == key]
        branch = self._trees[tree].branch or ""
        return [*own, branch.removeprefix("agentd/")] if branch.startswith("agentd/") else own

    def _locate_copy(self, name: str, summaries: dict[str, ChangeSummary]) -> LocatedChange:
        """Locate a change that has only copies: its branch is merged, deleted or not checked out."""
        preferred = (self.project.repo.top, self.project.repo.main, *summaries)
        tree = next(tree for tree in preferred if tree in summaries)
        summary = summaries[tree]
        if summary.branch and summary.branch in self._branches and not self._is_merged(tree, name, summary):
            return self._not_checked_out(name, summary)
        return self._located(name, tree, summary)

    def _is_owner(self, tree: str, name: str, summary: ChangeSummary) -> bool:
        if summary.problem:  # STATE.yaml does not say where the change belongs
            return self._trees[tree].branch == f"agentd/{name}"
        if summary.branch:
            return self._trees[tree].branch == summary.branch
        return self._tree_names[tree] == summary.tree

    def _is_merged(self, tree: str, name: str, summary: ChangeSummary) -> bool:
        """Return whether the change's branch has commits of its own, all of them contained in this worktree."""
        from pathlib import Path  # deferred: only needed for copies

        from agentd.change.folder import read_state

        if tree not in self._merged:
            self._merged[tree] = git.merged_branches(tree)
        tip = self._merged[tree].get(summary.branch or "")
        base = read_state(Path(self._base(tree, "changes")[1], name)).base
        return tip is not None and tip != base.commit

    def _located(self, name: str, tree: str, summary: ChangeSummary) -> LocatedChange:
        return LocatedChange(name, summary, tree, f"{self._base(tree, 'changes')[1]}/{name}")

    def _not_checked_out(self, name: str, summary: ChangeSummary) -> LocatedChange:
        return LocatedChange(name, summary, None, None, self._checkout_command(summary))

    def _checkout_command(self, summary: ChangeSummary) -> str:
        import shlex  # deferred: rarely needed

        branch = shlex.quote(summary.branch or summary.target or "")
        tree = self.project.tree_path(summary.tree)
        if summary.setup == GitSetup.WORKTREE and not os.path.exists(tree):
            return f"git worktree add -f {shlex.quote(os.path.relpath(tree))} {branch}"
        if tree in (self.project.repo.top, self.project.repo.main) and tree != self.project.repo.top:
            return f"git -C {shlex.quote(os.path.relpath(tree))} switch {branch}"
        return f"git switch {branch}"

    def _explain_not_checked_out(self, found: LocatedChange) -> str:
        summary = found.summary
        if summary.setup == GitSetup.WORKTREE and not os.path.exists(self.project.tree_path(summary.tree)):
            lost = "" if self._committed(summary.branch or "", found.id) else ", and nothing in it was committed"
            return f"the worktree of {found.id} is missing ({summary.tree}, branch {summary.branch}){lost}"
        return f"{found.id} is on branch {summary.branch or summary.target}, which is not checked out"

    def _absent(self, seen: Collection[str], only: str | None = None) -> dict[str, ChangeSummary]:
        """Return changes that are in no worktree because their branch is not checked out."""
        absent: dict[str, ChangeSummary] = {}
        for key in self.index.unseen():
            kind, name = os.path.basename(os.path.dirname(key)), os.path.basename(key)
            if kind != "changes" or name in seen or (only and name != only):
                continue
            summary = self.index.last(key)
            if self._can_be_restored(name, summary):
                absent[name] = summary
            else:
                self.index.forget(key)
        return absent | self._on_branches({*seen, *absent}, only)

    def _can_be_restored(self, name: str, summary: ChangeSummary) -> bool:
        """Return whether checking out its branch would bring the change back."""
        branch = summary.branch or summary.target or ""
        if branch not in self._branches or self._checked_out(branch) or name in self._archive_ids:
            return False
        if summary.setup == GitSetup.WORKTREE and not os.path.exists(self.project.tree_path(summary.tree)):
            return True
        return bool(self._committed(branch, name))

    def _on_branches(self, known: set[str], only: str | None) -> dict[str, ChangeSummary]:
        """Return changes missing from the index, by branch name: for a lookup by id, or after the index was lost."""
        if self.index.complete and not only:
            return {}
        found = {}
        for branch in sorted(self._branches):
            name = branch.removeprefix("agentd/")
            if not branch.startswith("agentd/") or name in known or (only and name != only):
                continue
            text = "" if self._checked_out(branch) else self._committed(branch, name)
            if text and name not in self._archive_ids:
                found[name] = self.index.keep(f"{self._base(self.project.repo.main, 'changes')[0]}/{name}", text)
        return found

    def _committed(self, branch: str, name: str) -> str:
        """Return the change's STATE.yaml as committed on the branch, or an empty string."""
        inside = os.path.join(self.project.prefix, "agentd", "changes", name, "STATE.yaml")
        return git.run(self.project.repo.top, "show", f"{branch}:{inside}", failing="")

    def _checked_out(self, branch: str) -> bool:
        return any(tree.branch == branch for tree in self._trees.values())

    @cached_property
    def _branches(self) -> set[str]:
        return git.branches(self.project.repo)

    @cached_property
    def _archive_ids(self) -> set[str]:
        return {
            ids.archived_change_id(name) for tree in self._trees for name in _folders(self._base(tree, "archive")[1])
        }

    def _not_found(self, change_id: str) -> ChangeNotFound:
        if archived := self.find_archived(change_id):
            folder = os.path.relpath(archived.folder or "")
            hint = f"agentd log {change_id} shows its history, agentd list --all shows all changes"
            return ChangeNotFound(f"{change_id} is {archived.summary.phase}; it is in {folder}", hint)
        similar = self.similar_id(change_id)
        hint = f"did you mean {similar}? agentd list --all shows all changes" if similar else "agentd list"
        return ChangeNotFound(f"there is no change '{change_id}'", hint)


def _newest(found: LocatedChange) -> tuple[str, str]:
    return found.summary.updated_at, found.id


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
