"""The specs of a change to be read whole, as they would be after its archive: as a page, and in the export."""

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from agentd.change.folder import Change
from agentd.project.layout import find_project
from agentd.web import application
from agentd.web import html_export as exports
from agentd.web import site as sites
from plans import NOTES, SHORT_TITLES, TAGS, delta_text, requirement_text
from scenario import Scenario

LONGER = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 120 characters."))
MARK = "<ins>"


@pytest.fixture
def change(project: Scenario) -> Change:
    project.with_notes(start="specs")
    return project.notes_complete("short-titles", {"notes": SHORT_TITLES, "tags": TAGS})


def get(path: str) -> Response:
    site = sites.create_site(find_project(), "csrf")
    return TestClient(application.build_app(site), base_url="http://127.0.0.1:4000").get(f"/changes/short-titles{path}")


def test_merged_spec_is_shown_completely(change: Change) -> None:
    assert 'href="/changes/short-titles/specs/notes.md"' in get("/specs").text
    page = get("/specs/notes.md")
    assert page.status_code == 200 and "version 2" in page.text
    assert "at most 40 characters" in page.text and "at most 80" not in page.text, "what the change says"
    assert "Notes are kept" in page.text and MARK not in page.text, "and what it leaves as it is, not as a difference"
    assert ' id="r2">' in page.text


def test_unchanged_spec_can_be_read_too(change: Change, project: Scenario) -> None:
    project.write("agentd/specs/people.md", NOTES.replace("notes", "people"))
    page = get("/specs/people.md")
    assert page.status_code == 200 and "leaves as it is" in page.text and "at most 80" in page.text


@pytest.mark.parametrize("name", ["nowhere.md", "..%2F..%2Fconfig.toml", "%2e%2e.md", "notes"])
def test_unknown_spec_is_not_found(change: Change, name: str) -> None:
    assert get(f"/specs/{name}").status_code == 404


def test_symlink_in_place_of_a_spec_is_not_followed(change: Change, project: Scenario) -> None:
    secret = project.write("secret.txt", "do not tell\n")
    (project.root / "agentd/specs/linked.md").symlink_to(secret)
    assert get("/specs/linked.md").status_code == 404


def test_conflict_is_shown_instead_of_a_merged_text(change: Change, project: Scenario) -> None:
    project.write("agentd/specs/notes.md", NOTES.replace("80 characters", "60 characters"))
    page = get("/specs/notes.md")
    assert page.status_code == 200 and "1 conflict must be solved first" in page.text
    assert "at most 40" not in page.text and "at most 60" not in page.text


def test_export_has_the_merged_specs_conflicts_and_overlaps(change: Change, project: Scenario) -> None:
    project.notes_proposed("long-titles", {"notes": LONGER})
    whole = exports.export_change(change)
    merged = whole.partition('id="specs"')[2]
    assert "long-titles" in merged and "notes:R2" in merged
    assert "<ins> 40</ins>" in merged and "tags" in merged
    project.write("agentd/specs/notes.md", NOTES.replace("80 characters", "60 characters"))
    assert "60 characters" in exports.export_change(change).partition('id="specs"')[2]
