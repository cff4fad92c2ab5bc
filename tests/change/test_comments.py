"""Comments of people: kept in the change's folder, while a run is active and whatever its agent does meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.change import comment_store, lifecycle
from agentd.change.folder import Change
from agentd.documents.comments import COMMENTS_FILE, CommentSeverity, CommentState
from agentd.domain import events
from agentd.domain.errors import ChangeNotFound, Refusal, StateError, UsageError
from agentd.guard.call_record import GuardResult
from agentd.guard.guard import Guard, plan_write_rule
from agentd.project.layout import find_project
from agentd.storage import files
from guard_project import OWN, GuardProject, finish, let_files_age, make_guard_project
from scenario import Scenario

ANN, BOB = "person:ann", "person:bob"
TEXT = "# Proposal\n\nPeople are users.\n"


@pytest.fixture
def yard(project: Scenario, tmp_path: Path) -> GuardProject:
    yard = make_guard_project(project, tmp_path)
    project.write(f"{OWN}/proposal.md", TEXT)
    project.commit("a proposal")
    return yard


@pytest.fixture
def change(yard: GuardProject) -> Change:
    return yard.change


def say(change: Change, text: str = "Who?", by: str = ANN, severity: CommentSeverity = CommentSeverity.SHOULD) -> str:
    return comment_store.add_comment(
        change, comment_store.comment_anchor(change, "proposal.md", "users"), text, by, severity
    ).id


def texts(change: Change) -> list[list[str]]:
    return [[one.text for one in comment.thread] for comment in comment_store.read_comments(change)]


def test_comment_can_be_added_edited_answered_resolved_and_reopened(change: Change) -> None:
    assert comment_store.read_comments(change) == () and not (change.folder / COMMENTS_FILE).exists()
    assert say(change, "", ANN, CommentSeverity.BLOCKER) == "K1"
    comment_store.edit_comment(change, "K1", 0, "Who", ANN)
    comment_store.edit_comment(change, "K1", 0, "Who?", ANN)
    comment_store.reply_to_comment(change, "K1", "Everybody.", BOB)
    comment_store.edit_comment(change, "K1", 1, "Everyone.", BOB)
    (one,) = comment_store.read_comments(change)
    assert (one.severity, one.state, one.document, one.anchor.quote) == ("blocker", "open", "proposal.md", "users")
    assert one.made == change.hashes()["proposal.md"] and one.anchor.heading == ("Proposal",)
    assert [(said.by, said.text) for said in one.thread] == [(ANN, "Who?"), (BOB, "Everyone.")]
    assert comment_store.resolve_comment(change, "K1", BOB).state is CommentState.RESOLVED
    assert comment_store.read_comments(change)[0].resolved_by == BOB
    assert comment_store.reopen_comment(change, "K1", ANN).state is CommentState.OPEN
    assert comment_store.read_comments(change)[0].resolved_by is None


def test_comment_ids_are_never_reused(change: Change) -> None:
    assert [say(change) for _ in range(3)] == ["K1", "K2", "K3"]
    (change.folder / COMMENTS_FILE).write_text("[]\n")
    assert say(change) == "K4"
    (change.folder / COMMENTS_FILE).unlink()
    assert say(change) == "K5"
    Path(change.project.local_state_path("comments", "add-oauth.last")).unlink()
    assert say(change) == "K6", "what the file says counts too"


def test_invalid_or_unauthorized_comment_actions_are_refused(change: Change) -> None:
    say(change)
    before = (change.folder / COMMENTS_FILE).read_bytes()
    with pytest.raises(Refusal, match="this entry of K1 was written by person:ann"):
        comment_store.edit_comment(change, "K1", 0, "Mine.", BOB)
    with pytest.raises(Refusal, match="K1 has no entry 1"):
        comment_store.edit_comment(change, "K1", 1, "Mine.", BOB)
    with pytest.raises(Refusal, match="add-oauth has no comment K9"):
        comment_store.reply_to_comment(change, "K9", "Mine.", BOB)
    for who in ("agent:claude", "person:", "ann"):
        with pytest.raises(UsageError, match="only a person can comment"):
            say(change, by=who)
        with pytest.raises(UsageError, match="only a person can comment"):
            comment_store.resolve_comment(change, "K1", who)
    with pytest.raises(UsageError, match="can have at most 20000 characters"):
        say(change, "x" * 20_001)
    with pytest.raises(UsageError, match="cannot be stored"):
        say(change, "half a character: \ud800")
    with pytest.raises(Refusal, match=r"proposal\.md does not contain"):
        comment_store.comment_anchor(change, "proposal.md", "never written")
    for name in ("STATE.yaml", "../other/proposal.md", "specs/none.md"):
        with pytest.raises(UsageError, match="has no document"):
            comment_store.comment_anchor(change, name, "users")
    assert (change.folder / COMMENTS_FILE).read_bytes() == before


def test_invalid_comments_file_is_reported_with_line_and_left_unchanged(change: Change) -> None:
    say(change)
    path = change.folder / COMMENTS_FILE
    good = path.read_bytes()
    line = good.count(b"\n") + 1
    for bad in (good + b"- {\n", good + b"\xff\n"):
        path.write_bytes(bad)
        with pytest.raises(StateError, match=f"comments.yaml line {line}") as error:
            say(change)
        assert "git log -p" in error.value.hint and path.read_bytes() == bad
    path.unlink()
    path.symlink_to("proposal.md")
    with pytest.raises(StateError, match="is not a regular file"):
        comment_store.read_comments(change)


def test_comment_does_not_recreate_a_removed_change(change: Change) -> None:
    anchor = comment_store.comment_anchor(change, "proposal.md", "users")
    files.move(change.folder, change.folder.with_name("moved"))
    with pytest.raises((ChangeNotFound, FileNotFoundError)):
        comment_store.add_comment(change, anchor, "Who?", ANN)
    with pytest.raises(ChangeNotFound):
        comment_store.resolve_comment(change, "K1", ANN)
    assert not change.folder.exists()


WRITER = """
import sys
from agentd.change import comment_store, open_change
from agentd.project import find_project
from agentd.storage import locks
locks._WRITE_TIMEOUT = 600
change = open_change(find_project(), "add-oauth")
for number in range(15):
    anchor = comment_store.comment_anchor(change, "proposal.md", "users")
    made = comment_store.add_comment(change, anchor, f"{sys.argv[1]} {number}", "person:ann")
    comment_store.edit_comment(change, made.id, 0, f"{sys.argv[1]} {number}!", "person:ann")
    comment_store.reply_to_comment(change, "K1", f"{sys.argv[1]} {number}", "person:ann")
