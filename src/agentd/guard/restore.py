"""What differs and may not: planned as it will be told, then put back; whatever stands there now is kept."""

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agentd.change import Change
from agentd.guard.allowed import repaired_trust
from agentd.guard.call_record import Violation, What, printable_name
from agentd.guard.copy_store import TamperedCopy
from agentd.guard.file_restore import HALF, restore_path
from agentd.guard.protected_paths import PROJECT, TREE, display_path
from agentd.guard.scan import ProtectedArea
from agentd.guard.snapshot import FileCopy, FileDifference, Snapshot
from agentd.project import git

_MANY = 100  # files; more are brought to disk at once
_COMMITTED = "Its copy was tampered with, so the committed version was put there."
_LEFT = "It could not be put back, because its copy was tampered with: it stays as it is until a person has looked."


class PlannedRestore(NamedTuple):
    difference: FileDifference
    root: str
    kept: Path
    trespass: Violation
    is_told: bool  # not what lies in a folder that is told, nor what we left ourselves


def plan_restore(
    change: Change, areas: Mapping[str, ProtectedArea], kept: Path, found: Sequence[FileDifference]
) -> list[PlannedRestore]:
    """A folder that came, went or became something else is told once, with all that is in it."""
    planned: list[PlannedRestore] = []
    covered = ""
    for one in found:
        root = areas[one.area].root
        is_inside = bool(covered) and one.path.startswith(covered)
        if is_inside and one.before is None:
            continue  # it goes with its folder
        place = _free(kept / one.area / one.path)
        name = printable_name(display_path(change, one.area, root, one.path))
        what: What = "created" if one.before is None else "deleted" if one.after is None else "changed"
        is_kept = one.after is not None and not (one.was_folder and one.is_folder)
        trespass = Violation(name, what, _seen_from_main(change, place) if is_kept else "")
        is_ours = one.before is None and HALF.fullmatch(os.path.basename(one.path)) is not None
        planned.append(PlannedRestore(one, root, place, trespass, not is_inside and not is_ours))
        if not is_inside:
            covered = f"{one.path}/" if one.was_folder != one.is_folder else ""
    return planned


def carry_out_restore(
    change: Change, mirror: Snapshot, commit: str, planned: Sequence[PlannedRestore]
) -> tuple[list[Violation], list[str]]:
    """What was put back, and what could not be, with the reason. `commit`: where a lost copy is looked for."""
    done: list[Violation] = []
    failed: list[str] = []
    for one in planned:
        try:
            note = _put_back(change, mirror, commit, one, flush=len(planned) <= _MANY)
        except (OSError, RecursionError) as error:
            failed.append(f"{one.trespass.path} ({getattr(error, 'strerror', None) or error})")
            continue
        if one.is_told or note:
            is_kept = one.trespass.kept and os.path.lexists(one.kept)
            done.append(one.trespass._replace(kept=one.trespass.kept if is_kept else "", note=note))
    if len(planned) > _MANY:
        os.sync()
    return done, failed


def is_copy_kept(change: Change, trespass: Violation) -> bool:
    return bool(trespass.kept) and os.path.lexists(os.path.join(change.project.repo.main, trespass.kept))


def _put_back(change: Change, mirror: Snapshot, commit: str, one: PlannedRestore, flush: bool) -> str:
    """What there is to say about it, "" if it is as it was."""
    difference, note, data = one.difference, "", None
    before = difference.before
    if before and stat.S_ISREG(before.seen.mode) and not _is_whole(mirror, before):
        data = _committed(one, commit)
        if data is None:
            return _LEFT
        note = _COMMITTED
    elif mended := repaired_trust(mirror, one.root, difference, os.path.realpath(change.project.repo.common)):
        data, note = mended, "This repository's part of it has been put back as it was."
    restore_path(mirror, one.root, difference, one.kept, flush, data)
    return note


def _is_whole(mirror: Snapshot, copy: FileCopy) -> bool:
    try:
        for _ in mirror.pieces(copy):
            pass
    except TamperedCopy:
        return False
    return True


def _committed(one: PlannedRestore, commit: str) -> bytes | None:
    """The bytes that git has of it; None if it has none."""
    if one.difference.area not in (TREE, PROJECT):
        return None
    revision = commit if one.difference.area == TREE else "HEAD"
    command = ["git", "-C", one.root, "cat-file", "blob", f"{revision}:{one.difference.path}"]
    done = subprocess.run(command, capture_output=True, env=git.environment(), check=False)
    return None if done.returncode else done.stdout


def _seen_from_main(change: Change, place: Path) -> str:
    return printable_name(os.path.relpath(place, change.project.repo.main))


def _free(kept: Path) -> Path:
    number, place = 1, kept
    while os.path.lexists(place):
        number += 1
        place = kept.with_name(f"{kept.name}.{number}")
    return place
