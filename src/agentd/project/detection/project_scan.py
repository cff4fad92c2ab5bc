"""A bounded scan of a project's files. Unreadable files count as missing."""

import itertools
import json
import os
import shutil
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Third-party code and build output. Hidden folders are skipped too.
SKIPPED_FOLDERS = frozenset(
    ("node_modules", "vendor", "venv", "site-packages", "dist", "build", "target", "__pycache__")
)
DEPTH = 4
ENTRIES = 5000
ENTRIES_PER_FOLDER = 1000  # a folder full of data must not hide the tests next to it
BYTES = 500_000


def is_installed(program: str) -> bool:
    return shutil.which(program) is not None


def value_at(table: object, *keys: str) -> object:
    """Return the value under these keys, or None if any is missing."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


@dataclass(frozen=True, slots=True)
class ProjectScan:
    root: Path
    files: tuple[PurePosixPath, ...]  # relative to the root, upper folders first

    def has(self, *paths: str | PurePosixPath) -> bool:
        """Return whether any of these is a file. Checks the disk, as the list of files may be truncated."""
        return any(os.path.isfile(self.root / path) for path in paths)

    def matching(self, *patterns: str) -> Iterator[PurePosixPath]:
        return (path for path in self.files if any(path.match(pattern) for pattern in patterns))

    def text(self, path: str | PurePosixPath) -> str:
        """Return the text of a file, empty if it is missing, not readable, binary or too long."""
        if not self.has(path):
            return ""  # also for a named pipe: opening it would block
        try:
            with open(self.root / path, "rb") as file:
                data = file.read(BYTES + 1)
        except OSError:
            return ""
        return "" if len(data) > BYTES or b"\0" in data else data.decode("utf-8-sig", "replace")

    def toml(self, path: str) -> dict[str, object]:
        try:
            return tomllib.loads(self.text(path))
        except (ValueError, RecursionError):
            return {}

    def json(self, path: str) -> dict[str, object]:
        try:
            value = json.loads(self.text(path))
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


def scan_project(root: Path) -> ProjectScan:
    files: list[PurePosixPath] = []
    folders = deque([PurePosixPath()])
    left = ENTRIES
    while folders and left > 0:
        folder = folders.popleft()
        entries = _entries(root / folder, min(left, ENTRIES_PER_FOLDER))
        left -= len(entries)
        if folder.parts and any(name == "pyvenv.cfg" for name, _ in entries):
            continue  # a virtual environment with a custom name
        files += (folder / name for name, is_folder in entries if not is_folder)
        if len(folder.parts) < DEPTH:
            folders += (folder / name for name, is_folder in entries if is_folder and _is_ours(name))
    return ProjectScan(root, tuple(files))


def _is_ours(folder: str) -> bool:
    return not folder.startswith(".") and folder not in SKIPPED_FOLDERS


def _entries(folder: Path, most: int) -> list[tuple[str, bool]]:
    """Return sorted names, each with whether it is a folder. Folder links are not followed, so there are no loops."""
    try:
        with os.scandir(folder) as found:
            # A name that cannot be printed cannot be used in a command either.
            names = [(e.name, e.is_dir(follow_symlinks=False)) for e in itertools.islice(found, most)]
            return sorted(name for name in names if name[0].isprintable())
    except OSError:
        return []
