"""A person reads in a browser and comments: what is typed is kept, and follows its text."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.documents.comments import Comment
from browser import Tab, entered, select, served, visiting
from processes import wait_until
from scenario import Scenario, replace_text

SPEC = "specs/user-model.md"
READ = f"/changes/add-oauth/read/{SPEC}"
WORDS = "The pair is unique and belongs to exactly one user"


@pytest.fixture
def spec(project: Scenario) -> Path:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks"), ("low", "It is plain")).change
    return change.folder / SPEC


def kept(box: Scenario) -> list[Comment]:
    return list(comment_store.current_comments(box.change))


def said(box: Scenario) -> list[str]:
    return [entry.text for one in kept(box) for entry in one.thread]


def composed(tab: Tab, text: str, words: str = WORDS) -> Locator:
    """The composer, open, with that text in it."""
    select(tab, words)
    tab.page.get_by_role("button", name="Comment").click()
    tab.page.get_by_role("textbox", name="Comment").fill(text)
    return tab.page.locator(".note.draft")


def note(page: Page, name: str = "K1") -> Locator:
    return page.locator(f"#note-{name}")


def beside(page: Page, name: str, words: str) -> None:
    """It stands at the height of its words, and they are marked."""
    page.wait_for_function(
        """([id, words]) => {
          const note = document.getElementById(`note-${id}`);
          const block = [...document.querySelectorAll('.paper [data-line]')]
            .filter((one) => one.textContent.includes(words)).pop();
          if (!note || !block || !note.words) return false;
          const far = Math.abs(note.getBoundingClientRect().top - block.getBoundingClientRect().top);
          return note.words.toString() === words && far < 40;
        }""",
        arg=[name, words],
    )


def test_comment_is_saved_while_typing_and_follows_its_text(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        draft = composed(tab, "Which pair?")
        expect(draft.locator(".saved")).to_have_text("saved")
        (one,) = kept(project)
        assert (one.anchor.quote, one.thread[0].text, one.thread[0].by) == (WORDS, "Which pair?", "person:dev")
        assert one.severity == "should" and "comments.yaml" in {path.name for path in spec.parents[1].iterdir()}
        page.keyboard.type(" Say it.")
        expect(draft.locator(".saved")).to_have_text("saved")
        assert said(project) == ["Which pair? Say it."]
        page.reload()
        expect(note(page)).to_contain_text("Which pair? Say it.")
        beside(page, "K1", WORDS)
        replace_text(spec, "### R1: User record", "Before all this.\n\n" * 9 + "### R1: User record")
        expect(page.locator(".paper")).to_contain_text("Before all this.")
        beside(page, "K1", WORDS)
        replace_text(spec, WORDS, "It belongs to one user")
        expect(note(page)).to_contain_text("The text that this comments on is gone")
        expect(note(page)).to_have_class("note comment orphaned")
        expect(note(page).locator("blockquote")).to_have_text(WORDS)
    assert said(project) == ["Which pair? Say it."]


def test_comment_can_be_answered_edited_weighed_resolved_and_reopened(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        draft = composed(tab, "Which pair?")
        draft.get_by_role("button", name="Done").click()
        expect(page.locator(".note.draft")).to_have_count(0)
        one = note(page)
        one.get_by_role("combobox").select_option("blocker")
        expect(one.locator("header .severity")).to_have_text("blocker")
        assert [str(each.severity) for each in kept(project)] == ["blocker"]
        one.get_by_text("Reply", exact=True).first.click()
        one.get_by_role("textbox", name="Reply").fill("That of provider and subject.")
        one.get_by_role("button", name="Reply").click()
        expect(one.locator(".answer")).to_have_count(2)
        assert said(project) == ["Which pair?", "That of provider and subject."]
        one.get_by_role("button", name="Edit").first.click()
        one.get_by_role("textbox", name="Comment").fill("Which pair is it?")
        one.get_by_role("button", name="Done").click()
        expect(one.locator(".said").first).to_have_text("Which pair is it?")
        one.get_by_role("button", name="Resolve").click()
        expect(one.get_by_role("button", name="Reopen")).to_be_visible()
        assert [str(each.state) for each in kept(project)] == ["resolved"]
        one.get_by_role("button", name="Reopen").click()
        expect(one.get_by_role("button", name="Resolve")).to_be_visible()
        assert [str(each.state) for each in kept(project)] == ["open"]
    assert said(project) == ["Which pair is it?", "That of provider and subject."]


def test_second_comment_is_placed_next_to_the_first(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        composed(tab, "Which pair?")
        draft = composed(tab, "Only one?", "A user is one person.")
        expect(page.locator(".note.comment .said")).to_have_text("Which pair?")
        expect(draft.locator("textarea")).to_have_value("Only one?")
        draft.get_by_role("button", name="Done").click()
        note(page).get_by_role("button", name="Edit").click()
        note(page).get_by_role("textbox", name="Comment").fill("Which pair is it?")
        page.locator("#note-K2").get_by_role("button", name="Edit").click()
        expect(note(page).locator(".said")).to_have_text("Which pair is it?")
        expect(page.locator("#note-K2 .answer textarea")).to_have_value("Only one?")
        composed(tab, "And now?", "A user is one person.")
        expect(page.locator("#note-K2 .said")).to_have_text("Only one?")
        page.locator(".note.draft").get_by_role("button", name="Done").click()
        expect(page.locator("#note-K3")).to_contain_text("And now?")
    assert said(project) == ["Which pair is it?", "Only one?", "And now?"]


def test_comment_cannot_be_emptied_but_removed(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        draft = composed(tab, "Which pair?")
        expect(draft.locator(".saved")).to_have_text("saved")
        draft.get_by_role("textbox").fill("")
        draft.get_by_role("button", name="Done").click()
        expect(draft.locator(".saved")).to_have_text("a comment cannot be empty: remove it instead")
        draft.get_by_role("textbox").fill("Which one?")
        draft.get_by_role("button", name="Done").click()
        note(page).get_by_role("button", name="Edit").click()
        note(page).get_by_role("textbox", name="Comment").fill(" ")
        note(page).get_by_role("button", name="Done").click()
        expect(note(page).locator(".answer .saved")).to_have_text("a comment cannot be empty: remove it instead")
        assert said(project) == ["Which one?"]
        note(page).get_by_role("button", name="Remove").click()
        expect(note(page)).to_have_count(0)
        assert kept(project) == []
        page.reload()
        expect(note(page)).to_have_count(0)


def test_answered_comment_cannot_be_removed(project: Scenario, spec: Path) -> None:
    change = project.change
    comment_store.add_comment(change, comment_store.comment_anchor(change, SPEC, WORDS), "Which pair?", "person:dev")
    comment_store.add_comment(change, comment_store.comment_anchor(change, SPEC, WORDS), "Whose?", "person:other")
    comment_store.reply_to_comment(change, "K1", "That one.", "person:other")
    with visiting(project) as tab:
        page = tab.go(READ)
        expect(page.locator(".note.comment")).to_have_count(2)
        expect(page.get_by_role("button", name="Remove")).to_have_count(0)
        note(page).get_by_role("button", name="Edit").click()
        note(page).get_by_role("textbox", name="Comment").fill("")
        note(page).get_by_role("button", name="Done").click()
        expect(note(page).locator(".answer .saved")).to_have_text("a comment cannot be empty: resolve it instead")


def plain(severity: Locator) -> None:
    expect(severity).to_have_css("position", "static")
    expect(severity).to_have_css("border-top-width", "0px")


def test_note_looks_like_the_other_weights(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        composed(tab, "Which pair?").get_by_role("button", name="Done").click()
        severity = note(page).locator("header .severity")
        expect(severity).to_have_text("should")
        plain(severity)
        note(page).get_by_role("combobox").select_option("note")
        expect(severity).to_have_text("note")
        plain(severity)


def test_discarded_draft_leaves_nothing(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        draft = composed(tab, "Never mind.")
        expect(draft.locator(".saved")).to_have_text("saved")
        assert said(project) == ["Never mind."]
        draft.get_by_role("button", name="Discard").click()
        expect(page.locator(".note.comment")).to_have_count(0)
        assert kept(project) == []
        page.reload()
        expect(page.locator(".note.comment")).to_have_count(0)


HEARD = """() => new Promise((done) => {
  const stream = new EventSource('/events');
  stream.onopen = () => { window.heard = new Promise((heard) => stream.addEventListener('changed', heard)); done(); };
})"""


def test_draft_survives_an_external_change(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        tab.run(HEARD)
        draft = composed(tab, "Which pair?")
        expect(draft.locator(".saved")).to_have_text("saved")
        tab.run("window.heard.then(() => new Promise((done) => setTimeout(done, 1500)))")
        expect(page.locator("#changed")).to_be_hidden()  # one's own comment is no news
        replace_text(spec, "A user is one person.", "A user is a person.")
        expect(page.locator("#changed")).to_be_visible()
        expect(draft.get_by_role("textbox")).to_have_value("Which pair?")
        expect(page.locator(".paper")).to_contain_text("A user is one person.")
        draft.get_by_role("button", name="Done").click()
        expect(page.locator(".paper")).to_contain_text("A user is a person.")
        expect(page.locator("#changed")).to_be_hidden()
        beside(page, "K1", WORDS)


def test_new_text_is_shown_on_request_and_the_draft_stays_open(project: Scenario, spec: Path) -> None:
    with visiting(project) as tab:
        page = tab.go(READ)
        composed(tab, "Which pair?")
        replace_text(spec, "A user is one person.", "A user is a person.")
        page.locator("#changed").get_by_role("button", name="Show it").click()
        expect(page.locator(".paper")).to_contain_text("A user is a person.")
        expect(page.locator("#changed")).to_be_hidden()
        area = note(page).get_by_role("textbox", name="Comment")
        expect(area).to_have_value("Which pair?")
        expect(area).to_be_focused()
        page.keyboard.type(" Say it.")
        expect(note(page).locator(".answer .saved")).to_have_text("saved")
        assert said(project) == ["Which pair? Say it."]
        replace_text(spec, "A user is a person.", "A user is somebody.")
        page.locator("#changed").get_by_role("button", name="Show it").click()
        expect(page.locator(".paper")).to_contain_text("A user is somebody.")
        expect(area).to_have_value("Which pair? Say it.")
        area.press("Control+Enter")
        expect(note(page).locator(".said")).to_have_text("Which pair? Say it.")


def test_refreshing_the_bar_does_not_move_the_notes(project: Scenario, spec: Path) -> None:
    change = project.change
    comment_store.add_comment(change, comment_store.comment_anchor(change, SPEC, WORDS), "Which pair?", "person:dev")
    with visiting(project) as tab:
        page = tab.go(READ)
        beside(page, "K1", WORDS)
        tab.run("document.querySelector('#bar').dataset.old = 'yes'")
        note(page).evaluate("one => { one.style.top = '7px' }")
        tab.run("document.body.dispatchEvent(new CustomEvent('agentd-run'))")
        expect(page.locator("#bar[data-old]")).to_have_count(0)
        page.wait_for_timeout(300)
        assert note(page).evaluate("one => one.style.top") == "7px"
        page.set_viewport_size({"width": 1300, "height": 700})
        beside(page, "K1", WORDS)


def test_comment_of_one_browser_appears_in_another(project: Scenario, spec: Path) -> None:
    with served(project) as door, entered(door) as one, entered(door) as other:
        for tab in (one, other):
            tab.go(READ)
        composed(one, "Which pair?").get_by_role("button", name="Done").click()
        expect(note(other.page)).to_contain_text("Which pair?")
        beside(other.page, "K1", WORDS)
        note(other.page).get_by_role("button", name="Resolve").click()
        expect(note(one.page).get_by_role("button", name="Reopen")).to_be_visible()


def test_comment_is_resolved_by_a_plain_form_without_javascript(project: Scenario, spec: Path) -> None:
    change: Change = project.change
    place = comment_store.comment_anchor(change, SPEC, WORDS)
    comment_store.add_comment(change, place, "Which pair?", "person:dev")
    with visiting(project, java_script_enabled=False) as tab:
        page = tab.go(READ)
        note(page).get_by_role("button", name="Resolve").click()
        expect(note(page).get_by_role("button", name="Reopen")).to_be_visible()
        assert page.url.endswith(READ)
    wait_until(lambda: [str(one.state) for one in kept(project)] == ["resolved"], "it is closed")
