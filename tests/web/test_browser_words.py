"""What a person writes in the viewer is not lost: by leaving, a failed save, a restart, another tab, an update."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from agentd.change import comment_store
from agentd.documents.comments import CommentSeverity
from browser import Tab, entered, select, served, visiting
from scenario import Scenario, replace_text

SPEC = "specs/user-model.md"
HOME = "/changes/add-oauth"
READ = f"{HOME}/read/{SPEC}"
WORDS = "The pair is unique and belongs to exactly one user"
ABORTED = r"ERR_FAILED|Failed to load|ERR_CONNECTION|status of 40[349]"


@pytest.fixture
def spec(project: Scenario) -> Path:
    return project.challenged("NEEDS_REVISION", ("high", "It breaks")).change.folder / SPEC


def said(box: Scenario) -> list[str]:
    return [entry.text for one in comment_store.current_comments(box.change) for entry in one.thread]


def commented(box: Scenario, text: str) -> str:
    """By another face than the browser."""
    change = box.change
    return comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC, WORDS), text, "person:dev", CommentSeverity.SHOULD
    ).id


def compose(tab: Tab, text: str) -> Locator:
    select(tab, WORDS)
    tab.page.get_by_role("button", name="Comment").click()
    tab.page.get_by_role("textbox", name="Comment").fill(text)
    return tab.page.locator(".note.draft")


def answering(page: Page) -> Locator:
    form = page.locator("#note-K1 form.reply")
    form.locator("summary").click()
    return form


def rewording(page: Page) -> Locator:
    page.locator("#note-K1").get_by_role("button", name="Edit").click()
    return page.locator("#note-K1.draft [data-number]")


def test_reply_is_kept_after_leaving_the_page(project: Scenario, spec: Path) -> None:
    commented(project, "Which pair?")
    with visiting(project) as tab:
        page = tab.go(READ)
        form = answering(page)
        form.locator("textarea").fill("The two of them.")
        form.get_by_role("button", name="Reply").click()
        expect(page.locator("#note-K1")).to_contain_text("The two of them.")
        tab.go(HOME)
        tab.go(READ)
        expect(page.locator("#note-K1")).to_contain_text("The two of them.")
    assert said(project) == ["Which pair?", "The two of them."]


def test_unsaved_draft_is_kept_and_saved_later(project: Scenario, spec: Path) -> None:
    with visiting(project, ABORTED) as tab:
        page = tab.go(READ)
        draft = compose(tab, "Which pair?")
        expect(draft.locator(".saved")).to_have_text("saved")
        page.route("**/comments/**", lambda route: route.abort())
        page.keyboard.type(" Say it.")
        expect(draft.locator(".saved")).to_contain_text("not saved")
        draft.get_by_role("button", name="Done").click()
        page.keyboard.press("Escape")
        assert tab.run("document.querySelector('.note.draft textarea').draft.going") is False, "nothing is under way"
        expect(draft.locator("textarea")).to_have_value("Which pair? Say it.")
        assert said(project) == ["Which pair?"]
        page.unroute("**/comments/**")
        expect(draft.locator(".saved")).to_have_text("saved")
        draft.get_by_role("button", name="Done").click()
        expect(page.locator("#note-K1")).to_contain_text("Which pair? Say it.")
    assert said(project) == ["Which pair? Say it."]


@pytest.mark.parametrize("begin", [answering, rewording])
def test_unsaved_replies_and_edits_are_kept_and_saved_later(project: Scenario, spec: Path, begin: object) -> None:
    commented(project, "Which pair?")
    assert callable(begin)
    with visiting(project, ABORTED) as tab:
        page = tab.go(READ)
        form = begin(page)
        page.route("**/comments/**", lambda route: route.abort())
        form.locator("textarea").fill("The two of them.")
        expect(form.locator(".saved")).to_contain_text("not saved")
        form.get_by_role("button", name="Reply" if begin is answering else "Done", exact=True).last.click()
        expect(form.locator("textarea")).to_have_value("The two of them.")
        page.reload()
        page.unroute("**/comments/**")
        area = page.locator("#note-K1 textarea").filter(visible=True)
        expect(area).to_have_value("The two of them.")
        if begin is answering:  # nobody is at it any more: once saved, it is shown as said
            expect(page.locator("#note-K1 .said").last).to_have_text("The two of them.")
        else:
            expect(page.locator("#note-K1 .saved").filter(visible=True)).to_have_text("saved")
    assert said(project)[-1] == "The two of them."


def test_restart_loses_nothing_on_an_open_page(project: Scenario, spec: Path) -> None:
    with served(project) as first, entered(first, ABORTED) as tab:
        page = tab.go(READ)
        draft = compose(tab, "Which pair?")
        expect(draft.locator(".saved")).to_have_text("saved")
        first.process.terminate()
        first.process.wait()
        with served(project, "--port", str(first.port)) as second:
            page.keyboard.type(" Say it.")
            expect(page.locator("[data-connection]")).to_contain_text("was restarted")
            expect(page.locator(".paper")).to_contain_text(WORDS)
            expect(draft.locator("textarea")).to_have_value("Which pair? Say it.")
            other = page.context.new_page()
            other.goto(second.link)
            other.wait_for_url(lambda url: "/enter" not in url)
            other.close()
            expect(draft.locator(".saved")).to_have_text("saved")
            draft.get_by_role("button", name="Done").click()
            expect(page.locator("#note-K1")).to_contain_text("Which pair? Say it.")
    assert said(project) == ["Which pair? Say it."]


def test_temporarily_missing_document_stays_readable(project: Scenario, spec: Path) -> None:
    text = spec.read_text()
    with visiting(project, ABORTED) as tab:
        page = tab.go(READ)
        spec.unlink()
        expect(page.locator("[data-connection]")).to_contain_text("out of date")
        expect(page.locator(".paper")).to_contain_text(WORDS)
        spec.write_text(text.replace(WORDS, "It is back"))
        expect(page.locator(".paper")).to_contain_text("It is back")


def test_many_pages_can_be_open_at_once(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        for _ in range(9):
            page = tab.page.context.new_page()
            page.goto(f"http://{tab.door.host}{READ}")
            expect(page.locator(".paper")).to_contain_text(WORDS)


def test_edit_from_another_tab_is_not_overwritten_unseen(project: Scenario, spec: Path) -> None:
    commented(project, "Which pair?")
    with visiting(project, ABORTED) as tab:
        page = tab.go(READ)
        form = rewording(page)
        comment_store.edit_comment(project.change, "K1", 0, "Which pair, and why?", "person:dev")
        form.locator("textarea").fill("Which two?")
        expect(form.locator(".saved")).not_to_have_text("saved")
        expect(form.locator(".saved")).not_to_have_text("…")
        assert said(project) == ["Which pair, and why?"]
        form.locator("textarea").fill("Which two, and why?")
        expect(form.locator(".saved")).to_have_text("saved")
    assert said(project) == ["Which two, and why?"]


def test_reason_is_kept_when_the_page_is_refreshed(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        page.keyboard.press("r")
        page.locator("#choice-send-back textarea").fill("It has no end.")
        page.keyboard.press("Escape")
        replace_text(spec, WORDS, "It belongs to one user")
        expect(page.locator(".paper")).to_contain_text("It belongs to one user")
        page.locator("body").press("r")
        expect(page.locator("#choice-send-back textarea")).to_have_value("It has no end.")


def test_scroll_position_is_kept_when_the_page_is_refreshed(project: Scenario, spec: Path) -> None:
    commented(project, "A word.\n" * 40)
    replace_text(spec, WORDS, WORDS + "\n\n" + "More of it.\n\n" * 60)
    with visiting(project) as tab:
        page = tab.go(READ)
        tab.run("scrollTo({top: 600, behavior: 'instant'})")
        comment_store.reply_to_comment(project.change, "K1", "Another word.\n" * 40, "person:dev")
        expect(page.locator("#note-K1")).to_contain_text("Another word.")
        assert abs(tab.run("scrollY") - 600) < 3
