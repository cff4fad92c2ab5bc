"""Which change a command means, and how one comes into being."""

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
_FIRST = 4  # words of a sentence that make an id
_LONGEST = 60  # characters of a description in a command to type


class ChangeStanding(Enum):
    NEW = "new"  # to be created, maybe in a folder that has clarifications.md only
    OPEN = "open"
    ENDED = "ended"  # archived or dropped


@dataclass(frozen=True, slots=True)
class ResolvedChange:
    """The id asked for and the one it became; `found` is None for a new change."""

    wanted: str
    id: str
    standing: ChangeStanding
    found: LocatedChange | None


def open_change(project: Project, change_id: str) -> Change:
    """The open change of that id, from anywhere in the repository."""
    found = ChangeLocator(project).find(ids.check_change_id(change_id))
    assert found.tree and found.folder
    return Change(project, change_id, found.tree, Path(found.folder))


def resolve_change(places: ChangeLocator, wanted: str, description: str | None) -> ResolvedChange:
    """An open id goes on. One that is finished, archived or somebody else's folder gets a suffix,
    if there is a description to begin with."""
    _check(wanted, description)
    taken = _taken(places, wanted) if description else set()  # before the look, which finds what is begun meanwhile
    try:
        found = places.find(wanted)
    except ChangeNotFound:
        return _not_open(places, wanted, description, taken)
    if found.summary.phase is Phase.COMPLETE and description:
        return ResolvedChange(wanted, ids.unique_id(wanted, taken | {wanted}), ChangeStanding.NEW, None)
    return ResolvedChange(
        wanted, wanted, ChangeStanding.OPEN if found.summary.phase.is_open else ChangeStanding.ENDED, found
    )


def _check(wanted: str, description: str | None) -> None:
    """A sentence in the place of the id is a description, and has an id in it."""
    try:
        ids.check_change_id(wanted)
    except BadId as error:
        words = wanted.split()
        better = ids.suggest_change_id(" ".join(words[:_FIRST]))
        said = description or (" ".join(words) if len(words) > 1 else "")
        raise BadId(error.message, _to_type(better, said) if better else None) from None


def _to_type(change_id: str, description: str = "") -> str:
    """The command that begins a change; a description that is too long for a line is left to the person."""
    if not description.isprintable() or not 0 < len(description) <= _LONGEST:
        description = _EXAMPLE
    quoted = shlex.quote(description) if set(description) & set('"$`\\!') else f'"{description}"'
    return f"agentd plan {change_id} {quoted}"


def _taken(places: ChangeLocator, wanted: str) -> set[str]:
    """Every id that is somebody's; not the one wanted while that is being born."""
    born = new_change_folder(places.project, wanted)
    return places.taken() - ({wanted} if born else set())


def _not_open(places: ChangeLocator, wanted: str, description: str | None, taken: set[str]) -> ResolvedChange:
    if not description:
        if found := places.ended(wanted):
            return ResolvedChange(wanted, wanted, ChangeStanding.ENDED, found)
        near, new = places.near(wanted), _to_type(wanted)
        hint = f"did you mean agentd plan {near}? A new one: {new}" if near else new
        raise MissingDescription(f"{wanted} is a new change and needs a description", hint)
    return ResolvedChange(wanted, ids.unique_id(wanted, taken), ChangeStanding.NEW, None)


def new_change_folder(project: Project, change_id: str) -> Path | None:
    """The folder of a change being born: here, or in the work tree that a set-up made before it was cut off."""
    trees = dict.fromkeys((project.tree, *(tree.path for tree in git.worktrees(project.repo))))
    folders = [folder for tree in trees if (folder := project.changes_in(tree) / change_id).exists()]
    if not folders or not is_incomplete(folders[0]):
        return None
    return max(filter(is_incomplete, folders), key=lambda folder: len(os.listdir(folder)))  # the first with words in it


def is_incomplete(folder: Path) -> bool:
    """Nothing in it but clarifications.md, or what a creation that was cut off left."""
    if not folder.is_dir():
        return False
    names = [name for name in os.listdir(folder) if not (name.startswith(".") and name.endswith(".tmp"))]
    return names in ([], ["clarifications.md"])


def create_change(
    project: Project, change_id: str, description: str, place: GitLocation | None = None, token: str | None = None
) -> Change:
    """Make the folder and its first STATE.yaml, in the tree that `place` names."""
    ids.check_change_id(change_id)
    if not description.strip():
        raise MissingDescription(f"{change_id} needs a description", _to_type(change_id))
    place = place or current_location(project)
    tree = project.tree_path(place.tree)
    folder = project.changes_in(tree) / change_id
    change = Change(project, change_id, tree, folder)
    with change.writing(token):
        if folder.exists() and not is_incomplete(folder):
            raise Refusal(f"{folder} is there already", f"agentd status {change_id}")
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
    """In place: the tree we stand in, and the branch that is current there."""
    top = project.repo.top
    branch = next((tree.branch for tree in git.worktrees(project.repo) if tree.path == top), None)
    return GitLocation(tree=project.tree_name(top), target=branch)


def drop_change(change: Change, by: str, why: str) -> Path:
    """Move an open change to the archive as dropped. Cut off half-way, a second drop finishes it."""
    with change.running(f"agentd drop {change.id}") as holder:
        if change.read().phase is not Phase.DROPPED:
            change.update(
                lambda old: old.moved(TransitionEvent.DROPPED, by=by, why=why, at=clock.now(), hashes=change.hashes()),
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
