"""Another tool's project: its files, what they become here, and writing the result."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from agentd.change import (
    STATE_FILE,
    BaseSnapshot,
    ChangeLocator,
    ChangeState,
    archive_lock,
    archive_record_path,
    current_location,
    encode_state,
    format_names,
)
from agentd.documents import parse_spec
from agentd.domain import Phase, Refusal, TransitionEvent, clock
from agentd.project import Project, git
from agentd.storage import Operation, WriteFile, files, run_transaction

KEPT = "imported"
"""The folder in a change for original files that are not carried over whole, byte for byte."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something that could not be mapped, or not exactly; line 0 means the whole file.

    `alike` is the same for all notes of a kind whose messages differ in detail.
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
    """One change: `files` by path in its folder; `bases` are the main specs it starts from, None for a new one."""

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
        """Count what its specs contain."""
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
    """A whole project; archived changes by the name of their new folder."""

    tool: str
    specs: tuple[ImportedSpec, ...] = ()
    changes: tuple[ImportedChange, ...] = ()
    archived: Mapping[str, ImportedChange] = field(default_factory=dict)
    notes: tuple[ImportNote, ...] = ()


LARGEST = 1024 * 1024  # bytes; a larger file is not a document
_DEEPEST = 32  # nesting levels of folders


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Files by path from the project's root, with `/`; `notes` say what was left out."""

    files: Mapping[str, bytes]
    notes: tuple[ImportNote, ...] = ()
    is_file: Callable[[str], bool] = lambda path: False
    """Whether the project has that file, of this tool or not."""


def read_source_tree(root: Path, *folders: str) -> SourceTree:
    """Read all files below these folders; a missing folder is empty."""
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
        notes.append(ImportNote(name, 0, f"is more than {_DEEPEST} folders deep and was not read"))
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
        return "is not a regular file"
    if status.st_size > LARGEST:
        return f"has {status.st_size} bytes; more than {LARGEST} are not read"
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    return None


def refuse_existing(project: Project, moving: ImportedProject) -> None:
    """Raise if anything to be imported exists already."""
    taken = ChangeLocator(project).taken_ids()
    there = [f"agentd/specs/{one.id}.md" for one in moving.specs]
    there += [f"agentd/archive/{folder}" for folder in moving.archived]
    found = [path for path in there if (project.root / path).exists()]
    found += [f"the change {one.id}" for one in (*moving.changes, *moving.archived.values()) if one.id in taken]
    if found:
        words = f"{format_names(found)} already exist{'s' if len(found) == 1 else ''}"
        raise Refusal(f"{words}; nothing was written", "move or rename them, then run the command again")


def write_import(project: Project, moving: ImportedProject) -> None:
    with archive_lock(project):
        refuse_existing(project, moving)
        title = f"the import from {moving.tool}"
        record = archive_record_path(project, f"import-{moving.tool.lower().replace(' ', '-')}")
        run_transaction(record, project.root, title, import_operations(project, moving))
    places = ChangeLocator(project)
    for one in moving.changes:
        places.remember(project.tree, one.id)


def import_operations(project: Project, moving: ImportedProject) -> list[Operation]:
    home = PurePath("agentd")
    found = [(home / "specs" / f"{one.id}.md", one.text.encode()) for one in moving.specs]
    for one in moving.changes:
        folder = home / "changes" / one.id
        found += [(folder / path, data) for path, data in one.files.items()]
        bases = {f"base/{id_}.md": text for id_, text in one.bases.items() if text is not None}
        found += [(folder / path, text.encode()) for path, text in bases.items()]
        found.append((folder / STATE_FILE, encode_state(_state(project, moving.tool, one))))
    for name, one in moving.archived.items():
        folder = home / "archive" / name
        found += [(folder / path, data) for path, data in one.files.items()]
        found.append((folder / STATE_FILE, encode_state(_ended(moving.tool, one))))
    return [WriteFile(path, data, seen="") for path, data in found]


def _state(project: Project, tool: str, one: ImportedChange) -> ChangeState:
    """Return the state. A plan complete enough to be judged is proposed; `agentd plan` validates and challenges it."""
    specs = {id_: files.hash_bytes(text.encode()) if text is not None else None for id_, text in one.bases.items()}
    base = BaseSnapshot(git.head_commit(project.tree), specs=specs)
    state = ChangeState(
        one.id,
        one.description,
        one.created,
        clock.now(),
        git=current_location(project),
        base=base,
        extra=_origin(tool, one),
    )
    if one.phase is Phase.DRAFTING:
        return state
    plan = {path: data for path, data in one.files.items() if path in ("proposal.md", "tasks.md")}
    plan |= {path: data for path, data in one.files.items() if path.startswith("specs/")}
    hashes = {path: files.hash_bytes(data) for path, data in plan.items()}
    return state.with_transition(
        TransitionEvent.PLAN_GENERATED, by="agentd", why=f"imported from {tool}", at=clock.now(), hashes=hashes
    )


def _ended(tool: str, one: ImportedChange) -> ChangeState:
    """Return the state of a change archived elsewhere; its history is empty, as no event of ours archived it."""
    state = ChangeState(one.id, one.description, one.created, one.created, extra=_origin(tool, one))
    return replace(state, phase=Phase.ARCHIVED)


def _origin(tool: str, one: ImportedChange) -> dict[str, str]:
    return {"imported_from": f"{tool}: {one.source}"}
