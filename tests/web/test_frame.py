"""What stands around every page: what cannot be read is told there, and what can be decided is what was read."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from agentd.change.folder import Change
from agentd.documents.comments import COMMENTS_FILE
from agentd.project.layout import find_project
from agentd.web import application, displayed, page_frame
from agentd.web import site as sites
from agentd.web.page_frame import PageFrame
from plans import BAD_CODE
from playbooks import APPROVED, NEEDS_REVISION, implement
from scenario import CHECK, Scenario
from terminal import INTERRUPT, at_question
from trace_example import begun

SPEC = "specs/user-model.md"
NO_APPROVAL = "Nothing can be approved until it can be read."
BROKEN = "- {\n"


def get(path: str = "", change_id: str = "add-oauth") -> Response:
    site = sites.create_site(find_project(), "csrf")
    return TestClient(application.build_app(site), base_url="http://127.0.0.1:4000").get(f"/changes/{change_id}{path}")


def around(change: Change) -> PageFrame:
    return page_frame.build_frame(sites.create_site(find_project(), "csrf"), change)


def ids(change: Change) -> list[str]:
    return [one.id for one in around(change).choices]


def bar(page: Response) -> str:
    assert page.status_code == 200
    return unescape(page.text.partition('id="bar"')[2])


# ---- what cannot be read


@pytest.mark.parametrize("part", ["", "/bar", f"/read/{SPEC}", "/tasks"])
def test_unreadable_comments_are_reported_in_the_bar_and_block_approval(project: Scenario, part: str) -> None:
    change = project.challenged("APPROVED").change
    assert "choice-approve" in bar(get(part))
    (change.folder / COMMENTS_FILE).write_text(BROKEN)
    told = bar(get(part))
    assert "comments.yaml line 1" in told and "git log -p -- agentd/changes/add-oauth/comments.yaml" in told
    assert NO_APPROVAL in told and "choice-approve" not in told and str(project.root) not in told


def test_unreadable_state_is_reported_in_the_bar(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    (change.folder / "STATE.yaml").write_text("phase: [\n")
    told = bar(get())
    assert "agentd/changes/add-oauth/STATE.yaml: " in told and "git log -p" in told and NO_APPROVAL in told


@pytest.mark.parametrize("name", ["comments.yaml", "STATE.yaml", "reviews/challenge-1.yaml"])
def test_run_can_be_stopped_when_files_are_unreadable(project: Scenario, name: str) -> None:
    change = project.challenged("APPROVED").change
    with change.running("agentd plan add-oauth"):
        (change.folder / name).write_text(BROKEN)
        told = bar(get())
    assert 'action="/changes/add-oauth/stop"' in told and "agentd plan add-oauth" in told
    assert name in told and NO_APPROVAL in told


def test_waiting_run_cannot_accept_with_unreadable_comments(project: Scenario) -> None:
    project.proposed(NEEDS_REVISION, rounds=1)
    person = at_question(project)
    change = project.change
    assert "accept" in ids(change)
    (change.folder / COMMENTS_FILE).write_text(BROKEN)
    assert "accept" not in ids(change)
    assert around(change).problem.startswith("comments.yaml line 1")
    person.press(INTERRUPT)
    person.waits()


def test_unreadable_comments_are_reported_above_the_text(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    (change.folder / COMMENTS_FILE).write_text(BROKEN)
    text = get(f"/read/{SPEC}").text.partition('id="text"')[2].partition("</article>")[0]
    assert "comments.yaml line 1" in text


def test_unreadable_config_hides_neither_text_nor_trace(project: Scenario) -> None:
    project.challenged("APPROVED")
    project.write("agentd/config.toml", "schema_version = [")
    for part, words in ((f"/read/{SPEC}", "A user is"), ("/trace", "user-model:R1"), ("/export", "A user is")):
        page = get(part)
        assert page.status_code == 200 and words in page.text, part
        assert "config.toml" in page.text and "requirements are found by the default pattern" in page.text


def test_trace_page_lists_changed_files_that_no_task_names(project: Scenario) -> None:
    change = begun(project)
    project.write("scripts/release.py", "print('release')\n")
    page = get("/trace", change.id)
    assert page.status_code == 200
    heading, _, below = page.text.partition("scripts/release.py")
    assert below and heading.rpartition("<h2")[2].partition("</h2>")[0].endswith(">Changed files that no task names")


# ---- what is decided is what was read


@contextmanager
def written_at_every_look(path: Path) -> Iterator[None]:
    """Somebody who saves the document again, a version later, each time that it is about to be opened."""
    versions = 0
    is_off = False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal versions, is_off
        if is_off or event != "open" or str(arguments[0]) != str(path):
            return
        is_off = True
        versions += 1
        path.write_text(f"# Spec\n\nversion {versions}.\n")
        is_off = False

    sys.addaudithook(hook)
    try:
        yield
    finally:
        is_off = True


def test_page_hash_matches_its_text_during_concurrent_writes(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    with written_at_every_look(change.folder / SPEC):
        page = unescape(get(f"/read/{SPEC}").text)
    version = page.partition("version ")[2].partition(".")[0]
    shown = json.loads(page.partition('name="shown" value="')[2].partition('">')[0])
    assert f"version {version}." in (displayed.displayed_text(change, shown[SPEC]) or "")
    assert page.count(f'data-hash="{shown[SPEC]}"') == 2, "the page's own, and the one in the list"


def test_only_documents_under_decision_are_recorded_as_read(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    whole = around(change)
    assert json.loads(page_frame.frame_as_read(whole, SPEC, "sha256:1").shown)[SPEC] == "sha256:1"
    assert page_frame.frame_as_read(whole, "CHALLENGE.md", "sha256:1") == whole


def test_code_is_not_read_when_nothing_can_be_decided(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    with change.running("agentd plan add-oauth"):
        assert around(change).shown == "{}"
    assert SPEC in around(change).shown


def test_failed_check_explains_why_code_cannot_be_accepted(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(BAD_CODE), "review": APPROVED}, CHECK).change
    project.run("impl", "--rounds", "0")
    found = around(change)
    assert "accept" not in [one.id for one in found.choices]
    assert found.blocked == "Accepting is not possible: the required check tests fails"
    page = get("", change.id)
    assert found.blocked in bar(page)
    assert f'<a href="/changes/{change.id}/checks">Required check failed: tests</a>' in page.text
