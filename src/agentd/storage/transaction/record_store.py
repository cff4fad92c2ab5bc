"""What is kept of a transaction: the list, the texts before and after; once it is done, what undo needs."""

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
_UNDO = "undo"  # within a record, the record of what takes it back
_HALF_DONE = "git status shows what is half done"


@dataclass(frozen=True, slots=True)
class StoredText:
    digest: str
    mode: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after; None: it is not there."""

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
    holds: Mapping[str, str]  # hash by path below it, as the transaction leaves it


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    folder: Path
    root: Path
    title: str
    facts: Mapping[str, str]
    files: tuple[FileChange, ...]
    moves: tuple[MovedPath, ...]
    made: tuple[str, ...]  # folders that it makes, the upper ones first
    cleared: tuple[str, ...]  # folders that go if they are empty, the lower ones first

    @property
    def is_done(self) -> bool:
        return (self.folder / _DONE).exists()

    @property
    def undo(self) -> Path:
        return self.folder / _UNDO

    def afterwards(self, path: str) -> PurePath:
        """Where that file is in the end."""
        for moved in self.moves:
            if is_within(PurePath(path), PurePath(moved.source)):
                return moved.target / PurePath(path).relative_to(moved.source)
        return PurePath(path)

    def text(self, side: str, number: int) -> bytes:
        """The text of a file on one side, as it was laid down."""
        path = stored_text_path(self.folder, side, number)
        before, after = self.files[number].hashes
        with contextlib.suppress(FileNotFoundError):
            data = files.read(path)
            if files.hash_bytes(data) == (before if side == "old" else after):
                return data
        raise StateError(f"{path} is not what was laid down there", _HALF_DONE)


def stored_text_path(folder: Path, side: str, number: int) -> Path:
    """Where the text of a file lies: `old` or `new`."""
    return folder / f"{side}-{number}"


def pending_transactions(folder: Path) -> list[TransactionRecord]:
    """The records in this folder that were begun and not completed; where an undo was, that of the undo. Only looks."""
    return [record for one in _all(folder) if (record := read_transaction(_current(one)))]


def sweep_transactions(folder: Path) -> None:
    """Remove what killed processes left of records: begun without a list, or no longer needed."""
    for record in _all(folder):
        if not is_record(record):
            drop_transaction(record)
            continue
        if (record / _UNDO).exists() and not is_record(record / _UNDO):
            drop_transaction(record / _UNDO)
        if (record / _DONE).exists():
            _slim(record)


def is_pending(folder: Path) -> bool:
    return is_record(_current(folder))


def is_record(folder: Path) -> bool:
    return (folder / _PLAN).exists()


def read_transaction(folder: Path) -> TransactionRecord | None:
    """None: there is no record, or it has not come to be one."""
    try:
        data = files.read(folder / _PLAN)
    except FileNotFoundError:
        return None
    try:
        return _parsed(folder, data)
    except (StateError, ValueError) as error:
        raise StateError(f"{folder / _PLAN} cannot be read: {error}", _HALF_DONE) from error


def write_transaction(record: TransactionRecord) -> None:
    """From here on it will be done. The root is named as seen from here: a repository may be moved as a whole."""
    seen = os.path.relpath(os.path.realpath(record.root), os.path.realpath(record.folder))
    data = asdict(record) | {"root": seen}
    del data["folder"]
    files.write(record.folder / _PLAN, json.dumps(data, indent=1).encode())


def complete_transaction(record: TransactionRecord) -> None:
    """It is done. What was undone has no record any more."""
    if is_record(record.folder.parent):
        drop_transaction(record.folder.parent)
    else:
        files.write(record.folder / _DONE, b"")
        _slim(record.folder)


def drop_transaction(folder: Path) -> None:
    """The list goes first: what is left without it is nothing."""
    with cannot_continue(folder):
        (folder / _PLAN).unlink(missing_ok=True)
        files.sync_folder(folder)
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                drop_transaction(path)
            else:
                path.unlink()
        folder.rmdir()


def _slim(folder: Path) -> None:
    with cannot_continue(folder):
        for path in sorted(folder.iterdir()):
            if path.name.startswith(("new-", ".")):  # the new texts are in their places
                path.unlink()


def _current(folder: Path) -> Path:
    """The record that would be under way."""
    return folder / _UNDO if (folder / _DONE).exists() else folder


def _all(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def _parsed(folder: Path, data: bytes) -> TransactionRecord:
    row = FieldReader(json.loads(data), "the list")
    return TransactionRecord(
        folder,
        Path(os.path.realpath(os.path.join(os.path.realpath(folder), row.text("root")))),
        row.text("title"),
        row.mapping("facts"),
        tuple(
            FileChange(one.text("path"), _text(one.inner("old")), _text(one.inner("new"))) for one in row.items("files")
        ),
        tuple(MovedPath(one.text("source"), one.text("target"), one.mapping("holds")) for one in row.items("moves")),
        row.texts("made"),
        row.texts("cleared"),
    )


def _text(row: FieldReader | None) -> StoredText | None:
    return StoredText(row.text("digest"), row.count("mode")) if row else None
