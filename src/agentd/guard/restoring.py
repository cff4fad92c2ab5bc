"""What differs and may not: planned as it will be told, then put back; whatever stands there now is kept."""

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agentd.change.folder import Change
from agentd.guard.harmless import trust_mended
from agentd.guard.looking import Area
from agentd.guard.mirror import Copy, Difference, Mirror
from agentd.guard.protected import PROJECT, TREE, shown
from agentd.guard.putback import HALF, put_back
from agentd.guard.record import Trespass, What, told
from agentd.guard.store import Tampered
from agentd.project import git

_MANY = 100  # files; more are brought to disk at once
_COMMITTED = "Its copy was tampered with, so the committed version was put there."
_LEFT = "It could not be put back, because its copy was tampered with: it stays as it is until a person has looked."


class Planned(NamedTuple):
    difference: Difference
    root: str
    kept: Path
    trespass: Trespass
    is_told: bool  # not what lies in a folder that is told, nor what we left ourselves


def plan(change: Change, areas: Mapping[str, Area], kept: Path, found: Sequence[Difference]) -> list[Planned]:
    """A folder that came, went or became something else is told once, with all that is in it."""
    planned: list[Planned] = []
    covered = ""
    for one in found:
        root = areas[one.area].root
        is_inside = bool(covered) and one.path.startswith(covered)
        if is_inside and one.before is None:
            continue  # it goes with its folder
        place = _free(kept / one.area / one.path)
        name = told(shown(change, one.area, root, one.path))
        what: What = "created" if one.before is None else "deleted" if one.after is None else "changed"
        is_kept = one.after is not None and not (one.was_folder and one.is_folder)
        trespass = Trespass(name, what, _seen_from_main(change, place) if is_kept else "")
        is_ours = one.before is None and HALF.fullmatch(os.path.basename(one.path)) is not None
        planned.append(Planned(one, root, place, trespass, not is_inside and not is_ours))
        if not is_inside:
            covered = f"{one.path}/" if one.was_folder != one.is_folder else ""
    return planned


def carry_out(
    change: Change, mirror: Mirror, commit: str, planned: Sequence[Planned]
) -> tuple[list[Trespass], list[str]]:
    """What was put back, and what could not be, with the reason. `commit`: where a lost copy is looked for."""
    done: list[Trespass] = []
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


def is_kept(change: Change, trespass: Trespass) -> bool:
    return bool(trespass.kept) and os.path.lexists(os.path.join(change.project.repo.main, trespass.kept))


def _put_back(change: Change, mirror: Mirror, commit: str, one: Planned, flush: bool) -> str:
    """What there is to say about it, "" if it is as it was."""
    difference, note, data = one.difference, "", None
    before = difference.before
    if before and stat.S_ISREG(before.seen.mode) and not _is_whole(mirror, before):
        data = _committed(one, commit)
        if data is None:
            return _LEFT
        note = _COMMITTED
    elif mended := trust_mended(mirror, one.root, difference, os.path.realpath(change.project.repo.common)):
        data, note = mended, "This repository's part of it has been put back as it was."
    put_back(mirror, one.root, difference, one.kept, flush, data)
    return note


def _is_whole(mirror: Mirror, copy: Copy) -> bool:
    try:
        for _ in mirror.pieces(copy):
            pass
    except Tampered:
        return False
    return True


def _committed(one: Planned, commit: str) -> bytes | None:
    """The bytes that git has of it; None if it has none."""
    if one.difference.area not in (TREE, PROJECT):
        return None
    revision = commit if one.difference.area == TREE else "HEAD"
    command = ["git", "-C", one.root, "cat-file", "blob", f"{revision}:{one.difference.path}"]
    done = subprocess.run(command, capture_output=True, env=git.environment(), check=False)
    return None if done.returncode else done.stdout


def _seen_from_main(change: Change, place: Path) -> str:
    return told(os.path.relpath(place, change.project.repo.main))


def _free(kept: Path) -> Path:
    number, place = 1, kept
    while os.path.lexists(place):
        number += 1
        place = kept.with_name(f"{kept.name}.{number}")
    return place
