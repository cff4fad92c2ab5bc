"""One change's folder. The only place that writes STATE.yaml."""

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
from agentd.storage import LockHolder, RunLock, active_run, files, interrupted_run, is_lock_lost, run_lock, write_lock

if TYPE_CHECKING:
    from agentd.change.journal import Journal
    from agentd.domain import Event

STATE_FILE = "STATE.yaml"
_AROUND = ("clarifications.md", "CHALLENGE.md", "REVIEW.md")


@dataclass(frozen=True, slots=True)
class Change:
    project: Project
    id: str
    tree: str  # the work tree it lives in
    folder: Path
    run: str | None = None  # the run that works on it, as the journal names it

    def read(self) -> ChangeState:
        return read_state(self.folder)

    def update(
        self,
        step: Callable[[ChangeState], ChangeState],
        token: str | None = None,
        emit: "Callable[[Event], object] | None" = None,
    ) -> ChangeState:
        """Read, change and write STATE.yaml as one; nobody else writes in between.

        While a run is active only its own token may write. Transitions are told to `emit`, else to the journal.
        """
        with self.writing(token):
            old = self.read()
            new = step(old)
            if new == old:
                return old
            new = replace(new, updated_at=clock.now())
            files.write(self.folder / STATE_FILE, encode_state(new))
        self._tell(old, new, emit)
        return new

    @contextlib.contextmanager
    def writing(self, token: str | None = None) -> Iterator[None]:
        """The write lock. Every write to the folder happens in one."""
        with write_lock(self._lock("write")):
            if token and is_lock_lost(self._lock("run"), token):
                hint = f"agentd stop {self.id} ends whoever else has begun; then run the command again"
                raise StateError(f"the lock of this run was taken away ({self._lock('run')})", hint)
            holder = self.active_run()
            if holder and holder.token != token:
                hint = f"agentd wait {self.id}, or agentd stop {self.id}"
                raise Busy(f"{self.id} is being worked on by {holder}", hint)
            if token and not holder:
                raise Busy(f"the run that may write to {self.id} is over")
            files.remove_leftovers(self.folder / STATE_FILE)
            yield

    @contextlib.contextmanager
    def running(self, command: str) -> Iterator[RunLock]:
        """The run lock: one workflow per change."""
        with run_lock(self._lock("run"), command) as held:
            yield held

    def active_run(self) -> LockHolder | None:
        return active_run(self._lock("run"))

    def cut_off(self) -> LockHolder | None:
        """Whose run was killed, if the last one was."""
        return interrupted_run(self._lock("run"))

    @property
    def questions_file(self) -> Path:
        """The planner's questions, until all of them are answered."""
        return Path(self.project.in_room("questions", f"{self.id}.json"))

    def journal(self) -> "Journal":
        from agentd.change.journal import Journal  # late: events cost more than reading a change

        return Journal(Path(self.project.in_room("journal", f"{self.id}.jsonl")), self.id, self.run)

    def records(self, kind: str = "") -> tuple[ReviewRecord, ...]:
        """All of them, or those of one kind: challenge, review."""
        return read_records(self.folder, kind)

    def hashes(self) -> dict[str, str]:
        """The plan as a judge judges it: proposal, specs and tasks by short name."""
        found = {}
        for path in plan_files(self.folder):
            found[path.relative_to(self.folder).as_posix()] = document_hash(path)
        return found

    def _lock(self, kind: str) -> Path:
        return Path(self.project.in_room("locks", f"{self.id}.{kind}"))

    def _tell(self, old: ChangeState, new: ChangeState, emit: "Callable[[Event], object] | None") -> None:
        if len(new.history) == len(old.history):
            return
        from agentd.domain import events  # late: see above

        emit = emit or self.journal().append
        for moved in new.history[len(old.history) :]:
            emit(events.Transition(from_=moved.origin, to=moved.to, event=moved.event, by=moved.by, why=moved.why))


def encode_state(new: ChangeState) -> bytes:
    """STATE.yaml, read back before it may replace what is there: it must say the same."""
    text = state.render_state(new)
    try:
        data = text.encode()
        same = state.parse_state(text) == new
    except (UnicodeError, StateError) as error:
        raise UsageError(f"this cannot be kept in {STATE_FILE}: {error}", "leave out what is no plain text") from None
    if not same:
        raise Bug(f"{STATE_FILE} would not say what it should; nothing was written")
    return data


