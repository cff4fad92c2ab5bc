"""What was found in another tool's project, and what becomes of it here."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentd.documents import parse_spec
from agentd.domain import Phase

KEPT = "imported"
"""The folder in a change for original files that are not carried over whole, byte for byte."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something that could not be mapped, or not exactly; line 0 means the whole file.

    `alike` is the same for many of its kind, where the message says more.
    """

    file: str
    line: int
    message: str
    alike: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ImportedSpec:
    source: str
    id: str
    text: str
    requirements: int
    scenarios: int


@dataclass(frozen=True, slots=True)
class ImportedChange:
    """One change: `files` by their paths in its folder; `bases` the main specs it begins from, None for a new one."""

    source: str
    id: str
    description: str
    created: str
    phase: Phase
    files: Mapping[str, bytes]
    bases: Mapping[str, str | None]
    tasks: int = 0

    @property
    def counts(self) -> Counter[str]:
        """What its specs say."""
        texts = (data.decode() for path, data in self.files.items() if path.startswith("specs/"))
        found: Counter[str] = Counter()
        for one in (parse_spec(text, self.id) for text in texts):
            found["requirements"] += len(one.requirements)
            found["removed"] += len(one.removed)
            found["renamed"] += len(one.renamed)
            found["scenarios"] += len(one.scenarios)
        return found


@dataclass(frozen=True, slots=True)
class ImportedProject:
    """A whole project. What is archived goes by the folder it gets."""

    tool: str
    specs: tuple[ImportedSpec, ...] = ()
    changes: tuple[ImportedChange, ...] = ()
    archived: Mapping[str, ImportedChange] = field(default_factory=dict)
    notes: tuple[ImportNote, ...] = ()


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
