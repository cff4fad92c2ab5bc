"""Writing STATE.yaml: many processes, killed writers, full disks, and a run that is under way."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentd.change import lifecycle, state
from agentd.change.folder import Change, document_hash
from agentd.change.locator import ChangeLocator
from agentd.domain.errors import Busy, StateError, UsageError
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Phase
from agentd.project.layout import find_project
from agentd.storage import files
from exhaustive import Exhaustive
from plans import EXAMPLE
from scenario import Scenario

ADD_CALL = """
import sys
from agentd.change import open_change
from agentd.change.state import CallRecord
from agentd.project import find_project
from agentd.storage import locks

locks._WRITE_TIMEOUT = 600  # fifty at once
change = open_change(find_project(), "add-oauth")
number = int(sys.argv[1])
call = CallRecord(f"step-{number}", "codex", "challenger", "m", number, 2, 0, 1, 0.01, "2026-01-19T10:30:00Z", None)
change.update(lambda old: old.with_call(call))
"""


@pytest.fixture
def change(project: Scenario) -> Change:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def test_fifty_concurrent_processes_each_add_a_call(project: Scenario, change: Change, exhaustive: Exhaustive) -> None:
    count = exhaustive.size(50, 8)
    started = [
        subprocess.Popen([sys.executable, "-c", ADD_CALL, str(number)], cwd=project.root, env=project.env)
        for number in range(count)
    ]
    assert [process.wait() for process in started] == [0] * count
    after = change.read()
    assert sorted(call.tokens_in or 0 for call in after.llm_calls) == list(range(count))
    text = (change.folder / "STATE.yaml").read_text()
    assert f"total_cost: {count / 100}\n" in text
    assert f"total_tokens_in: {sum(range(count))}\ntotal_tokens_out: {2 * count}\n" in text


WRITE_FOR_EVER = """
from agentd.change import open_change
from agentd.change.state import CallRecord
from agentd.project import find_project
from agentd.storage import locks

change = open_change(find_project(), "add-oauth")
print("ready", flush=True)
for number in range(200):
    call = CallRecord(f"step-{number}", None, None, None, number, 1, 0, 1, 0.01, "", None)
    change.update(lambda old: old.with_call(call))
    print("written", flush=True)
"""


def test_writer_killed_at_any_moment_leaves_a_whole_file(project: Scenario, change: Change) -> None:
    seen = 0
    for count, part in ((0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 0.2), (5, 0.5), (6, 0.8), (7, 0.4), (8, 0.7)):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOR_EVER], cwd=project.root, env=project.env, stdout=subprocess.PIPE
        )
        assert writer.stdout and writer.stdout.readline() == b"ready\n"
        start = time.monotonic()
        assert [writer.stdout.readline() for _ in range(count)] == [b"written\n"] * count
        time.sleep(part * (time.monotonic() - start) / max(count, 1))  # into the next write
        os.kill(writer.pid, signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        calls = change.read().llm_calls  # whole, or this raises
        assert len(calls) >= seen
        assert [call.step for call in calls[seen:]] == [f"step-{n}" for n in range(len(calls) - seen)]
        seen = len(calls)
    assert seen > 20
    change.update(lambda old: old.with_call(old.llm_calls[0]))
    assert sorted(path.name for path in change.folder.iterdir()) == ["STATE.yaml"], "leftovers are swept"


def test_full_disk_keeps_the_old_file_and_is_reported(change: Change) -> None:
    before = (change.folder / "STATE.yaml").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.raises(files.CannotWrite, match=r"cannot write .*STATE"):
            change.update(lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="x", at="t"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (change.folder / "STATE.yaml").read_bytes() == before
    assert [path.name for path in change.folder.iterdir()] == ["STATE.yaml"]


def test_update_without_changes_writes_nothing(change: Change) -> None:
    before = (change.folder / "STATE.yaml").stat()
    change.update(lambda old: old)
    assert (change.folder / "STATE.yaml").stat().st_ino == before.st_ino


def test_file_mode_is_preserved(change: Change) -> None:
    path = change.folder / "STATE.yaml"
    path.chmod(0o640)
    change.update(lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="x", at="t"))
    assert path.stat().st_mode & 0o777 == 0o640


HOLD_RUN = """
import sys
from agentd.change import open_change
from agentd.project import find_project

