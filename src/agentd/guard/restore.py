"""Restore what an agent may not change: plan and report it, then write it back and keep the current version."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agentd.change import Change
from agentd.guard.allowed import repaired_trust
from agentd.guard.call_record import Violation, What, printable_name
from agentd.guard.protected_paths import PROJECT, TREE, display_path
from agentd.guard.scan import FileStamp, ProtectedArea, open_file, open_folder, stat_name
from agentd.guard.snapshot import FileCopy, FileDifference, Snapshot, TamperedCopy
from agentd.project import git

HALF = re.compile(r"\.\d+-[0-9a-f]{16}\.tmp")  # temporary file of a guard that was killed

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def restore_path(
    mirror: Snapshot, root: str, one: FileDifference, kept: Path, flush: bool, data: bytes | None = None
) -> None:
    """Restore one path. Its current version, if any, is moved or copied unchanged to `kept`.

    `data` replaces the bytes of the file's copy. With `flush`, the result is on disk on return; a caller that restores
    many files syncs once instead.
    """
    above, _, leaf = one.path.rpartition("/")
    with _reached(root, above, kept) as handle:
        if one.before is None:
            _keep(handle, leaf, root, one.path, kept)
            _remove(handle, leaf)
        elif one.was_folder:
            _put_folder(handle, leaf, root, one, one.before.seen, kept)
        else:
            _keep(handle, leaf, root, one.path, kept)
            pieces = mirror.pieces(one.before) if data is None and stat.S_ISREG(one.before.seen.mode) else [data or b""]
            _put(pieces, handle, leaf, one.before, flush)
        if flush:
            os.fsync(handle)


@contextlib.contextmanager
def _reached(root: str, path: str, kept: Path) -> Iterator[int]:
    """Open a folder. Missing parents are created; anything in the way is moved next to the kept files."""
    if not _is_clear(root, path):
        _clear(root, path.split("/"), kept)
    with open_folder(root, path) as handle:
        yield handle


def _is_clear(root: str, path: str) -> bool:
    try:
        with open_folder(root, path):
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False


def _clear(root: str, parts: list[str], kept: Path) -> None:
    for number, part in enumerate(parts):
        with open_folder(root, "/".join(parts[:number])) as handle:
            if (seen := _look(part, handle)) and not stat.S_ISDIR(seen.mode):
                aside = kept.parents[len(parts) - number - 1]
                _keep(handle, part, root, "/".join(parts[: number + 1]), aside.with_name(f"{aside.name}.in-the-way"))
                os.unlink(part, dir_fd=handle)
                seen = None
            if seen is None:
                os.mkdir(part, dir_fd=handle)


def _look(name: str, handle: int) -> FileStamp | None:
    try:
        return stat_name(name, handle)
    except FileNotFoundError:
        return None


def _keep(handle: int, name: str, root: str, path: str, kept: Path) -> None:
    """Keep the current version: move a folder; hard-link anything else, or copy it if that fails."""
    seen = _look(name, handle)
    if seen is None:
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(seen.mode):
        try:
            os.rename(name, kept, src_dir_fd=handle)
        except OSError:  # a different file system
            shutil.copytree(os.path.join(root, path), kept, symlinks=True)
        return
    try:
        os.link(name, kept, src_dir_fd=handle, follow_symlinks=False)
    except OSError:
        _copy(handle, name, seen, kept)


def _copy(handle: int, name: str, seen: FileStamp, kept: Path) -> None:
    if stat.S_ISLNK(seen.mode):
        os.symlink(os.readlink(name, dir_fd=handle), kept)
    elif stat.S_ISREG(seen.mode):
        with open_file(name, handle) as source, open(kept, "xb") as target:
            while piece := os.read(source, 1 << 20):
                target.write(piece)
            os.fchmod(target.fileno(), stat.S_IMODE(seen.mode))


def _remove(handle: int, name: str) -> None:
    seen = _look(name, handle)
    if seen is None:
        return  # a folder was already moved away
    if stat.S_ISDIR(seen.mode):
        shutil.rmtree(name, dir_fd=handle)
    else:
        os.unlink(name, dir_fd=handle)


def _put_folder(handle: int, name: str, root: str, one: FileDifference, before: FileStamp, kept: Path) -> None:
    if not one.is_folder:
        _keep(handle, name, root, one.path, kept)
        _remove(handle, name)
        os.mkdir(name, dir_fd=handle)
    try:
        with open_folder(root, one.path) as inner:
            os.fchmod(inner, stat.S_IMODE(before.mode))
    except PermissionError:  # we have no access to the folder
        os.chmod(name, stat.S_IMODE(before.mode), dir_fd=handle)


def _put(pieces: Iterable[bytes], handle: int, name: str, before: FileCopy, flush: bool) -> None:
    """Write a file or link as it was, atomically."""
    if (seen := _look(name, handle)) and stat.S_ISDIR(seen.mode):
        shutil.rmtree(name, dir_fd=handle)  # it was copied, not moved
    temporary = f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
    try:
        if stat.S_ISLNK(before.seen.mode):
            os.symlink(before.target, temporary, dir_fd=handle)
        elif stat.S_ISREG(before.seen.mode):
            with open(os.open(temporary, _NEW, 0o600, dir_fd=handle), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fchmod(file.fileno(), stat.S_IMODE(before.seen.mode))
                os.utime(file.fileno(), ns=(before.seen.mtime, before.seen.mtime))
                if flush:
                    os.fsync(file.fileno())
        else:
            raise OSError(0, "it was neither a file nor a link nor a folder")
        os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=handle)
        raise


_MANY = 100  # files; for more than this, sync once at the end
_COMMITTED = "Its copy was tampered with, so the committed version was put there."
_LEFT = "It could not be put back, because its copy was tampered with: it stays as it is until a person has looked."


class PlannedRestore(NamedTuple):
    difference: FileDifference
    root: str
    kept: Path
    trespass: Violation
    is_told: bool  # not for the contents of a reported folder, nor for our own leftovers


def plan_restore(
    change: Change, areas: Mapping[str, ProtectedArea], kept: Path, found: Sequence[FileDifference]
) -> list[PlannedRestore]:
    """Plan the restore. A folder that was created, deleted or replaced is reported once, including its contents."""
    planned: list[PlannedRestore] = []
    covered = ""
    for one in found:
        root = areas[one.area].root
        is_inside = bool(covered) and one.path.startswith(covered)
        if is_inside and one.before is None:
            continue  # removed with its folder
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
    """Restore the paths. Return what was restored, and what failed and why. A lost copy is read from `commit`."""
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
    """Restore one path. Return a note if it is not exactly as before, else an empty string."""
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
    """Return the committed content of the file, or None if git has none."""
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
