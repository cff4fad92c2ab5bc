"""Texts of documents kept by hash: what a person can still read after it changed."""

from pathlib import Path

import pytest

from agentd.change import text_cache
from agentd.change.folder import Change
from plans import PROPOSAL_TEXT
from playbooks import report_in_text
from scenario import Scenario


def room(box: Scenario) -> Path:
    return box.root / ".git" / "agentd" / "texts" / "add-oauth"


def test_judged_text_can_be_read_by_hash_after_an_edit(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    before = change.hashes()
    spec = change.folder / "specs/user-model.md"
    old = spec.read_text()
    assert project.run("plan").code == 0
    assert change.records()[-1].judged == before
    spec.write_text("# Another\n")
    assert text_cache.cached_text(change, before["specs/user-model.md"]) == old
    assert len(list(room(project).iterdir())) == 3


def test_proposal_is_kept_without_review_blocks(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    assert "<review" in (change.folder / "proposal.md").read_text()
    text_cache.cache_plan(change)
    kept = text_cache.cached_text(change, change.hashes()["proposal.md"])
    assert kept and "<review" not in kept and kept.strip() == PROPOSAL_TEXT.strip()


def test_text_is_written_only_once(project: Scenario) -> None:
    change = project.proposed([]).change
    digest = text_cache.cache_text(change, b"one")
    path = room(project) / digest.removeprefix("sha256:")
    before = path.stat()
    assert text_cache.cache_text(change, b"one") == digest
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_unwritable_text_cache_does_not_fail_the_run(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    room(project).parent.mkdir(parents=True)
    room(project).write_text("in the way")
    assert project.run("plan").code == 0
    assert text_cache.cached_text(change, change.hashes()["tasks.md"]) is None


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:../../../config", "../asked", f"sha256:{'0' * 64}\n", "é"])
def test_invalid_hash_returns_no_text(project: Scenario, digest: str) -> None:
    assert text_cache.cached_text(project.proposed([]).change, digest) is None


def test_text_that_does_not_match_its_hash_is_not_returned(project: Scenario) -> None:
    change = project.proposed([]).change
    digest = text_cache.cache_text(change, b"one")
    (room(project) / digest.removeprefix("sha256:")).write_text("two")
    assert text_cache.cached_text(change, digest) is None


def test_texts_of_an_archived_change_are_still_available(project: Scenario) -> None:
    change = project.challenged("APPROVED", ("low", "A comma")).change
    text_cache.cache_plan(change)
    hashes = change.hashes()
    moved = project.root / "agentd" / "archive" / "20260119-add-oauth"
    moved.parent.mkdir()
    change.folder.rename(moved)
    ended = Change(change.project, change.id, change.tree, moved)
    assert text_cache.cached_text(ended, hashes["tasks.md"]) == (moved / "tasks.md").read_text()