with open_change(find_project(), "add-oauth").running("agentd plan add-oauth") as holder:
    print(holder.token, flush=True)
    sys.stdin.read()
"""


def test_only_the_active_run_may_write(project: Scenario, change: Change) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_RUN],
        cwd=project.root,
        env=project.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout and holder.stdin
    token = holder.stdout.readline().strip()
    named = f"'agentd plan add-oauth' .process {holder.pid}, since "
    with pytest.raises(Busy, match=named), change.running("agentd plan add-oauth"):
        pass
    with pytest.raises(Busy, match=named):
        change.update(lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="x", at="t"))
    after = change.update(
        lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="x", at="t"), token
    )
    assert after.phase is Phase.PROPOSED
    holder.kill()
    holder.wait()
    with change.running("agentd plan add-oauth"):  # a killed holder holds nothing
        assert change.active_run() is not None
    assert change.active_run() is None


def test_every_transition_is_recorded_in_the_journal(change: Change) -> None:
    change.update(lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="all there", at="t"))
    [entry_], _ = change.journal().since(0)
    assert entry_.event.data() == {
        "from": "drafting",
        "to": "proposed",
        "event": "plan-generated",
        "by": "agentd",
        "why": "all there",
    }


def test_broken_state_error_names_the_file_and_a_hint(change: Change) -> None:
    path = change.folder / "STATE.yaml"
    path.write_text("change_id: [")
    with pytest.raises(StateError, match=f"{path}: line 1") as caught:
        change.read()
    assert caught.value.hint and "git log -p" in caught.value.hint
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StateError, match="not valid UTF-8"):
        change.read()


def test_document_hashes_match_the_example(tmp_path: Path) -> None:
    example = state.parse_state((EXAMPLE / "STATE.yaml").read_text())
    for name, expected in example.history[-1].hashes.items():
        assert document_hash(EXAMPLE / name) == expected, name


def test_review_block_does_not_change_the_proposal_hash(tmp_path: Path) -> None:
    text = (EXAMPLE / "proposal.md").read_text()
    bare = tmp_path / "proposal.md"
    bare.write_text(text[: text.index("<review ")])
    assert document_hash(bare) == document_hash(EXAMPLE / "proposal.md")
    bare.write_text(text.replace("GitHub account", "GitHub or other account"))
    assert document_hash(bare) != document_hash(EXAMPLE / "proposal.md")


def test_plan_is_hashed_in_proposal_order(project: Scenario, change: Change) -> None:
    for name in ("proposal.md", "tasks.md", "specs/user-model.md", "specs/auth-flow.md", "specs/api-endpoints.md"):
        target = change.folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((EXAMPLE / name).read_bytes())
    example = state.parse_state((EXAMPLE / "STATE.yaml").read_text())
    assert list(change.hashes().items()) == list(example.history[-1].hashes.items())


def test_interrupted_drop_is_finished_by_a_second_drop(project: Scenario, change: Change) -> None:
    change.update(
        lambda old: old.with_transition(TransitionEvent.DROPPED, by="person:dev", why="", at="t")
    )  # then the power went
    assert ChangeLocator(find_project()).find("add-oauth").summary.phase is Phase.DROPPED
    target = lifecycle.drop_change(change, "person:dev", "")
    assert not change.folder.exists()
    assert len(state.parse_state((target / "STATE.yaml").read_text()).history) == 1


@pytest.mark.parametrize("word", ["caf\udce9", "\ud800"])
def test_text_that_cannot_be_read_back_is_not_written(change: Change, word: str) -> None:
    before = (change.folder / "STATE.yaml").read_bytes()
    with pytest.raises(UsageError, match="cannot be stored in STATE"):
        change.update(lambda old: old.with_transition(TransitionEvent.DROPPED, by="person:dev", why=word, at="t"))
    assert (change.folder / "STATE.yaml").read_bytes() == before


def test_user_name_in_another_encoding_is_tolerated(project: Scenario, change: Change) -> None:
    with open(project.home / ".gitconfig", "ab") as file:
        file.write(b"[user]\n\tname = Jos\xe9\n")
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    (folder,) = (project.root / "agentd/archive").iterdir()
    assert state.parse_state((folder / "STATE.yaml").read_text()).history[0].by == "person:Jos\ufffd"