"""


def test_concurrent_comments_during_a_run_are_all_kept(yard: GuardProject, change: Change) -> None:
    say(change)
    with change.running("agentd plan add-oauth"):
        argv = [sys.executable, "-c", WRITER]
        writers = [subprocess.Popen([*argv, name], cwd=yard.box.root, env=yard.box.env) for name in "abcd"]
        assert [one.wait() for one in writers] == [0] * 4
    said = texts(change)
    wanted = sorted(f"{name} {number}" for name in "abcd" for number in range(15))
    assert sorted(said[0][1:]) == wanted and sorted(one[0] for one in said[1:]) == [f"{one}!" for one in wanted]
    assert len({one.id for one in comment_store.read_comments(change)}) == 61


# ---- the guard


def plan_guard(yard: GuardProject) -> Guard:
    return yard.guard(may_edit=plan_write_rule("add-oauth"))


@pytest.mark.parametrize("is_first", [True, False])
def test_comment_added_during_a_call_is_kept_and_not_reported(
    yard: GuardProject, change: Change, is_first: bool
) -> None:
    if not is_first:
        say(change, "Before.")
    with change.running("agentd plan add-oauth"):
        guard = plan_guard(yard)
        say(change, "Meanwhile.")
        assert finish(guard) == GuardResult()
    assert texts(change)[-1] == ["Meanwhile."] and len(texts(change)) == 2 - is_first


FORGED = f"Path('{OWN}/{COMMENTS_FILE}').write_text('[]\\n')"
DELETED = f"Path('{OWN}/{COMMENTS_FILE}').unlink()"


@pytest.mark.parametrize(("code", "what"), [(FORGED, "changed"), (DELETED, "deleted")])
def test_comments_changed_by_an_agent_are_restored_and_reported(
    yard: GuardProject, change: Change, code: str, what: str
) -> None:
    say(change)
    before = (change.folder / COMMENTS_FILE).read_bytes()
    watched = yard.watched(code, may_edit=plan_write_rule("add-oauth"))
    assert [(one.path, one.what) for one in watched.put_back] == [(f"{OWN}/{COMMENTS_FILE}", what)]
    assert (change.folder / COMMENTS_FILE).read_bytes() == before


def test_comments_created_by_an_agent_are_removed(yard: GuardProject, change: Change) -> None:
    (trespass,) = yard.watched(FORGED, may_edit=plan_write_rule("add-oauth")).put_back
    assert (trespass.path, trespass.what) == (f"{OWN}/{COMMENTS_FILE}", "created")
    assert not (change.folder / COMMENTS_FILE).exists() and yard.kept(trespass).read_text() == "[]\n"


@pytest.mark.parametrize("code", [FORGED, DELETED])
def test_comment_added_during_a_call_survives_later_tampering(yard: GuardProject, change: Change, code: str) -> None:
    say(change, "Before.")
    with change.running("agentd plan add-oauth"):
        guard = plan_guard(yard)
        say(change, "Meanwhile.")
        yard.agent(code)
        assert [one.path for one in finish(guard).put_back] == [f"{OWN}/{COMMENTS_FILE}"]
    assert texts(change) == [["Before."], ["Meanwhile."]]


def test_older_comments_version_restored_by_an_agent_is_detected(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    older = (change.folder / COMMENTS_FILE).read_text()
    with change.running("agentd plan add-oauth"):
        guard = plan_guard(yard)
        say(change, "Meanwhile.")
        yard.agent(f"Path('{OWN}/{COMMENTS_FILE}').write_text({older!r})")
        assert [one.path for one in finish(guard).put_back] == [f"{OWN}/{COMMENTS_FILE}"]
    assert texts(change) == [["Before."], ["Meanwhile."]]


def test_agents_edit_is_not_adopted_by_a_later_comment(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    forged = (change.folder / COMMENTS_FILE).read_text().replace("Before.", "All is well.")
    with change.running("agentd plan add-oauth"):
        guard = plan_guard(yard)
        yard.agent(f"Path('{OWN}/{COMMENTS_FILE}').write_text({forged!r})")
        say(change, "Meanwhile.")
        assert finish(guard) == GuardResult()
    assert texts(change) == [["Before."], ["Meanwhile."]]
    (said,) = [one.event for one in change.journal().since(0)[0] if isinstance(one.event, events.WarningIssued)]
    assert said.code == "put-back" and said.message.startswith("comments.yaml was changed during an agent call")
    assert Path(said.message.partition("the changed version: ")[2]).read_text() == forged


def test_manual_edit_of_comments_counts_after_the_call(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    with change.running("agentd plan add-oauth"):
        finish(plan_guard(yard))
        path = change.folder / COMMENTS_FILE
        path.write_text(path.read_text().replace("Before.", "By hand."))
        say(change, "Later.")
    assert texts(change) == [["By hand."], ["Later."]]


def test_comment_added_during_an_interrupted_call_is_kept(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    with change.running("agentd plan add-oauth"):
        plan_guard(yard)  # killed here
        say(change, "Meanwhile.")
    say(change, "After the kill.")
    later = yard.guard(call=False)
    assert later.finish_cut(None) == GuardResult()
    later.close()
    assert texts(change) == [["Before."], ["Meanwhile."], ["After the kill."]]


def test_comments_tampered_with_in_an_interrupted_call_are_restored(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    with change.running("agentd plan add-oauth"):
        plan_guard(yard)
        say(change, "Meanwhile.")
        yard.agent(FORGED)
    later = yard.guard(call=False)
    assert [one.path for one in later.finish_cut(None).put_back] == [f"{OWN}/{COMMENTS_FILE}"]
    assert texts(change) == [["Before."], ["Meanwhile."]]


def test_damaged_local_state_does_not_stop_the_guard(yard: GuardProject, change: Change) -> None:
    say(change, "Before.")
    guard = plan_guard(yard)
    copies, locks = change.project.local_state_path("comments"), change.project.local_state_path("locks")
    yard.agent(f"shutil.rmtree({copies!r}); os.makedirs({copies + '/add-oauth.yaml'!r})\n{FORGED}")
    yard.agent(f"shutil.rmtree({locks!r}); Path({locks!r}).write_text('')")
    assert f"{OWN}/{COMMENTS_FILE}" in [one.path for one in finish(guard).put_back]
    assert texts(change) == [["Before."]]


def test_comment_on_another_change_is_allowed_but_its_other_files_are_guarded(
    yard: GuardProject, change: Change
) -> None:
    other = lifecycle.open_change(find_project(), "other")
    yard.box.write("agentd/changes/other/proposal.md", TEXT)
    guard = plan_guard(yard)
    say(other, "Elsewhere.")
    yard.agent("Path('agentd/changes/other/proposal.md').write_text('evil')")
    assert [one.path for one in finish(guard).put_back] == ["agentd/changes/other/proposal.md"]
    assert texts(other) == [["Elsewhere."]]
    let_files_age()
    forged = yard.watched("Path('agentd/changes/other/comments.yaml').write_text('[]')")
    assert [one.path for one in forged.put_back] == ["agentd/changes/other/comments.yaml"]


def test_comments_snapshot_exists_only_during_a_call(yard: GuardProject, change: Change) -> None:
    say(change)
    assert comment_store.frozen_comments(change) is None
    guard = plan_guard(yard)
    path = comment_store.frozen_comments(change)
    assert path and path.read_bytes() == (change.folder / COMMENTS_FILE).read_bytes()
    finish(guard)
    assert comment_store.frozen_comments(change) is None
    assert json.loads(Path(change.project.local_state_path("comments", "add-oauth.last")).read_bytes()) == 1
