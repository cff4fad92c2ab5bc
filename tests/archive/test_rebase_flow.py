"""`agentd rebase`: a change brought onto the specs of today, marks where somebody must decide, approvals kept."""

import pytest

from agentd.change.folder import Change, read_state
from agentd.domain.state_machine import TransitionEvent
from agentd.engine.workflows.verdict_status import is_plan_edited
from plans import NOTES, delta_text, requirement_text, scenario_text
from scenario import Scenario, approve_code, move, tree_files

TITLE = "Notes have a title"
SHORT = delta_text("notes", requirement_text("R2", TITLE, "A title is at most 40 characters."))
LONG = delta_text("notes", requirement_text("R2", TITLE, "A title is at most 200 characters."))
KEPT = delta_text("notes", requirement_text("R1", "Notes are kept", "A note is kept for ever."))
EMPTY = delta_text("notes", scenarios=scenario_text("Empty", "R2", "it is called untitled"))
MARKS = ("<<<<<<< yours", "||||||| base", "=======", ">>>>>>> theirs")


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    project.write("agentd/specs/notes.md", NOTES)
    project.commit("a spec")
    return project


def archive_another(box: Scenario, text: str) -> None:
    """Somebody else is quicker."""
    box.notes_complete("other", {"notes": text})
    assert box.agentd("archive", "other").code == 0


def page(change: Change) -> str:
    return (change.folder / "specs/notes.md").read_text()


def test_rebase_without_overlap_keeps_the_approval(notes: Scenario) -> None:
    change = notes.notes_proposed("short", {"notes": SHORT})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    archive_another(notes, KEPT)
    done = notes.agentd("rebase", "short", "--json")
    assert (done.code, done.json["next"], done.json["approval_stale"]) == (0, "agentd impl short", False), done.out
    assert page(change) == SHORT.replace("base_version: 1", "base_version: 2")
    assert (change.folder / "base/notes.md").read_text() == (notes.root / "agentd/specs/notes.md").read_text()
    assert not is_plan_edited(change), "the approval is on the same words"
    again = notes.agentd("rebase", "short")
    assert again.code == 0 and "short is up to date with the current specs." in again.out


def test_rebase_over_an_overlapping_requirement_makes_the_approval_stale(notes: Scenario) -> None:
    """Another scenario of the same requirement: no conflict, but somebody should look."""
    change = notes.notes_proposed("empty", {"notes": EMPTY})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    archive_another(notes, SHORT)
    done = notes.agentd("rebase", "empty", "--json")
    assert (done.code, done.json["approval_stale"]) == (0, True), done.out
    assert done.json["next"] == "agentd plan empty --rechallenge" and is_plan_edited(change)
    refused = notes.agentd("impl", "empty", "--json")
    assert refused.code == 1 and "--rechallenge" in refused.json["error"]["hint"]


def test_complete_change_is_archived_after_a_rebase_without_overlap(notes: Scenario) -> None:
    notes.notes_complete("short", {"notes": SHORT})
    archive_another(notes, KEPT)
    assert notes.agentd("rebase", "short", "--json").json["next"] == "agentd archive short"
    done = notes.agentd("archive", "short")
    assert done.code == 0, done.err
    text = (notes.root / "agentd/specs/notes.md").read_text()
    assert "at most 40" in text and "for ever" in text and "version: 3" in text


def test_rebase_conflict_leaves_markers_that_block_the_archive(notes: Scenario) -> None:
    change = notes.notes_complete("short", {"notes": SHORT})
    archive_another(notes, LONG)
    stopped = notes.agentd("archive", "short", "--json")
    assert (stopped.code, stopped.json["error"]["code"]) == (1, "merge-conflict")
    assert stopped.json["error"]["hint"].startswith("agentd rebase short")
    (one,) = stopped.json["conflicts"]
    assert "80" in one["base"] and "200" in one["theirs"] and "40" in one["yours"]
    done = notes.agentd("rebase", "short", "--json")
    assert (done.code, done.json["next"], done.json["approval_stale"]) == (1, "agentd impl short --review", True)
    assert all(mark in page(change) for mark in MARKS)
    assert "conflict-mark" in [one["rule"] for one in done.json["faults"]]
    assert "conflict-mark" in notes.agentd("validate", "short").out
    assert notes.agentd("archive", "short").code == 1
    assert notes.agentd("rebase", "short", "--json").json["error"]["code"] == "change-not-ready"
    lines = page(change).splitlines(keepends=True)
    first, last = (next(n for n, line in enumerate(lines) if line.startswith(mark)) for mark in ("<<<<<<<", ">>>>>>>"))
    solved = "".join(
        [*lines[:first], *requirement_text("R2", TITLE, "At most 60 characters.").splitlines(True), *lines[last + 1 :]]
    )
    (change.folder / "specs/notes.md").write_text(solved)
    assert "conflict-mark" not in notes.agentd("validate", "short").out
    refused = notes.agentd("archive", "short", "--json")
    assert refused.json["error"]["hint"].startswith("agentd impl short --review"), "nobody judged the code by that"
    approve_code(change)  # what `impl --review` comes to
    end = notes.agentd("archive", "short")
    assert end.code == 0, end.err
    text = (notes.root / "agentd/specs/notes.md").read_text()
    assert "At most 60 characters." in text and "200" not in text


