"""The documents of a change on their pages: links are not followed, what is cut says so, lists say what is new."""

from html import unescape
from pathlib import Path

import pytest
from markup import Markup, parse_markup
from starlette.testclient import TestClient

from agentd.change.folder import Change, readable_documents
from agentd.project.layout import find_project
from agentd.web import application, displayed, document_view
from agentd.web import site as sites
from plans import SHORT_TITLES, TAGS, delta_text, requirement_text, scenario_text
from scenario import Scenario

SECRET = "what lies elsewhere on this machine"
USERS = "specs/user-model.md"
NAMES = ["clarifications.md", "proposal.md", USERS, "tasks.md", "CHALLENGE.md"]


def get(path: str, status: int = 200) -> str:
    site = sites.create_site(find_project(), "csrf")
    page = TestClient(application.build_app(site), base_url="http://127.0.0.1:4000").get(path)
    assert page.status_code == status, page.text
    return unescape(page.text)


def part(path: str, inside: str) -> Markup:
    """One element's worth of a page, by the start of its tag and its end."""
    text = get(path)
    start, _, end = inside.partition("…")
    return parse_markup(start + text.partition(start)[2].partition(end)[0] + end)


@pytest.fixture
def outside(project: Scenario) -> Path:
    path = project.root.parent / "elsewhere"
    path.mkdir()
    (path / "secret.md").write_text(f"# {SECRET}\n")
    return path


# ---- links


def every_page(change: Change) -> str:
    pages = [
        "",
        "/rounds",
        "/tasks",
        "/trace",
        "/specs",
        "/export",
        *(f"/read/{name}" for name in readable_documents(change.folder)),
    ]
    return "".join(get(f"/changes/{change.id}{one}") for one in pages)


@pytest.mark.parametrize("name", NAMES)
def test_document_that_is_a_symlink_is_reported_and_not_shown_or_exported(
    project: Scenario, outside: Path, name: str
) -> None:
    change = project.challenged("APPROVED").change
    (change.folder / name).unlink(missing_ok=True)
    (change.folder / name).symlink_to(outside / "secret.md")
    assert name not in readable_documents(change.folder) and name not in change.hashes()
    assert SECRET not in every_page(change)
    get(f"/changes/{change.id}/read/{name}", 404)
    words = f"{name} is a symbolic link and is not read: replace it with the file itself"
    assert document_view.document_problems(change) == (words,)
    assert words in get(f"/changes/{change.id}") and words in get(f"/changes/{change.id}/export")
    bar = get(f"/changes/{change.id}/bar")
    assert f"{words}</b>. Nothing can be approved until it can be read." in bar
    assert "choice-reject" in bar and "choice-approve" not in bar and "choice-accept" not in bar


def test_specs_behind_a_linked_folder_are_not_read(project: Scenario, outside: Path) -> None:
    change = project.challenged("APPROVED").change
    (change.folder / "specs").rename(change.folder / "aside")
    (change.folder / "specs").symlink_to(outside)
    assert readable_documents(change.folder) == ["proposal.md", "tasks.md", "CHALLENGE.md"]
    assert SECRET not in every_page(change)
    assert document_view.document_problems(change) == (
        "specs/secret.md is a symbolic link and is not read: replace it with the file itself",
    )


def test_tasks_behind_a_symlink_are_not_drawn(project: Scenario, outside: Path) -> None:
    change = project.challenged("APPROVED").change
    tasks = change.folder / "tasks.md"
    (outside / "tasks.md").write_bytes(tasks.read_bytes())
    assert "<svg" in get(f"/changes/{change.id}/tasks") and "<svg" in get(f"/changes/{change.id}/export")
    tasks.unlink()
    tasks.symlink_to(outside / "tasks.md")
    assert 'class="picture"' not in get(f"/changes/{change.id}/tasks")
    assert "Tasks by layer" not in get(f"/changes/{change.id}/export")


# ---- what is not shown in full


def test_overlong_text_says_that_it_is_truncated(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    path = change.folder / USERS
    path.write_text("# Spec\n\n```\n" + "x" * 4_000_000)
    read = document_view.read_document(change, USERS, document_view.requirement_pattern(change)[0])
    assert read.problem == "It is cut off here: 12 of its 4000012 characters, at its end, are not shown"
    assert read.problem in get(f"/changes/{change.id}/read/{USERS}")
    assert read.hash == change.hashes()[USERS] and displayed.displayed_text(change, read.hash) == path.read_text()


def test_change_that_is_not_checked_out_shows_the_git_command(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("away", {}, project.on_branch("away"))
    project.commit("planned")
    get("/")
    assert "Not checked out" not in get("/")
    project.git("switch", "-q", "main")
    assert 'Not checked out: <span class="command">git switch agentd/away</span>' in get("/")


# ---- lists


def test_specs_page_shows_what_happens_to_each_requirement(project: Scenario) -> None:
    project.with_notes(start="specs")
    more = delta_text(
        "notes",
        requirement_text("R2", "Titles are short", "A title is at most 40 characters.")
        + requirement_text("R3", "Late", "Late."),
        scenario_text("One", "R3", "it is so")
        + scenario_text("Two", "R3", "it is so")
        + scenario_text("Kept", "R1", "it is here"),
        aside="## Renamed\n\n- R2: Notes have a title -> R2: Titles are short\n\n",
    )
    project.notes_proposed("titles", {"notes": more, "tags": TAGS})
    rows = [" ".join(one.text.split()) for one in part("/changes/titles/specs", "<main…</main>").all("li")]
    assert rows[:3] == [
        "R2 Titles are short, renamed and changed",
        "R3 Late, new, 2 scenarios",
        "R1 Notes are kept, 1 scenario",
    ]
    assert rows[3].startswith("R1 ") and ", new" in rows[3]


def test_changed_requirement_is_marked_as_changed(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    assert '<b>R2</b> Notes have a title<span class="soft">, changed</span>' in get("/changes/short-titles/specs")


def test_each_task_cell_names_its_column(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("titles", {"tags": TAGS})
    table = part("/changes/titles/tasks", '<table class="table as-cards"…</table>')
    heads = [one.text for one in table.all("th")]
    assert [one["data-label"] for one in table.all("td")] == heads == ["Task", "File", "For", "Needs", "State"]


def test_status_messages_are_announced_to_screen_readers(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    page = get(f"/changes/{change.id}/read/{USERS}")
    assert '<div id="changed" class="changed-bar" role="status" hidden>' in page
    assert page.count('class="saved" role="status"') == page.count('class="saved"') == 2
    for text in (page, get("/")):
        assert '<span class="faint" data-connection role="status">' in text
