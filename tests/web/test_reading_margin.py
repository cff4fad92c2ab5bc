"""What stands beside a document, and what the rounds said: the contract's example, edited as people do."""

import shutil
from pathlib import Path

import pytest

from agentd.change import comment_store, text_cache
from agentd.change.folder import Change
from agentd.documents.comments import CommentSeverity
from agentd.project.layout import find_project
from agentd.web import annotations, rounds_view
from agentd.web.annotations import Annotation
from plans import EXAMPLE, PROPOSAL_TEXT
from playbooks import report_in_text
from scenario import Scenario

AUTH, USER, TASKS = "specs/auth-flow.md", "specs/user-model.md", "tasks.md"
DEV = "person:dev"


@pytest.fixture
def example(project: Scenario) -> Change:
    """The example as it lies in a project; nothing of its judge's reading is kept here."""
    folder = project.root / "agentd/changes/add-oauth"
    shutil.copytree(EXAMPLE, folder)
    return Change(find_project(), "add-oauth", str(project.root), folder)


def notes(change: Change, document: str) -> dict[str, Annotation]:
    found = annotations.document_annotations(change, document, (change.folder / document).read_text())
    return {one.id: one for one in found}


def write(change: Change, document: str, text: str) -> None:
    (change.folder / document).write_text(text)


def rewrite(change: Change, document: str, old: str, new: str) -> None:
    text = (change.folder / document).read_text()
    assert text.count(old) == 1
    write(change, document, text.replace(old, new))


def line_of(change: Change, document: str, words: str) -> int:
    return next(number for number, line in enumerate((change.folder / document).open(), 1) if words in line)


# ---- findings


def test_finding_is_placed_at_its_quote_with_its_history(example: Change) -> None:
    note = notes(example, AUTH)["C4"]
    assert note.line == note.last_line == line_of(example, AUTH, "the page says that the sign-in was cancelled")
    assert (note.kind, note.severity, note.state, note.is_open, note.sure) == ("finding", "low", "open", True, "exact")
    assert (note.first_round, note.last_round) == (2, 2)
    first = notes(example, AUTH)["C1"]
    assert [(one.round, one.what, one.by) for one in first.said] == [
        (1, "found", "agent:codex"),
        (1, "fixed", "agent:gemini"),
        (2, "fixed", "agent:codex"),
    ]
    assert first.said[2].text == 'R2 and the scenario "Foreign state is refused" settle it.'
    assert (first.first_round, first.last_round, first.is_open) == (1, 2, False)


def test_quote_takes_precedence_over_the_line_and_follows_its_text(example: Change) -> None:
    text = (example.folder / AUTH).read_text()
    before = notes(example, AUTH)["C4"].line
    write(example, AUTH, text.replace("## Requirements", "New.\n\nLines.\n\n## Requirements", 1))
    assert notes(example, AUTH)["C4"].line == before + 4


def test_finding_whose_text_is_gone_is_placed_at_its_requirement(example: Change) -> None:
    rewrite(example, AUTH, "**THEN** the page says that the sign-in was cancelled", "**THEN** nothing else happens")
    note = notes(example, AUTH)["C4"]
    assert note.is_orphaned and note.sure == "heading"
    assert note.line == line_of(example, AUTH, "### R2")


def test_reworded_quote_is_found_with_the_judged_text(example: Change) -> None:
    text = (example.folder / AUTH).read_bytes()
    record = example.folder / "reviews/challenge-2.yaml"
    judged_hash = next(line.split(": ")[1].strip() for line in record.open() if "auth-flow.md: sha" in line)
    assert text_cache.cache_text(example, text) == judged_hash, "the example's own text is the one that was judged"
    line = notes(example, AUTH)["C4"].line
    old = "the page says that the sign-in was cancelled"
    rewrite(example, AUTH, old, "the page says with 403 that the sign-in was cancelled")
    note = notes(example, AUTH)["C4"]
    assert (note.line, note.sure, note.is_orphaned) == (line, "changed", False)


def test_code_finding_is_placed_at_its_requirement_and_check_finding_nowhere(example: Change) -> None:
    note = notes(example, AUTH)["V2"]
    assert (note.line, note.sure) == (line_of(example, AUTH, "### R2"), "heading")
    everywhere = [id_ for name in (AUTH, USER, TASKS, "proposal.md") for id_ in notes(example, name)]
    assert sorted(everywhere) == ["C1", "C2", "C3", "C4", "V2"], "each in one document"


def test_unverified_finding_says_why(example: Change) -> None:
    note = notes(example, TASKS)["C3"]
    assert note.unverified_because == "the quote is not in the file"
    assert (note.state, note.said[-1].text) == ("withdrawn", "Right: task 4.1 names the refusal.")


# ---- comments


def test_comment_is_placed_at_its_text_and_orphaned_when_that_is_gone(example: Change) -> None:
    line = line_of(example, AUTH, "### R1")
    quote = (example.folder / AUTH).read_text().splitlines()[line + 1]
    anchor = comment_store.comment_anchor(example, AUTH, quote, line=line)
    made = comment_store.add_comment(example, anchor, "Why so?", DEV, CommentSeverity.BLOCKER)
    comment_store.reply_to_comment(example, made.id, "Because.", "person:ann")
    note = notes(example, AUTH)["K1"]
    assert (note.kind, note.line, note.severity, note.is_open) == ("comment", line + 2, "blocker", True)
    assert [(one.by, one.text) for one in note.thread] == [(DEV, "Why so?"), ("person:ann", "Because.")]
    write(example, AUTH, "# Another text\n")
    note = notes(example, AUTH)["K1"]
    assert note.is_orphaned and (note.line, note.quote) == (0, quote)


