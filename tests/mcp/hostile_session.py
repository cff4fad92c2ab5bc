"""A staged change under attack: one live session, all that lies around it, and what must hold after each call."""

import contextlib
import hashlib
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client

from agentd.documents import clarifications, proposal, review_blocks, spec, tasks
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_scope import WRITTEN_FILE, run_folder
from agentd.project.layout import find_project
from mcp_session import Staged, connected, staged, text_of
from plans import EXAMPLE
from scenario import Scenario

SECRET = "TOP-SECRET-WORDS"
NEW = "something-new"  # the id of a change that is not there yet
DOCUMENTS = (
    "proposal.md",
    "tasks.md",
    "clarifications.md",
    "specs/user-model.md",
    "specs/auth-flow.md",
    "specs/api-endpoints.md",
)
# a look takes locks and refreshes the index; a snapshot of the code is objects of git
_OWN = re.compile(r"notes-service/\.git/(?:agentd/(?:locks|index)|objects)(?:[/.].*)?")


@cache
def codes() -> frozenset[str]:
    """The codes of the contract's page: its table, its line about writes, and the errors of each tool."""
    text = (EXAMPLE / "tools.md").read_text()
    common = text.partition("\n## ask_questions")[0]
    found = set(re.findall(r"^\| `([a-z-]+)` \|", common, re.MULTILINE))
    for line in re.findall(r"^(?:- \*\*Errors\*\*: |Every write can also answer )(.*)$", text, re.MULTILINE):
        found |= set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`(?= \(|;|\.|, also)", line))
    return frozenset(found | {"failed"})


@dataclass(frozen=True)
class Answer:
    text: str
    is_error: bool

    @property
    def code(self) -> str:
        return self.text.partition(":")[0] if self.is_error else "ok"


@dataclass(frozen=True)
class Plan:
    """The documents of the change, as agentd reads them."""

    proposal: proposal.Proposal
    tasks: tasks.TaskList
    clarifications: clarifications.Clarifications
    specs: Mapping[str, spec.Spec]


@dataclass
class HostileSession:
    """Rows share the session; after each one the change is put back as it was, and read anew."""

    room: Path
    on: Staged
    portal: BlockingPortal
    client: Client
    run: Path
    kept: Path
    touched: bool = True  # since it was last put back
    broken: set[str] = field(default_factory=set)  # documents that a row has spoilt on disk itself

    @property
    def folder(self) -> Path:
        return self.on.change.folder

    def send(self, tool: str, arguments: Mapping[str, Any] | None) -> Answer:
        """One call, nothing looked at but the form of its answer."""
        sent = None if arguments is None else dict(arguments)
        result = self.portal.call(self.client.call_tool, tool, sent)
        answer = Answer(text_of(result), bool(result.is_error))
        check_answer(answer)
        return answer

    def strike(self, tool: str, arguments: Mapping[str, Any] | None) -> Answer:
        """One hostile call, and everything that must hold after it."""
        before, plan = snapshot(self.room), self.plan()
        answer = self.send(tool, arguments)
        changed = differences(before, snapshot(self.room))
        self.touched |= bool(changed)
        assert not (answer.is_error and changed), f"refused, and yet: {changed}"
        strangers = [path for path in changed if not self._may_change(path)]
        assert not strangers, f"written where nothing may be written: {strangers}"
        after = self.plan()
        assert [_facts(one) for one in after.proposal.reviews] == [_facts(one) for one in plan.proposal.reviews]
        if not self.broken:
            assert {one.id: one.status for one in after.tasks.tasks if plan.tasks.get(one.id)} == {
                one.id: one.status for one in plan.tasks.tasks if after.tasks.get(one.id)
            }
        self.is_alive()
        return answer

    def refused(self, calls: Iterable[tuple[str, Mapping[str, Any] | None]]) -> list[str]:
        """Hostile calls one after another, all of them refused, and after them everything is as it was: the codes."""
        before = snapshot(self.room)
        answers = [self.send(tool, arguments) for tool, arguments in calls]
        assert [answer.text for answer in answers if not answer.is_error] == []
        assert differences(before, snapshot(self.room)) == []
        self.is_alive()
        return [answer.code for answer in answers]

    def is_alive(self) -> None:
        assert self.send("read_file", {"path": "README.md"}) == Answer("notes\n", False)

    def plan(self) -> Plan:
        """Every document, read by agentd's own parsers."""

        def text(name: str) -> str:
            folder = self.kept / "change" if name in self.broken else self.folder
            return (folder / name).read_bytes().decode()

        names = [f"specs/{path.name}" for path in sorted((self.folder / "specs").glob("*.md"))]
        return Plan(
            _proposal(text("proposal.md")),
            _tasks(text("tasks.md")),
            _clarifications(text("clarifications.md")),
            {Path(name).stem: _spec(text(name), name) for name in names if name not in self.broken},
        )

    def restore(self) -> None:
        if not self.touched:
            return
        self.touched = False
        self.broken.clear()
        for there, kept in ((self.folder, self.kept / "change"), (self.run, self.kept / "run")):
            _remove(there)
            shutil.copytree(kept, there)
        _remove(self.on.box.root / "agentd" / "changes" / NEW)
        for name in DOCUMENTS:
            self.send("read_file", {"path": name, **self.named})

    @property
    def named(self) -> dict[str, str]:
        """What an unbound server must be told."""
        return {"change_id": self.on.change.id} if self.on.stage is Stage.UNBOUND else {}

    def _may_change(self, path: str) -> bool:
        run = self.run.relative_to(self.room).as_posix()
        own = self.folder.relative_to(self.room).as_posix()
        new = f"notes-service/agentd/changes/{NEW}"
        by_stage = {
            Stage.PLAN: rf"{own}/(?:proposal\.md|tasks\.md|specs|specs/[a-z0-9-]+\.md)|{run}/answers\.json",
            Stage.IMPLEMENT: rf"{run}/answers\.json",
            Stage.CLARIFY: rf"{run}/questions\.json",
            Stage.CHALLENGE: rf"{run}/report\.json",
            Stage.REVIEW: rf"{run}/report\.json",
            Stage.UNBOUND: rf"{new}(?:/clarifications\.md)?",
        }
        return re.fullmatch(by_stage[self.on.stage], path) is not None


_proposal = lru_cache(100)(proposal.parse_proposal)
_tasks = lru_cache(100)(tasks.parse_tasks)
_clarifications = lru_cache(100)(clarifications.parse_clarifications)
_spec = lru_cache(100)(spec.parse_spec)


def check_answer(answer: Answer) -> None:
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text and 'File "' not in answer.text
    if answer.is_error:
        assert len(answer.text.splitlines()) == 1, answer.text
        assert re.fullmatch(r"[a-z-]+: \S.*; \S.*", answer.text), answer.text
        assert answer.code in codes(), answer.text
        assert "has a bug" not in answer.text, answer.text
        assert len(answer.text) < 5000


def _facts(block: review_blocks.ReviewBlock) -> tuple[str, int, str, str]:
    return block.status, block.iteration, block.reviewer, block.text


def snapshot(room: Path) -> dict[str, str]:
    """Every path of the room with what it is: rights, size and hash."""
    found: dict[str, str] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(room / folder) as entries:
            for entry in entries:
                shown = f"{folder}/{entry.name}".lstrip("/")
                if _OWN.fullmatch(shown):
                    continue
                seen = entry.stat(follow_symlinks=False)
                found[shown] = f"{stat.filemode(seen.st_mode)} {_content(entry, seen)}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(shown)
    return found


def _content(entry: os.DirEntry[str], seen: os.stat_result) -> str:
    if entry.is_symlink():
        return os.readlink(entry.path)
    if not stat.S_ISREG(seen.st_mode):
        return ""
    return f"{seen.st_size} {_hash(entry.path, seen.st_ino, seen.st_ctime_ns)}"


@lru_cache(10_000)
def _hash(path: str, _inode: int, _changed: int) -> str:
    """The kernel gives a file a new time of change whenever somebody writes to it."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """But for the server's own note of what it is about to write."""
    paths = {path for path in before.keys() | after.keys() if not path.endswith(f"/{WRITTEN_FILE}")}
    return sorted(path for path in paths if before.get(path) != after.get(path))


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def make_project(room: Path) -> Scenario:
    """A project among things that are nobody's business."""
    box = Scenario(room / "notes-service", room / "home")
    box.write("README.md", "notes\n")
    box.write("agentd/config.toml", "schema_version = 1\n")
    box.write(".gitignore", ".env\n")
    box.commit("start")
    (room / "beside").mkdir()
    (room / "beside" / "secret.txt").write_text(SECRET)
    for name in (".env", ".env.local", "deep/.ENV.production", "agentd/changes/other/proposal.md"):
        box.write(name, SECRET)
    box.write("picture.bin").write_bytes(b"\x89PNG\0\xff")
    box.write("latin.txt").write_bytes("naïve".encode("latin-1"))
    links = {
        "link-out": "../beside",
        "link-file": "../beside/secret.txt",
        "link-absolute": str(room / "beside" / "secret.txt"),
        "link-git": ".git",
        "link-env": ".env",
        "link-other": "agentd/changes/other",
        "link-loop": "link-loop",
        "link-device": "/dev/zero",
        "link-proc": "/proc/self/environ",
        "link-proposal.md": "agentd/changes/add-oauth/proposal.md",
    }
    for name, target in links.items():
        (box.root / name).symlink_to(target)
    os.mkfifo(box.root / "pipe")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as one, contextlib.chdir(box.root):
        one.bind("socket")
    return box


@contextmanager
def sessions(base: Path) -> Iterator[Callable[[Stage, str], HostileSession]]:
    """Makes each session when it is first asked for."""
    made: dict[tuple[Stage, str], HostileSession] = {}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        portal = stack.enter_context(start_blocking_portal())

        def of(stage: Stage, transport: str) -> HostileSession:
            if (stage, transport) not in made:
                room = base / f"{stage}-{transport}"
                box = make_project(room / "room")
                for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
                    patch.setenv(name, box.env[name])
                with contextlib.chdir(box.root):
                    on = stack.enter_context(staged(box, stage))
                    client = stack.enter_context(portal.wrap_async_context_manager(connected(on, transport)))
                    run = run_folder(find_project(), on.token)
                shutil.copytree(on.change.folder, room / "kept" / "change")
                shutil.copytree(run, room / "kept" / "run")
                made[stage, transport] = HostileSession(room / "room", on, portal, client, run, room / "kept")
            made[stage, transport].restore()
            return made[stage, transport]

        yield of
