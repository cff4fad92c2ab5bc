"""The files of another tool's project: read as they are, no link followed, nothing too large taken."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentd.migrate.import_model import ImportNote

LARGEST = 1024 * 1024  # bytes of a file; a longer one is no document
_DEEPEST = 32  # folders below each other


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Files by their paths from the project's root, with `/`; `notes` are about what was left out."""

    files: Mapping[str, bytes]
    notes: tuple[ImportNote, ...] = ()
    is_file: Callable[[str], bool] = lambda path: False
    """Whether the project has that file, of this tool or not."""


def read_source_tree(root: Path, *folders: str) -> SourceTree:
    """All files below these folders; a folder that is not there has none."""
    files: dict[str, bytes] = {}
    notes: list[ImportNote] = []
    for folder in folders:
        way = [root.joinpath(*folder.split("/")[:count]) for count in range(1, folder.count("/") + 2)]
        links = [one for one in way if one.is_symlink()]
        if links:
            notes.append(ImportNote(links[0].relative_to(root).as_posix(), 0, "is a link, and links are not followed"))
        elif way[-1].is_dir():
            _walk(way[-1], folder, files, notes)
    return SourceTree(files, tuple(notes), lambda path: (root / path).is_file())


def _walk(place: Path, name: str, files: dict[str, bytes], notes: list[ImportNote]) -> None:
    if name.count("/") > _DEEPEST:
        notes.append(ImportNote(name, 0, f"lies more than {_DEEPEST} folders deep, and was not read"))
        return
    with os.scandir(place) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        inner = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            _walk(Path(entry.path), inner, files, notes)
        elif problem := _problem(entry):
            notes.append(ImportNote(inner.encode("utf-8", "replace").decode(), 0, problem))
        else:
            files[inner] = Path(entry.path).read_bytes()


def _problem(entry: os.DirEntry[str]) -> str | None:
    if entry.is_symlink():
        return "is a link, and links are not followed"
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        return "is no file"
    if status.st_size > LARGEST:
        return f"has {status.st_size} bytes; more than {LARGEST} are not read"
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    return None
