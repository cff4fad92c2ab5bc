"""The keyboard alone is enough, and so is a phone."""

import json
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from agentd.change import comments
from agentd.terms import Phase
from archived import SHORTER, laid_out
from browser import PHONE, focused, is_as_wide_as_its_window, select, visiting
from finished import begun
from judged import SPEC_FILE, judged, said
from planned import change_of, proposed
from support import Box

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


def test_from_the_inbox_to_an_approval_without_a_mouse(project: Box) -> None:
    change = proposed(project, said("APPROVED"))
    begun(project, "another", {})
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
        assert focused(tab) == "textarea"
        page.keyboard.type("Which one?")
        press("Escape")
        expect(page.locator(".note.draft")).to_have_count(0)
        expect(page.locator("#note-K1")).to_contain_text("Which one?")
        (one,) = comments.seen(change)
        assert one.anchor.quote.strip("#* ") in quoted and one.thread[0].text == "Which one?"
        expect(page.locator("#choice-accept")).to_have_count(1)
        comments.resolve(change, "K1", "person:dev")
        page.reload()
        expect(page.locator("#choice-approve")).to_have_count(1)
        press("a")
        assert focused(tab) == "button"
        press("Escape")
        expect(page.locator("#choice-approve")).not_to_have_attribute("open", "")
        assert focused(tab) == "summary"
        press("a")
        press("Enter")
        expect(page.locator("#phase")).to_contain_text("challenged")
    assert change.read().history[-1].by == "person:dev"


def test_a_list_that_is_made_anew_keeps_the_place(project: Box) -> None:
    change = begun(project, "another", {})
    with visiting(project) as tab:
        tab.page.keyboard.press("j")
        change.update(lambda old: replace(old, description="Something else"))
        expect(tab.page.locator("#inbox")).to_contain_text("Something else")
        expect(tab.page.locator(".list > li.chosen")).to_have_count(1)


def test_a_plan_is_sent_back_without_a_mouse(project: Box) -> None:
    change = judged(project, ("high", "It breaks"))
    with visiting(project) as tab:
        page, press = tab.page, tab.page.keyboard.press
        press("j")
        press("r")
        page.wait_for_url("**#send-back")
        expect(page.locator("#choice-send-back")).to_have_attribute("open", "")
        assert focused(tab) == "textarea[reason]"
        page.keyboard.type("Say who may delete a user, j and k.")
        press("Tab")
        assert focused(tab) == "button"
        press("Enter")
        expect(page.locator("#part")).to_contain_text("Say who may delete a user")
    assert change.read().phase is Phase.PROPOSED


def test_every_key_is_told_and_every_stop_of_the_tab_key_is_seen(project: Box) -> None:
    judged(project, ("high", "It breaks"))
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


def test_the_next_finding_is_one_key_away(project: Box) -> None:
    change = proposed(project, said("APPROVED"))
    for words in ("A user is one person.", "The pair is unique"):
        comments.add(change, comments.anchored(change, SPEC_FILE, words), f"About: {words}", "person:dev")
    with visiting(project) as tab:
        page = tab.go(f"{HOME}/read/{SPEC_FILE}")
        for key, name in (("n", "K1"), ("n", "K2"), ("p", "K1")):
            page.keyboard.press(key)
            expect(page.locator(".note.chosen")).to_have_id(f"note-{name}")


# ---- a phone


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(project: Box, scheme: str) -> None:
    laid_out(project, start="")
    change = judged(project, ("high", "It breaks " + "very-" * 60))
    begun(project, "short-" + "titles-" * 8 + "x", {"notes": SHORTER})
    place = comments.anchored(change, SPEC_FILE, "The pair is unique")
    comments.add(change, place, "a-very-long-word-" * 40, "person:dev")
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


def test_on_a_phone_notes_stand_between_the_lines_and_one_can_decide(project: Box) -> None:
    change = judged(project, ("high", "It breaks"))
    place = comments.anchored(change, SPEC_FILE, "The pair is unique")
    comments.add(change, place, "Which pair?", "person:dev")
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
    assert change_of(project).read().history[-1].why == "Good enough."
