"""Which change a command refers to; creating and dropping a change."""

import os
import shlex
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from agentd.change import ids
from agentd.change.folder import STATE_FILE, Change, encode_state
from agentd.change.locator import ChangeLocator, LocatedChange
from agentd.change.state import BaseSnapshot, ChangeState, GitLocation
from agentd.domain import BadId, ChangeNotFound, MissingDescription, Phase, Refusal, TransitionEvent, clock
from agentd.project import Project, git
from agentd.storage import files

_EXAMPLE = "what should change"
_ID_WORDS = 4  # words of a sentence used for a suggested id
_MAX_DESCRIPTION = 60  # characters of a description in a suggested command


class ChangeStanding(Enum):
    NEW = "new"  # to be created, possibly in a folder that has only clarifications.md
    OPEN = "open"
    ENDED = "ended"  # archived or dropped


@dataclass(frozen=True, slots=True)
class ResolvedChange:
    """The requested id and the one used instead if it was taken; `located` is None for a new change."""

    wanted: str
    id: str
    standing: ChangeStanding
    located: LocatedChange | None


def open_change(project: Project, change_id: str) -> Change:
    """Return the open change with this id, from anywhere in the repository."""
    found = ChangeLocator(project).find(ids.check_change_id(change_id))
    assert found.tree and found.folder
    return Change(project, change_id, found.tree, Path(found.folder))


def resolve_change(locator: ChangeLocator, wanted: str, description: str | None) -> ResolvedChange:
    """Resolve an id to an open or ended change, or to a new one.

    With a description, the id of a complete or archived change, or one otherwise taken, gets a suffix and becomes a new
    change.
    """
    _check_id(wanted, description)
    # read the taken ids first, so that a change created in the meantime is found below
    taken = _taken_ids(locator, wanted) if description else set()
    try:
        found = locator.find(wanted)
    except ChangeNotFound:
        return _resolve_not_open(locator, wanted, description, taken)
    if found.summary.phase is Phase.COMPLETE and description:
        return ResolvedChange(wanted, ids.unique_id(wanted, taken | {wanted}), ChangeStanding.NEW, None)
    return ResolvedChange(
        wanted, wanted, ChangeStanding.OPEN if found.summary.phase.is_open else ChangeStanding.ENDED, found
    )


def _check_id(wanted: str, description: str | None) -> None:
    """Check the id. If a sentence was given instead, suggest an id and use the sentence as the description."""
    try:
        ids.check_change_id(wanted)
    except BadId as error:
        words = wanted.split()
        suggestion = ids.suggest_change_id(" ".join(words[:_ID_WORDS]))
        description = description or (" ".join(words) if len(words) > 1 else "")
        raise BadId(error.message, _plan_command(suggestion, description) if suggestion else None) from None


def _plan_command(change_id: str, description: str = "") -> str:
    """Return the command that starts a change, with a placeholder if the description does not fit on a line."""
    if not description.isprintable() or not 0 < len(description) <= _MAX_DESCRIPTION:
        description = _EXAMPLE
    quoted = shlex.quote(description) if set(description) & set('"$`\\!') else f'"{description}"'
    return f"agentd plan {change_id} {quoted}"


def _taken_ids(locator: ChangeLocator, wanted: str) -> set[str]:
    """Return every id in use, without the wanted one if its change is only half created."""
    return locator.taken_ids() - ({wanted} if new_change_folder(locator.project, wanted) else set())


def _resolve_not_open(locator: ChangeLocator, wanted: str, description: str | None, taken: set[str]) -> ResolvedChange:
    if not description:
        if found := locator.find_archived(wanted):
            return ResolvedChange(wanted, wanted, ChangeStanding.ENDED, found)
        similar, new = locator.similar_id(wanted), _plan_command(wanted)
        hint = f"did you mean agentd plan {similar}? To start a new change: {new}" if similar else new
        raise MissingDescription(f"{wanted} is a new change and needs a description", hint)
    return ResolvedChange(wanted, ids.unique_id(wanted, taken), ChangeStanding.NEW, None)


def new_change_folder(project: Project, change_id: str) -> Path | None:
    """Return the folder of a half-created change, here or in the worktree of an interrupted setup."""
    trees = dict.fromkeys((project.tree, *(tree.path for tree in git.worktrees(project.repo))))
    folders = [folder for tree in trees if (folder := project.changes_in(tree) / change_id).exists()]
    if not folders or not is_incomplete(folders[0]):
        return None
    return max(
        filter(is_incomplete, folders), key=lambda folder: len(os.listdir(folder))
    )  # the first that is not empty


def is_incomplete(folder: Path) -> bool:
    """Return whether the folder has at most clarifications.md and temporary files."""
    if not folder.is_dir():
        return False
    names = [name for name in os.listdir(folder) if not (name.startswith(".") and name.endswith(".tmp"))]
    return names in ([], ["clarifications.md"])


def create_change(
    project: Project, change_id: str, description: str, place: GitLocation | None = None, token: str | None = None
) -> Change:
    """Create the folder and its first STATE.yaml, in the worktree that `place` names."""
    ids.check_change_id(change_id)
    if not description.strip():
        raise MissingDescription(f"{change_id} needs a description", _plan_command(change_id))
    place = place or current_location(project)
    tree = project.tree_path(place.tree)
    folder = project.changes_in(tree) / change_id
    change = Change(project, change_id, tree, folder)
    with change.writing(token):
        if folder.exists() and not is_incomplete(folder):
            raise Refusal(f"{folder} already exists", f"agentd status {change_id}")
        if change.questions_file.exists():
            change.questions_file.unlink()  # of an earlier change with this id
        now = clock.now()
        first = ChangeState(
            change_id, description.strip(), now, now, git=place, base=BaseSnapshot(git.head_commit(tree))
        )
        files.write(folder / STATE_FILE, encode_state(first))
    ChangeLocator(project).remember(tree, change_id)
    return change


def current_location(project: Project) -> GitLocation:
    """Return the in-place location: the current worktree and its branch."""
    top = project.repo.top
    branch = next((tree.branch for tree in git.worktrees(project.repo) if tree.path == top), None)
    return GitLocation(tree=project.tree_name(top), target=branch)


def drop_change(change: Change, by: str, why: str) -> Path:
    """Move an open change to the archive as dropped. If interrupted, running it again finishes it."""
    with change.running(f"agentd drop {change.id}") as holder:
        if change.read().phase is not Phase.DROPPED:
            change.update(
                lambda old: old.with_transition(
                    TransitionEvent.DROPPED, by=by, why=why, at=clock.now(), hashes=change.hashes()
                ),
                holder.token,
            )
        archive = change.project.archive_in(change.tree)
        name = f"{clock.now()[:10].replace('-', '')}-{change.id}"
        taken = set(os.listdir(archive)) if archive.is_dir() else set()
        with change.writing(holder.token):
            target = archive / ids.unique_id(name, taken, longest=200)
            files.move(change.folder, target)
    ChangeLocator(change.project).forget(change.tree, change.id)
    return target