def test_comment_that_became_a_finding_is_shown_once(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks"), challenge_2=report_in_text("APPROVED")).change
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, "proposal.md", "People are users."), "All of them?", DEV
    )
    assert project.agentd("plan", change.id, "--rechallenge").code == 1, "C1 is still open"
    found = annotations.document_annotations(change, "proposal.md", PROPOSAL_TEXT)
    assert [(one.kind, one.id, one.finding) for one in found] == [("comment", "K1", "P1")]
    assert [one.what for one in found[0].said][:1] == ["found"] and found[0].first_round == 1


# ---- what cannot be read


def test_broken_record_or_comment_file_hides_nothing_else(example: Change) -> None:
    write(example, "reviews/review-1.yaml", "findings: [")
    write(example, "comments.yaml", "- id: 7")
    assert sorted(notes(example, AUTH)) == ["C1", "C4"]
    problems = annotations.annotation_problems(example)
    assert len(problems) == 2 and "review-1.yaml line 1" in problems[0] and "comments.yaml line 1" in problems[1]
    assert [(one.kind, one.number) for one in rounds_view.read_rounds(example)] == [("challenge", 2), ("challenge", 1)]


def test_unreadable_document_still_has_its_findings(example: Change) -> None:
    assert {one.id: one.line for one in annotations.document_annotations(example, AUTH, "\0\1")} == {
        "C1": 0,
        "C4": 0,
        "V2": 0,
    }


# ---- rounds


def test_rounds_are_listed_newest_first_with_opened_and_closed_findings(example: Change) -> None:
    review, second, first = rounds_view.read_rounds(example)
    assert [(one.kind, one.number, one.verdict) for one in (review, second, first)] == [
        ("review", 1, "NEEDS_CHANGES"),
        ("challenge", 2, "APPROVED"),
        ("challenge", 1, "NEEDS_REVISION"),
    ]
    assert review.overruled.startswith("The required check tests failed")
    assert [one.id for one in first.opened] == ["C1", "C2", "C3"] and not first.closed
    assert [(one.id, one.state) for one in second.closed] == [("C1", "fixed"), ("C2", "fixed"), ("C3", "withdrawn")]
    assert [one.id for one in second.opened] == [one.id for one in second.still_open] == ["C4"]
    assert [(one.id, one.said.what) for one in first.answers] == [
        ("C1", "fixed"),
        ("C2", "fixed"),
        ("C3", "disputed"),
    ]
    assert not first.documents and [one.name for one in second.documents] == [USER, AUTH, TASKS]
    assert (review.older_tree[:4], review.tree[:4], review.documents) == ("384b", "1b3b", ())


def test_finding_closed_earlier_is_not_listed_as_closed_again(example: Change) -> None:
    text = (example.folder / "reviews/challenge-2.yaml").read_text().replace("round: 2", "round: 3")
    text = text.replace("id: C4", "id: C5").replace("2026-01-19T10:54:25Z", "2026-01-20T10:54:25Z")
    write(example, "reviews/challenge-3.yaml", text[: text.index("previous:")] + "previous: []\n")
    third = rounds_view.read_rounds(example)[0]
    assert (third.number, third.closed) == (3, ()) and [one.id for one in third.still_open] == ["C4", "C5"]


def test_changes_between_rounds_are_shown_by_word_when_texts_were_kept(example: Change) -> None:
    moved = next(one for one in rounds_view.read_rounds(example)[1].documents if one.name == AUTH)
    assert rounds_view.document_difference(example, AUTH, moved.old, moved.new) is None, (
        "nobody kept the older text here"
    )
    old = text_cache.cache_text(example, b"People sign in.\n")
    new = text_cache.cache_text(example, b"People always sign in.\n")
    pieces = rounds_view.document_difference(example, AUTH, old, new)
    assert pieces and [one.text.strip() for one in pieces if one.kind == "added"] == ["always"]
    added = rounds_view.document_difference(example, AUTH, None, new)
    assert added and "".join(one.text for one in added if one.kind == "added").startswith("People always")


def test_current_text_needs_no_kept_copy(example: Change) -> None:
    moved = next(one for one in rounds_view.read_rounds(example)[1].documents if one.name == AUTH)
    pieces = rounds_view.document_difference(example, AUTH, moved.new, moved.new)
    assert pieces and "".join(one.text for one in pieces) == (example.folder / AUTH).read_text()
    assert rounds_view.document_difference(example, "../../../../README.md", moved.new, moved.new) is None


def test_archived_change_can_be_read_like_any_other(example: Change) -> None:
    folder = Path(example.project.archive_in(example.tree)) / "20260119-add-oauth"
    folder.parent.mkdir(parents=True)
    example.folder.rename(folder)
    ended = Change(example.project, example.id, example.tree, folder)
    assert notes(ended, AUTH)["C4"].line > 0 and len(rounds_view.read_rounds(ended)) == 3