def test_a_dry_run_shows_the_diff_and_writes_nothing(notes: Scenario) -> None:
    notes.notes_proposed("short", {"notes": SHORT})
    archive_another(notes, LONG)
    before = tree_files(notes.root)
    shown = notes.agentd("rebase", "short", "--dry-run")
    assert shown.code == 1 and "+<<<<<<< yours" in shown.out and tree_files(notes.root) == before


def test_rebase_output_lists_conflicts_and_next_command(notes: Scenario) -> None:
    notes.notes_proposed("short", {"notes": SHORT})
    archive_another(notes, LONG)
    shown = notes.agentd("rebase", "short")
    assert shown.code == 1 and "notes:R2: changed on both sides" in shown.out and "  notes  1 to resolve" in shown.out
    assert shown.out.rstrip().endswith("Resolve them first.\nNext    agentd plan short")


@pytest.mark.parametrize("when", ["drafting", "archived"])
def test_rebase_is_refused_when_there_is_nothing_to_rebase(when: str, notes: Scenario) -> None:
    if when == "archived":
        archive_another(notes, SHORT)
        refused = notes.agentd("rebase", "other", "--json")
        assert refused.code == 1 and "archived" in refused.json["error"]["message"]
        return
    change = notes.notes_proposed("short", {"notes": SHORT})
    change.update(lambda old: type(old)(old.change_id, old.description, old.created_at, old.updated_at))
    assert notes.agentd("rebase", "short", "--json").json["error"]["code"] == "wrong-phase"


def test_stale_branch_must_be_merged_before_a_rebase(notes: Scenario) -> None:
    notes.notes_proposed("short", {"notes": SHORT}, notes.on_branch("short"))
    notes.commit("plan")
    notes.git("switch", "-q", "main")
    archive_another(notes, KEPT)
    notes.commit("other")
    notes.git("switch", "-q", "agentd/short")
    refused = notes.agentd("rebase", "short", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "stale-branch")
    notes.git("merge", "-q", "main")
    assert notes.agentd("rebase", "short").code == 0
    assert read_state(notes.root / "agentd/changes/short").rebased


# ---- approvals after a rebase


def test_approval_after_a_rebase_counts(notes: Scenario) -> None:
    change = notes.notes_proposed("short", {"notes": SHORT})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    archive_another(notes, KEPT)
    assert notes.agentd("rebase", "short").code == 0
    move(change, TransitionEvent.CHALLENGE_APPROVED)  # what `plan --rechallenge` comes to
    assert not is_plan_edited(change)
    assert notes.agentd("status", "short", "--json").json["next"] == "agentd impl short"


def test_change_can_be_rebased_again_after_the_other_archive_was_undone(notes: Scenario) -> None:
    """A rebase onto an archive that is taken back, and a rebase onto what is there then."""
    notes.notes_complete("short", {"notes": SHORT})
    archive_another(notes, KEPT)
    assert notes.agentd("rebase", "short").code == 0
    assert notes.agentd("archive", "other", "--undo").code == 0
    assert notes.agentd("rebase", "short").code == 0
    assert notes.agentd("archive", "short").code == 0


def test_code_reviewed_after_a_rebase_is_archived(notes: Scenario) -> None:
    change = notes.notes_complete("short", {"notes": SHORT})
    archive_another(notes, KEPT)
    assert notes.agentd("rebase", "short").code == 0
    approve_code(change)
    assert notes.agentd("archive", "short").code == 0


def test_manual_edit_of_the_same_requirement_makes_the_approval_stale(notes: Scenario) -> None:
    """The change's own spec keeps its bytes, and the approval is stale all the same."""
    change = notes.notes_complete("short", {"notes": SHORT})
    by_hand = NOTES + "\n" + scenario_text("Emoji", "R2", "they count as one")
    notes.write("agentd/specs/notes.md", by_hand)
    done = notes.agentd("rebase", "short", "--json")
    assert (done.code, done.json["approval_stale"], page(change)) == (0, True, SHORT)
    assert notes.agentd("archive", "short", "--json").json["error"]["code"] == "change-not-complete"
    approve_code(change)
    assert notes.agentd("archive", "short").code == 0
    assert "they count as one" in (notes.root / "agentd/specs/notes.md").read_text()


def test_conflict_markers_block_review_and_acceptance(notes: Scenario) -> None:
    change = notes.notes_complete("short", {"notes": SHORT})
    archive_another(notes, LONG)
    assert notes.agentd("rebase", "short").code == 1
    refused = notes.agentd("impl", "short", "--review", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-ready"), refused.out
    assert "has an unresolved conflict" in refused.json["error"]["message"]
    assert change.read().phase == "complete"
    shown = notes.agentd("status", "short", "--json")
    assert shown.json["next"] == "agentd impl short --review" and "specs/notes.md" in shown.json["edited"]
