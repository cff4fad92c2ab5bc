"""One change's folder: the only module that writes STATE.yaml."""

import contextlib
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentd.change import state
from agentd.change.state import ChangeState
from agentd.documents import ReviewRecord, decode_text, parse_proposal, parse_record, proposal_body
from agentd.domain import Bug, Busy, ChangeNotFound, FormatInvalid, StateError, UsageError, clock
from agentd.project import Project
from agentd.storage import (
    LockHolder,
    RunLock,
    active_run,
    files,
    interrupted_run,
    is_lock_lost,
    read_once,
    run_lock,
    write_lock,
)

if TYPE_CHECKING:
    from agentd.change.journal import Journal
    from agentd.domain import Event

STATE_FILE = "STATE.yaml"
_OTHER_DOCUMENTS = ("clarifications.md", "CHALLENGE.md", "REVIEW.md")


@dataclass(frozen=True, slots=True)
class Change:
    project: Project
    id: str
    tree: str  # the worktree it lives in
    folder: Path
    run: str | None = None  # the id of the run in progress, as in the journal

    def read(self) -> ChangeState:
        return read_state(self.folder)

    def update(
        self,
        step: Callable[[ChangeState], ChangeState],
        token: str | None = None,
        emit: "Callable[[Event], object] | None" = None,
    ) -> ChangeState:
        """Read, change and write STATE.yaml under the write lock.

        While a run is active, only its own token may write. Transitions go to `emit`, or to the journal by default.
        """
        with self.writing(token):
            old = self.read()
            new = step(old)
            if new == old:
                return old
            new = replace(new, updated_at=clock.now())
            files.write(self.folder / STATE_FILE, encode_state(new))
        self._emit_transitions(old, new, emit)
        return new

    @contextlib.contextmanager
    def writing(self, token: str | None = None) -> Iterator[None]:
        """Hold the write lock, which every write to the folder needs."""
        with write_lock(self._lock("write")):
            if token and is_lock_lost(self._lock("run"), token):
                hint = f"stop any other run with agentd stop {self.id}, then run the command again"
                raise StateError(f"this run lost its lock ({self._lock('run')})", hint)
            holder = self.active_run()
            if holder and holder.token != token:
                hint = f"agentd wait {self.id}, or agentd stop {self.id}"
                raise Busy(f"{self.id} is being worked on by {holder}", hint)
            if token and not holder:
                raise Busy(f"the run that could write to {self.id} has ended")
            files.remove_leftovers(self.folder / STATE_FILE)
            yield

    @contextlib.contextmanager
    def running(self, command: str) -> Iterator[RunLock]:
        """Hold the run lock: one workflow per change."""
        with run_lock(self._lock("run"), command) as held:
            yield held

    def active_run(self) -> LockHolder | None:
        return active_run(self._lock("run"))

    def interrupted_run(self) -> LockHolder | None:
        """Return the holder of the last run if it was killed."""
        return interrupted_run(self._lock("run"))

    @property
    def questions_file(self) -> Path:
        """The planner's questions; deleted when all are answered."""
        return Path(self.project.local_state_path("questions", f"{self.id}.json"))

    def journal(self) -> "Journal":
        from agentd.change.journal import Journal  # deferred: importing events takes longer than reading a change

        return Journal(Path(self.project.local_state_path("journal", f"{self.id}.jsonl")), self.id, self.run)

    def records(self, kind: str = "") -> tuple[ReviewRecord, ...]:
        """Return the review records, or those of one kind: challenge or review."""
        return read_records(self.folder, kind)

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the reviewable documents (proposal, specs, tasks) by short name."""
        return {path.relative_to(self.folder).as_posix(): document_hash(path) for path in plan_files(self.folder)}

    def _lock(self, kind: str) -> Path:
        return Path(self.project.local_state_path("locks", f"{self.id}.{kind}"))

    def _emit_transitions(self, old: ChangeState, new: ChangeState, emit: "Callable[[Event], object] | None") -> None:
        if len(new.history) == len(old.history):
            return
        from agentd.domain import events  # deferred: see above

        emit = emit or self.journal().append
        for moved in new.history[len(old.history) :]:
            emit(events.Transition(from_=moved.origin, to=moved.to, event=moved.event, by=moved.by, why=moved.why))


def encode_state(new: ChangeState) -> bytes:
    """Render STATE.yaml, and check that it reads back as the same state."""
    text = state.render_state(new)
    try:
        data = text.encode()
        is_same = state.parse_state(text) == new
    except (UnicodeError, StateError) as error:
        hint = "remove everything that is not plain text"
        raise UsageError(f"this cannot be stored in {STATE_FILE}: {error}", hint) from None
    if not is_same:
        raise Bug(f"{STATE_FILE} would not read back as the same state; nothing was written")
    return data


@read_once
def read_state(folder: Path) -> ChangeState:
    path = folder / STATE_FILE
    try:
        return state.parse_state(files.read(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ChangeNotFound(f"{folder.name} has no {STATE_FILE} ({folder})") from None
    except UnicodeDecodeError:
        raise StateError(f"{path} is not valid UTF-8", f"git log -p -- {path}") from None
    except files.CannotRead as error:
        raise StateError(error.message, error.hint) from None
    except StateError as error:
        hint = error.hint or f"fix it by hand, or restore an earlier version: git log -p -- {path}"
        raise StateError(f"{path}: {error.message}", hint) from None


def read_records(folder: Path, kind: str = "") -> tuple[ReviewRecord, ...]:
    """Return the records of all rounds (or of one kind) in order, challenges first."""
    records = (read_record(path) for path in record_files(folder))
    return sort_records(record for record in records if kind in ("", record.kind))


def record_files(folder: Path) -> list[Path]:
    return list((folder / "reviews").glob("*.yaml"))


def read_record(path: Path) -> ReviewRecord:
    name = f"reviews/{path.name}"
    if path.is_symlink() or not path.is_file():
        raise StateError(f"{name} is not a regular file", f"git log -p -- {path}")
    try:
        return parse_record(files.read(path).decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise StateError(f"{name} is not valid UTF-8", f"git log -p -- {path}") from None
    except StateError as error:
        hint = error.hint or f"fix it, or restore it from git: git log -p -- {path}"
        raise StateError(error.message, hint) from None


def sort_records(records: Iterable[ReviewRecord]) -> tuple[ReviewRecord, ...]:
    return tuple(sorted(records, key=lambda record: (record.kind != "challenge", record.round)))


def plan_files(folder: Path) -> list[Path]:
    """Return the existing plan documents, without links: proposal, specs in the proposal's order, tasks."""
    order = _spec_order(folder / "proposal.md")
    specs = sorted(_spec_files(folder), key=lambda path: (order.get(path.stem, len(order)), path.name))
    return [path for path in (folder / "proposal.md", *specs, folder / "tasks.md") if is_regular_file(path)]