def read_state(folder: Path) -> ChangeState:
    path = folder / STATE_FILE
    try:
        return state.parse_state(files.read(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ChangeNotFound(f"{folder.name} has no {STATE_FILE} ({folder})") from None
    except UnicodeDecodeError:
        raise StateError(f"{path} is not UTF-8 text", f"git log -p -- {path}") from None
    except files.CannotRead as error:
        raise StateError(error.message, error.hint) from None
    except StateError as error:
        hint = error.hint or f"mend it by hand, or take an older one: git log -p -- {path}"
        raise StateError(f"{path}: {error.message}", hint) from None


def read_records(folder: Path, kind: str = "") -> tuple[ReviewRecord, ...]:
    """All rounds, challenges first, in order; or those of one kind."""
    found = (read_record(path) for path in record_files(folder))
    return sort_records(record for record in found if kind in ("", record.kind))


def record_files(folder: Path) -> list[Path]:
    return list((folder / "reviews").glob("*.yaml"))


def read_record(path: Path) -> ReviewRecord:
    name = f"reviews/{path.name}"
    if path.is_symlink() or not path.is_file():
        raise StateError(f"{name} is a link, or no file at all", f"git log -p -- {path}")
    try:
        return parse_record(files.read(path).decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise StateError(f"{name} is not UTF-8 text", f"git log -p -- {path}") from None
    except StateError as error:
        raise StateError(error.message, error.hint or f"mend it, or take it from git: git log -p -- {path}") from None


def sort_records(found: Iterable[ReviewRecord]) -> tuple[ReviewRecord, ...]:
    return tuple(sorted(found, key=lambda record: (record.kind != "challenge", record.round)))


def plan_files(folder: Path) -> list[Path]:
    """Proposal, specs in the proposal's order, tasks: those that are there, and no link among them."""
    named = _named_specs(folder / "proposal.md")
    specs = sorted(_specs(folder), key=lambda p: (named.get(p.stem, len(named)), p.name))
    return [path for path in (folder / "proposal.md", *specs, folder / "tasks.md") if is_regular_file(path)]


def readable_documents(folder: Path) -> list[str]:
    """What there is to read for a person, by short name and in the order of its making."""
    plan = [path.relative_to(folder).as_posix() for path in plan_files(folder)]
    first, *last = _AROUND
    before = [first] if is_regular_file(folder / first) else []
    return [*before, *plan, *(name for name in last if is_regular_file(folder / name))]


def linked_documents(folder: Path) -> list[str]:
    """Those that are links, or lie behind one: they lead anywhere, so nobody is shown them and no hash is theirs."""
    behind = (folder / "specs").glob("*.md") if (folder / "specs").is_symlink() else ()
    every = (folder / "proposal.md", *_specs(folder), folder / "tasks.md", *(folder / name for name in _AROUND))
    found = [*(path for path in every if path.is_symlink()), *sorted(behind)]
    return [path.relative_to(folder).as_posix() for path in found]


def is_regular_file(path: Path) -> bool:
    """A file itself: opening a pipe would wait for ever, and a link leads anywhere."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _specs(folder: Path) -> list[Path]:
    return [] if (folder / "specs").is_symlink() else list((folder / "specs").glob("*.md"))


def _named_specs(path: Path) -> dict[str, int]:
    if not is_regular_file(path):
        return {}
    try:
        impact = parse_proposal(decode_text(files.read(path), path.name)).impact
    except (FileNotFoundError, FormatInvalid):
        return {}  # what cannot be read gives no order
    return {spec.id: number for number, spec in enumerate(impact.affected_specs)}


def document_hash(path: Path) -> str:
    return files.hash_bytes(document_bytes(path))


def document_bytes(path: Path) -> bytes:
    """What is judged of a document; of proposal.md the text before its review blocks, which are not the planner's."""
    return reviewable_part(path.name, files.read(path))


def reviewable_part(name: str, data: bytes) -> bytes:
    """The same of what was read already."""
    if name != "proposal.md":
        return data
    return proposal_body(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
