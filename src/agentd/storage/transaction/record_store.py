"""The record of a transaction on disk: its plan, old and new contents; once done, only what undo needs."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from agentd.domain import FieldReader, StateError
from agentd.storage import files
from agentd.storage.transaction.paths import cannot_continue, is_within

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