def readable_documents(folder: Path) -> list[str]:
    """Return the short names of the documents for people, in the order they are written."""
    plan = [path.relative_to(folder).as_posix() for path in plan_files(folder)]
    first, *last = _OTHER_DOCUMENTS
    before = [first] if is_regular_file(folder / first) else []
    return [*before, *plan, *(name for name in last if is_regular_file(folder / name))]


def linked_documents(folder: Path) -> list[str]:
    """Return the documents that are links or behind one. They can point anywhere, so they are not shown or hashed."""
    behind = (folder / "specs").glob("*.md") if (folder / "specs").is_symlink() else ()
    others = (folder / name for name in _OTHER_DOCUMENTS)
    documents = (folder / "proposal.md", *_spec_files(folder), folder / "tasks.md", *others)
    linked = [*(path for path in documents if path.is_symlink()), *sorted(behind)]
    return [path.relative_to(folder).as_posix() for path in linked]


def is_regular_file(path: Path) -> bool:
    """Return whether this is a file, not a pipe (opening one would block) or a link (it can point anywhere)."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _spec_files(folder: Path) -> list[Path]:
    return [] if (folder / "specs").is_symlink() else list((folder / "specs").glob("*.md"))


def _spec_order(path: Path) -> dict[str, int]:
    if not is_regular_file(path):
        return {}
    try:
        impact = parse_proposal(decode_text(files.read(path), path.name)).impact
    except (FileNotFoundError, FormatInvalid):
        return {}  # an unreadable proposal defines no order
    return {spec.id: number for number, spec in enumerate(impact.affected_specs)}


def document_hash(path: Path) -> str:
    return files.hash_bytes(document_bytes(path))


def document_bytes(path: Path) -> bytes:
    """Return the reviewable part of a document: of proposal.md, the text before agentd's review blocks."""
    return reviewable_part(path.name, files.read(path))


def reviewable_part(name: str, data: bytes) -> bytes:
    """Return the reviewable part of a document that has been read already."""
    if name != "proposal.md":
        return data
    return proposal_body(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
