"""The keyboard alone is enough, and so is a phone."""

import json
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from agentd.change import comment_store
from agentd.change.state import CallRecord
from agentd.domain.terms import Phase
from browser import PHONE, focused, is_as_wide_as_its_window, select, visiting, wait_for_focus
from plans import SHORT_TITLES, SPEC_FILE
from playbooks import report_in_text
from scenario import Scenario

HOME = "/changes/add-oauth"
PARTS = (
    "",
    "/read/proposal.md",
    f"/read/{SPEC_FILE}",
    "/read/tasks.md",
    "/rounds",
    "/tasks",
    "/trace",
    "/specs",
    "/run",
)


def test_plan_can_be_approved_from_the_inbox_by_keyboard(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    project.notes_proposed("another", {})
    with visiting(project) as tab:
        page, press = tab.page, tab.page.keyboard.press
        expect(page.locator(".list > li")).to_have_count(2)
        for key, place in (("j", 0), ("j", 1), ("j", 1), ("k", 0), ("k", 0)):
            press(key)
            expect(page.locator(".list > li").nth(place)).to_have_class("chosen")
        wanted = page.locator(".entry b").all_inner_texts().index("add-oauth")
        for _ in range(wanted):
            press("j")
        press("Enter")
        page.wait_for_url(f"**{HOME}")
        press("j")
        press("j")
        press("Enter")
        page.wait_for_url(f"**{HOME}/read/{SPEC_FILE}")
        for _ in range(3):
            press("j")
        press("k")
        target = page.locator(".paper .target")
        expect(target).to_have_count(1)
        quoted = target.inner_text()
        press("c")
        wait_for_focus(tab, "textarea")
        page.keyboard.type("Which one?")
        press("Escape")
        expect(page.locator(".note.draft")).to_have_count(0)
        expect(page.locator("#note-K1")).to_contain_text("Which one?")
        (one,) = comment_store.current_comments(change)
        assert one.anchor.quote.strip("#* ") in quoted and one.thread[0].text == "Which one?"
        expect(page.locator("#choice-accept")).to_have_count(1)
        comment_store.resolve_comment(change, "K1", "person:dev")
        page.reload()
        expect(page.locator("#choice-approve")).to_have_count(1)
        press("a")
        wait_for_focus(tab, "button")
        press("Escape")
        expect(page.locator("#choice-approve")).not_to_have_attribute("open", "")
        wait_for_focus(tab, "summary")
        press("a")
        press("Enter")
        expect(page.locator("#phase")).to_contain_text("challenged")
    assert change.read().history[-1].by == "person:dev"


def test_refreshed_list_keeps_the_selection(project: Scenario) -> None:
    change = project.notes_proposed("another", {})
    with visiting(project) as tab:
        tab.page.keyboard.press("j")
        change.update(lambda old: replace(old, description="Something else"))
        expect(tab.page.locator("#inbox")).to_contain_text("Something else")
        expect(tab.page.locator(".list > li.chosen")).to_have_count(1)


def test_selection_stays_on_its_change_when_another_is_added_above(project: Scenario) -> None:
    project.notes_proposed("later", {})
    with visiting(project) as tab:
        rows, chosen = tab.page.locator(".list > li"), tab.page.locator(".list > li.chosen")
        tab.page.keyboard.press("j")
        expect(chosen.locator("b").first).to_have_text("later")
        state = "change_id: waits-longer\nphase: proposed\ndescription: Older\nupdated_at: 2026-01-19T10:30:39Z\n"
        project.write("agentd/changes/waits-longer/STATE.yaml", state)
        expect(rows.first.locator("b").first).to_have_text("waits-longer")
        expect(chosen.locator("b").first).to_have_text("later")
        tab.page.keyboard.press("k")
        expect(chosen.locator("b").first).to_have_text("waits-longer")


def test_comment_shortcut_works_on_every_page(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project) as tab:
        page, press = tab.page, tab.page.keyboard.press
        for path in ("/", HOME, f"{HOME}/tasks"):
            tab.go(path)
            if path == "/":
                press("j")
            press("c")
            page.wait_for_url("**/read/proposal.md#comment")
            expect(page.locator(".paper .target")).to_have_count(1)
        press("c")
        wait_for_focus(tab, "textarea")
        page.keyboard.type("Why?")
        press("Escape")
        expect(page.locator("#note-K1")).to_contain_text("Why?")
    assert [one.document for one in comment_store.current_comments(change)] == ["proposal.md"]


def test_plan_can_be_sent_back_by_keyboard(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    with visiting(project) as tab:
        page, press = tab.page, tab.page.keyboard.press
        press("j")
        press("r")
        page.wait_for_url("**#send-back")
        expect(page.locator("#choice-send-back")).to_have_attribute("open", "")
        wait_for_focus(tab, "textarea[reason]")
        page.keyboard.type("Say who may delete a user, j and k.")
        press("Tab")
        wait_for_focus(tab, "button")
        press("Enter")
        expect(page.locator("#part")).to_contain_text("Say who may delete a user")
    assert change.read().phase is Phase.PROPOSED


def test_shortcut_help_lists_every_key_and_tab_stops_are_visible(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    with visiting(project) as tab:
        page = tab.go(f"{HOME}/read/proposal.md")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#keys")).to_be_hidden()
        page.keyboard.press("]")
        page.wait_for_url(f"**/read/{SPEC_FILE}")
        page.keyboard.press("[")
        page.wait_for_url("**/read/proposal.md")
        seen = []
        for _ in range(25):
            page.keyboard.press("Tab")
            seen.append(focused(tab))
        assert {"a", "summary", "button"} <= set(seen)
        page.keyboard.press("u")
        expect(page.locator("#inbox")).to_be_visible()


def test_shortcut_jumps_to_the_next_finding(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    for words in ("A user is one person.", "The pair is unique"):
        comment_store.add_comment(
            change, comment_store.comment_anchor(change, SPEC_FILE, words), f"About: {words}", "person:dev"
        )
    with visiting(project) as tab:
        page = tab.go(f"{HOME}/read/{SPEC_FILE}")
        for key, name in (("n", "K1"), ("n", "K2"), ("p", "K1")):
            page.keyboard.press(key)
            expect(page.locator(".note.chosen")).to_have_id(f"note-{name}")


# ---- a phone


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_layout_fits_the_screen_width(project: Scenario, scheme: str) -> None:
    project.with_notes(start="")
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks " + "very-" * 60)).change
    project.notes_proposed("short-" + "titles-" * 8 + "x", {"notes": SHORT_TITLES})
    place = comment_store.comment_anchor(change, SPEC_FILE, "The pair is unique")
    comment_store.add_comment(change, place, "a-very-long-word-" * 40, "person:dev")
    wide = "| a | b |\n|-|-|\n| " + "wide " * 60 + "| `" + "x" * 300 + "` |\n\n```\n" + "x" * 500 + "\n```\n"
    with (change.folder / "proposal.md").open("a") as file:
        file.write(f"\n## More\n\n{wide}\n{'https://e.example/' + 'x' * 300}\n")
    with visiting(project, **PHONE, color_scheme=scheme) as tab:
        for path in ("/", *(HOME + part for part in PARTS)):
            tab.go(path)
            assert is_as_wide_as_its_window(tab), path
        colours = tab.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
        light = [sum(json.loads(one.replace("rgb(", "[").replace(")", "]"))) for one in colours]
        assert (light[0] > light[1]) is (scheme == "light")


CUT = """() => [...document.querySelectorAll('.stands p, .as-cards td > *, .chart text')].filter((one) => {
  const at = one.getBoundingClientRect();
  return one.scrollWidth > one.clientWidth + 1 || at.right > innerWidth || (one.matches('td > span') && at.width < 200);
}).map((one) => one.textContent)"""


def test_phone_layout_cuts_nothing_off(project: Scenario) -> None:
    change = project.challenged(
        "NEEDS_REVISION", ("high", "It breaks"), ("medium", "It is slow"), ("low", "It is plain")
    ).change
    change.update(
        lambda old: old.with_call(CallRecord("x", "play", "planner", "a-model", 1, 1, 0, 1, 1234.5, "", None))
    )
    with visiting(project, **PHONE) as tab:
        for part, words in (("/tasks", "Store users"), ("/trace", "User record"), ("/cost", "1234.50 USD")):
            expect(tab.go(HOME + part).locator("#part")).to_contain_text(words)
            assert tab.run(CUT) == [], part
            expect(tab.page.locator(".stands .age")).to_contain_text("for ")
            expect(tab.page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.9)


def test_phone_layout_keeps_the_order_of_notes(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    for number in range(4):
        place = comment_store.comment_anchor(change, SPEC_FILE, "The pair is unique")
        comment_store.add_comment(change, place, f"Word {number}", "person:dev")
    with visiting(project, **PHONE) as tab:
        page = tab.go(f"{HOME}/read/{SPEC_FILE}")
        notes = page.locator(".paper .note.comment .said")
        expect(notes).to_have_text([f"Word {number}" for number in range(4)])
        page.keyboard.press("n")
        expect(page.locator(".note.chosen")).to_have_count(1)
        expect(notes).to_have_text([f"Word {number}" for number in range(4)])


def test_phone_layout_shows_notes_inline_and_allows_a_decision(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    place = comment_store.comment_anchor(change, SPEC_FILE, "The pair is unique")
    comment_store.add_comment(change, place, "Which pair?", "person:dev")
    with visiting(project, **PHONE) as tab:
        page = tab.go(f"{HOME}/read/{SPEC_FILE}")
        note = page.locator(".paper #note-K1")
        expect(note).to_contain_text("Which pair?")
        before = note.evaluate("one => one.previousElementSibling.textContent")
        assert "The pair is unique" in before
        select(tab, "A user is one person.")
        page.get_by_role("button", name="Comment").click()
        page.get_by_role("textbox", name="Comment").fill("Only one?")
        page.get_by_role("button", name="Done").click()
        expect(page.locator(".paper #note-K2")).to_contain_text("Only one?")
        page.locator("#choice-accept summary").tap()
        panel = page.locator("#choice-accept .panel")
        box = panel.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
        panel.get_by_role("textbox").fill("Good enough.")
        panel.get_by_role("button").tap()
        expect(page.locator("#phase")).to_contain_text("challenged")
    assert project.change.read().history[-1].why == "Good enough."
