"""The record of a transaction on disk: its plan, old and new contents; once done, only what undo needs."""

import contextlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from agentd.domain import Bug, FieldReader, Refusal, StateError
from agentd.storage import files


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: PurePath
    data: bytes
    mode: int | None = None  # None: keep the permissions, or use the default for a new file
    seen: str | None = None
    """The hash of the file this is based on (empty: no file). Refused if the file has changed. None: not checked."""


@dataclass(frozen=True, slots=True)
class RemoveFile:
    path: PurePath


@dataclass(frozen=True, slots=True)
class MovePath:
    """Move a file or folder; the target is its new path, not the folder to put it in."""

    source: PurePath
    target: PurePath


Operation = WriteFile | RemoveFile | MovePath


def check_disjoint(operations: Sequence[Operation]) -> None:
    """Check that no two operations share a path, so that order does not matter. Files in a moved folder may change."""
    written = [change.path for change in operations if not isinstance(change, MovePath)]
    sources = [move.source for move in operations if isinstance(move, MovePath)]
    targets = [move.target for move in operations if isinstance(move, MovePath)]
    groups = [(paths, paths) for paths in (written, sources, targets)]
    groups += [(targets, written + sources), (written + sources, targets), (sources, written)]
    conflicts = [pair for paths, folders in groups for pair in _nested(paths, folders)]
    counts = (Counter(written), Counter(sources), Counter(targets), Counter({*targets}) + Counter({*written, *sources}))
    conflicts += [(path, path) for counted in counts for path, count in counted.items() if count > 1]
    for path, other in conflicts:
        raise Bug(f"{path} and {other} cannot be changed in one transaction")


def _nested(paths: Sequence[PurePath], folders: Sequence[PurePath]) -> Iterator[tuple[PurePath, PurePath]]:
    """Yield each path with a folder that contains it. There may be thousands, so folders are looked up in a set."""
    known = set(folders)
    yield from ((path, above) for path in paths for above in path.parents if above in known)


def is_within(path: PurePath, folder: PurePath) -> bool:
    return folder == path or folder in path.parents


AGAIN = "then run the command again"
_NO_FILE = "no file"  # instead of a hash


def safe_path(root: Path, path: PurePath | str) -> Path:
    """Return the full path. Paths through links are refused, as a link may lead out of the root."""
    parts = PurePath(path).parts
    if not parts or ".." in parts or PurePath(path).is_absolute():
        raise Refusal(f"{printable_path(path)} is not inside {root}", "use a path inside it")
    place = root
    for number, part in enumerate(parts, 1):
        place = place / part
        kind = mode_of(place)
        if kind is None:
            break
        if stat.S_ISLNK(kind):
            message = f"{printable_path(place)} is a symbolic link, and agentd does not write through links"
            raise Refusal(message, f"replace it with its target, {AGAIN}")
        if number < len(parts) and not stat.S_ISDIR(kind):
            raise Refusal(f"{printable_path(place)} is not a folder", f"move it elsewhere, {AGAIN}")
    return root.joinpath(*parts)


def mode_of(place: Path) -> int | None:
    """Return the mode (file type and permissions), or None if the path does not exist."""
    with cannot_continue(place, files.CannotRead):
        try:
            return os.lstat(place).st_mode
        except FileNotFoundError:
            return None


def hash_path(place: Path) -> str | None:
    kind = mode_of(place)
    if kind is None:
        return None
    return files.hash_bytes(files.read(place)) if stat.S_ISREG(kind) else _NO_FILE


def hash_tree(place: Path) -> dict[str, str]:
    """Return the hash of every file at or below a path, by relative path; for a link, its target."""
    kind = mode_of(place)
    if kind is None:
        return {}
    with cannot_continue(place, files.CannotRead):
        if stat.S_ISLNK(kind):
            return {".": f"a link to {os.readlink(place)}"}
        names = sorted(os.listdir(place)) if stat.S_ISDIR(kind) else None
    if names is None:
        return {".": hash_path(place) or _NO_FILE}
    return {
        os.path.normpath(f"{name}/{path}"): digest for name in names for path, digest in hash_tree(place / name).items()
    }


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync them to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        with cannot_continue(folder):
            folder.mkdir(exist_ok=True)
            files.sync_folder(folder.parent)


def remove_file(place: Path) -> None:
    with cannot_continue(place):
        place.unlink(missing_ok=True)
        files.sync_folder(place.parent)


def remove_if_empty(folder: Path) -> None:
    with cannot_continue(folder):
        if folder.is_dir() and not os.listdir(folder):
            folder.rmdir()
            files.sync_folder(folder.parent)


def printable_path(path: PurePath | str) -> str:
    """Escape a path that has line breaks or undecodable bytes."""
    return str(path) if str(path).isprintable() else ascii(str(path))


@contextlib.contextmanager
def cannot_continue(
    place: Path, error_type: type[files.CannotRead] | type[files.CannotWrite] = files.CannotWrite
) -> Iterator[None]:
    verb = "read" if error_type is files.CannotRead else "write"
    try:
        yield
    except OSError as error:
        raise error_type(f"cannot {verb} {printable_path(place)}: {error.strerror or error}") from error


_PLAN = "plan.json"
_DONE = "done"
_UNDO = "undo"  # inside a record, the record of its undo
_HALF_DONE = "git status shows what is half done"


