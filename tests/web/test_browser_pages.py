"""Every page of a change in every phase, what cannot be read, what is archived, and a change as one file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from agentd.change import lifecycle
from agentd.domain.state_machine import TransitionEvent
from agentd.project.layout import find_project
from browser import MERMAID_STYLES, Tab, Watched, engine, visiting
from plans import SHORT_TITLES, SHORT_TITLES_ID, SPEC_FILE, TAGS, delta_text, requirement_text
from scenario import Scenario, move

PARTS = ("", "/bar", "/rounds", "/tasks", "/trace", "/checks", "/code", "/specs", "/cost", "/run")


def drafting(box: Scenario) -> str:
    return lifecycle.create_change(find_project(), "drafted", "A plan").id


def proposed(box: Scenario) -> str:
    return box.notes_proposed("planned", {"notes": SHORT_TITLES, "tags": TAGS}).id


def challenged(box: Scenario) -> str:
    change = box.notes_proposed("approved", {"notes": SHORT_TITLES})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    return change.id


def rejected(box: Scenario) -> str:
    change = box.notes_proposed("refused", {"notes": SHORT_TITLES})
    move(change, TransitionEvent.CHALLENGE_REJECTED)
    return change.id


def implementing(box: Scenario) -> str:
    change = box.notes_proposed("building", {"notes": SHORT_TITLES})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    move(change, TransitionEvent.IMPLEMENTATION_STARTED)
    return change.id


def finished(box: Scenario) -> str:
    return box.notes_complete("complete", {"notes": SHORT_TITLES}).id


def archived(box: Scenario) -> str:
    box.complete_short_titles()
    assert box.agentd("archive", SHORT_TITLES_ID).code == 0
    return SHORT_TITLES_ID


def documents(tab: Tab, change_id: str) -> list[str]:
    tab.go(f"/changes/{change_id}")
    found = tab.run("[...document.querySelectorAll('.list.short a')].map((one) => one.getAttribute('href'))")
    return [str(one) for one in found]


@pytest.mark.parametrize("made", [drafting, proposed, challenged, rejected, implementing, finished, archived])
def test_every_page_of_a_change_is_available(project: Scenario, made: Callable[[Scenario], str]) -> None:
    project.with_notes(start="specs")
    change_id = made(project)
    with visiting(project, MERMAID_STYLES) as tab:
        expect(tab.page.locator("#inbox")).to_contain_text(change_id)
        for part in PARTS:
            tab.go(f"/changes/{change_id}{part}")
        read = documents(tab, change_id)
        assert bool(read) is (made is not drafting)
        for path in read:
            expect(tab.go(path).locator(".paper")).not_to_be_empty()
        tabs = tab.run("[...document.querySelectorAll('.tabs a')].map((one) => one.getAttribute('href'))")
        for path in tabs:
            expect(tab.go(path).locator(".tabs a[aria-current]")).to_have_count(1)


def test_archived_change_is_read_only(project: Scenario) -> None:
    project.with_notes(start="specs")
    archived(project)
    with visiting(project) as tab:
        page = tab.page
        page.get_by_text("Archived", exact=False).first.click()
        page.locator("a.entry").click()
        expect(page.locator("#phase")).to_contain_text("archived")
        assert page.locator("#bar form").count() == 0
        tab.go(f"/changes/{SHORT_TITLES_ID}/read/specs/notes.md")
        expect(page.locator(".paper")).to_contain_text("A title is at most 40 characters.")
        assert page.locator("#composer").count() == 0


def test_documents_link_to_each_other_and_to_their_lines(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    with (change.folder / "proposal.md").open("a") as file:
        file.write(f"\n## See\n\nThe [users]({SPEC_FILE}#r2-provider-identities) and [tasks](tasks.md).\n")
    with visiting(project) as tab:
        page = tab.go("/changes/add-oauth/read/proposal.md")
        page.locator(".paper").get_by_role("link", name="tasks").click()
        expect(page.locator(".paper")).to_contain_text("Store identities")
        page.go_back()
        page.locator(".paper").get_by_role("link", name="users").click()
        page.wait_for_url(f"**/read/{SPEC_FILE}*")
        expect(page.locator(".paper")).to_contain_text("Provider identities")
        page.locator(".contents").get_by_text("Provider identities").click()
        expect(page.locator("#r2")).to_be_in_viewport()
        tab.go("/changes/add-oauth/trace")
        page.get_by_role("link", name="R1").first.click()
        expect(page.locator(".paper .target")).to_contain_text("User record")


def test_table_of_contents_is_collapsed_on_narrow_screens(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    with visiting(project, viewport={"width": 1000, "height": 700}) as tab:
        page = tab.go(f"/changes/add-oauth/read/{SPEC_FILE}")
        expect(page.locator(".contents")).to_be_hidden()
        link = page.locator(".outline").get_by_text("Provider identities")
        expect(link).to_be_hidden()
        page.locator(".outline summary").click()
        link.click()
        expect(page.locator("#r2")).to_be_in_viewport()
        page.set_viewport_size({"width": 1400, "height": 700})
        expect(page.locator(".outline")).to_be_hidden()
        expect(page.locator(".contents")).to_be_visible()


def test_every_block_has_a_link_to_its_line(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    with visiting(project) as tab:
        page = tab.go(f"/changes/add-oauth/read/{SPEC_FILE}")
        link = page.locator("a.line")
        expect(link).to_be_hidden()
        page.locator(".paper").get_by_text("A user is one person.").hover()
        line = (
            page.locator(".paper [data-line]").filter(has_text="A user is one person.").last.get_attribute("data-line")
        )
        expect(link).to_have_attribute("href", f"#L{line}")
        link.click()
        expect(page.locator(".paper .target")).to_contain_text("A user is one person.")
        assert page.url.endswith(f"#L{line}")
        page.reload()
        expect(page.locator(".paper .target")).to_contain_text("A user is one person.")


def test_unreadable_files_are_reported_and_the_rest_is_shown(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    (change.folder / "tasks.md").write_bytes(b"# Tasks\n\n\xff\xfe broken \x00\n")
    (change.folder / SPEC_FILE).write_text("---\nid: [\n---\n\n# Spec\n\nStill here.\n")
    with visiting(project) as tab:
        for part in PARTS:
            tab.go(f"/changes/add-oauth{part}")
        expect(tab.go("/changes/add-oauth/tasks").locator("#part .card").first).to_contain_text("tasks.md")
        expect(tab.go(f"/changes/add-oauth/read/{SPEC_FILE}").locator(".paper")).to_contain_text("Still here.")
        expect(tab.go("/changes/add-oauth/read/tasks.md").locator(".paper")).to_contain_text("broken")
        (change.folder / "STATE.yaml").write_text("phase: [\n")
        expect(tab.go("/").locator("#inbox")).to_contain_text("STATE.yaml cannot be read")
        expect(tab.go("/changes/add-oauth").locator("#part .card").first).to_contain_text("STATE.yaml")
        expect(tab.go(f"/changes/add-oauth/read/{SPEC_FILE}").locator(".paper")).to_contain_text("Still here.")


def test_conflict_shows_the_three_sides(project: Scenario) -> None:
    project.with_notes(start="specs")
    one = project.notes_complete(
        "longer", {"notes": delta_text("notes", requirement_text("R2", "Notes have a title", "At most 120."))}
    )
    specs = project.root / "agentd/specs/notes.md"
    specs.write_text(specs.read_text().replace("at most 80", "at most 60"))
    with visiting(project) as tab:
        page = tab.go(f"/changes/{one.id}/specs")
        expect(page.locator(".sides > div")).to_have_count(3)
        expect(page.locator(".sides")).to_contain_text("at most 60")
        expect(page.locator(".chip.bad")).to_have_text("conflict")


# ---- one file


def test_merged_spec_is_shown_whole_and_commented_in_its_source(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("planned", {"notes": SHORT_TITLES})
    with visiting(project) as tab:
        page = tab.go("/changes/planned/specs")
        page.get_by_role("link", name="Read the whole spec as it would be").click()
        text = page.locator(".paper")
        expect(text).to_contain_text("at most 40 characters")
        expect(text).to_contain_text("Notes are kept")
        page.get_by_text("Contents").click()
        page.locator(".contents").get_by_role("link", name="R2").click()
        expect(text.locator("#r2")).to_be_in_viewport()
        page.keyboard.press("c")
        page.wait_for_url("**/changes/planned/read/**")


def test_export_is_readable_without_scripts_or_requests(project: Scenario, tmp_path: Path) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It <script>window.hit=1</script> breaks")).change
    with (change.folder / "proposal.md").open("a") as file:
        file.write("\n## More\n\n<script>window.hit=1</script> ![x](https://evil.example/x.png)\n")
    target = tmp_path / "change.html"
    assert project.agentd("view", "add-oauth", "--export", str(target)).code == 0
    with engine() as browser:
        context = browser.new_context()
        watched = Watched(target.as_uri())
        watched.listen(context)
        page = context.new_page()
        page.goto(target.as_uri())
        text = page.inner_text("body")
        assert page.locator("script, iframe, link, img, form").count() == 0
        assert page.evaluate("window.hit ?? null") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        watched.check()
        context.close()
    for words in (
        "People are users.",
        "Provider identities",
        "Store identities",
        "It <script>window.hit=1</script> breaks",
    ):
        assert words in text
    assert watched.requests == [target.as_uri()]


def test_export_can_be_downloaded_from_the_page(project: Scenario, tmp_path: Path) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    with visiting(project) as tab:
        page = tab.go("/changes/add-oauth")
        with page.expect_download() as got:
            page.get_by_role("link", name="One HTML file").click()
        got.value.save_as(tmp_path / "change.html")
        assert got.value.suggested_filename == "add-oauth.html"
    assert project.change.id in (tmp_path / "change.html").read_text()