@dataclass(frozen=True, slots=True)
class StoredText:
    digest: str
    mode: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after; None: it does not exist."""

    path: str
    old: StoredText | None
    new: StoredText | None

    @property
    def hashes(self) -> tuple[str | None, str | None]:
        return self.old.digest if self.old else None, self.new.digest if self.new else None


@dataclass(frozen=True, slots=True)
class MovedPath:
    source: str
    target: str
    holds: Mapping[str, str]  # hashes by relative path, after the transaction


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    folder: Path
    root: Path
    title: str
    facts: Mapping[str, str]
    files: tuple[FileChange, ...]
    moves: tuple[MovedPath, ...]
    made: tuple[str, ...]  # folders that it creates, parents first
    cleared: tuple[str, ...]  # folders that it removes if empty, children first

    @property
    def is_done(self) -> bool:
        return (self.folder / _DONE).exists()

    @property
    def undo(self) -> Path:
        return self.folder / _UNDO

    def final_path(self, path: str) -> PurePath:
        """Return where a file is after the transaction."""
        for moved in self.moves:
            if is_within(PurePath(path), PurePath(moved.source)):
                return moved.target / PurePath(path).relative_to(moved.source)
        return PurePath(path)

    def text(self, side: str, number: int) -> bytes:
        """Return the stored content of a file: `old` or `new`."""
        path = stored_text_path(self.folder, side, number)
        before, after = self.files[number].hashes
        with contextlib.suppress(FileNotFoundError):
            data = files.read(path)
            if files.hash_bytes(data) == (before if side == "old" else after):
                return data
        raise StateError(f"{path} is missing or was changed", _HALF_DONE)


def stored_text_path(folder: Path, side: str, number: int) -> Path:
    """Return the path of a file's stored content: `old` or `new`."""
    return folder / f"{side}-{number}"


def pending_transactions(folder: Path) -> list[TransactionRecord]:
    """Return the records of unfinished transactions and undos in a folder."""
    return [record for path in _subfolders(folder) if (record := read_transaction(_current(path)))]


def sweep_transactions(folder: Path) -> None:
    """Remove leftovers of killed processes: records without a plan, and contents no longer needed."""
    for record in _subfolders(folder):
        if not is_record(record):
            drop_transaction(record)
            continue
        if (record / _UNDO).exists() and not is_record(record / _UNDO):
            drop_transaction(record / _UNDO)
        if (record / _DONE).exists():
            _remove_new_texts(record)


def is_pending(folder: Path) -> bool:
    return is_record(_current(folder))


def is_record(folder: Path) -> bool:
    return (folder / _PLAN).exists()


def read_transaction(folder: Path) -> TransactionRecord | None:
    """Return the record, or None if there is none or its plan was never written."""
    try:
        data = files.read(folder / _PLAN)
    except FileNotFoundError:
        return None
    try:
        return _parse(folder, data)
    except (StateError, ValueError) as error:
        raise StateError(f"{folder / _PLAN} cannot be read: {error}", _HALF_DONE) from error


def write_transaction(record: TransactionRecord) -> None:
    """Write the plan; from here on, it will be completed. The root is relative, as the repository may be moved."""
    root = os.path.relpath(os.path.realpath(record.root), os.path.realpath(record.folder))
    data = asdict(record) | {"root": root}
    del data["folder"]
    files.write(record.folder / _PLAN, json.dumps(data, indent=1).encode())


def complete_transaction(record: TransactionRecord) -> None:
    """Mark a transaction as done. A completed undo removes the record that it undid."""
    if is_record(record.folder.parent):
        drop_transaction(record.folder.parent)
    else:
        files.write(record.folder / _DONE, b"")
        _remove_new_texts(record.folder)


def drop_transaction(folder: Path) -> None:
    """Remove a record, its plan first: without a plan, the rest has no effect."""
    with cannot_continue(folder):
        (folder / _PLAN).unlink(missing_ok=True)
        files.sync_folder(folder)
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                drop_transaction(path)
            else:
                path.unlink()
        folder.rmdir()


def _remove_new_texts(folder: Path) -> None:
    with cannot_continue(folder):
        for path in sorted(folder.iterdir()):
            if path.name.startswith(("new-", ".")):
                path.unlink()


def _current(folder: Path) -> Path:
    """Return the folder of the record that may be pending: of the undo, once the transaction is done."""
    return folder / _UNDO if (folder / _DONE).exists() else folder


def _subfolders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _parse(folder: Path, data: bytes) -> TransactionRecord:
    row = FieldReader(json.loads(data), "the plan")
    return TransactionRecord(
        folder,
        Path(os.path.realpath(os.path.join(os.path.realpath(folder), row.text("root")))),
        row.text("title"),
        row.mapping("facts"),
        tuple(
            FileChange(file.text("path"), _parse_text(file.inner("old")), _parse_text(file.inner("new")))
            for file in row.items("files")
        ),
        tuple(
            MovedPath(move.text("source"), move.text("target"), move.mapping("holds")) for move in row.items("moves")
        ),
        row.texts("made"),
        row.texts("cleared"),
    )


def _parse_text(row: FieldReader | None) -> StoredText | None:
    return StoredText(row.text("digest"), row.count("mode")) if row else None
