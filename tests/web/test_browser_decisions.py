"""Decisions in the browser: a run that waits goes on, and an approval counts for what was read and nothing else."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from agentd.change.folder import Change
from agentd.change.state import TransitionRecord
from agentd.domain.terms import Phase
from browser import Tab, visiting
from playbooks import NEEDS_REVISION, edit_spec, previous, report, report_in_text
from scenario import Scenario, replace_text
from terminal import at_question

HOME = "/changes/add-oauth"
REFUSED = "status of 409"
USER = "A user is one person."
SETTLED = previous(C1="fixed", C2="fixed")


def choice(page: Page, name: str, reason: str = "") -> Locator:
    """The button that decides, in its panel, which is opened."""
    panel = page.locator(f"#choice-{name}")
    panel.locator("summary").click()
    if reason:
        panel.get_by_role("textbox").fill(reason)
    return panel.get_by_role("button")


def last_move(change: Change) -> TransitionRecord:
    return change.read().history[-1]


# ---- a run that waits at a terminal


@pytest.mark.parametrize("path", [HOME, f"{HOME}/read/proposal.md", f"{HOME}/run"])
def test_question_of_a_run_can_be_answered_on_the_page(project: Scenario, path: str) -> None:
    change = project.proposed(NEEDS_REVISION, rounds=1).change
    person = at_question(project)
    with visiting(project) as tab:
        page = tab.page
        expect(page.locator("#inbox")).to_contain_text("The challenge found 1 high and 1 medium. What next?")
        tab.go(path)
        expect(page.locator("#bar")).to_contain_text("waits for you")
        choice(page, "accept", "Good enough for now.").click()
        expect(page.locator("#told")).to_contain_text("Decided: accept")
        assert person.waits() == 0
        expect(page.locator("#phase")).to_contain_text("challenged")
        expect(page.locator("#choice-accept")).to_have_count(0)
    assert project.decisions() == [("accept", "person:dev", "inbox", "Good enough for now.")]
    moved = last_move(change)
    assert (moved.by, moved.why, dict(moved.hashes)) == ("person:dev", "Good enough for now.", change.hashes())
    assert set(project.finding_states().values()) == {"accepted"}


def test_fix_answer_continues_the_run_with_a_new_challenge(project: Scenario) -> None:
    project.proposed(
        NEEDS_REVISION, {"reproposal": [edit_spec()], "challenge/2": report("APPROVED", previous=SETTLED)}, rounds=1
    )
    person = at_question(project)
    with visiting(project) as tab:
        page = tab.go(HOME)
        choice(page, "fix").click()
        expect(page.locator("#told")).to_contain_text("Decided: fix")
        assert person.waits() == 0
        expect(page.locator("#bar")).not_to_contain_text("waits for you")
        assert project.started_steps() == ["challenge", "reproposal", "challenge"]
        tab.go(f"{HOME}/rounds")
        expect(page.locator("#challenge-2")).to_contain_text("What changed since the previous round")
        expect(page.locator("#challenge-2 ins")).to_have_text(["(1) "])
    assert project.decisions()[0] == ("fix", "person:dev", "inbox", None)


def test_run_answered_with_stop_keeps_its_findings(project: Scenario) -> None:
    project.proposed(NEEDS_REVISION, rounds=1)
    person = at_question(project)
    with visiting(project) as tab:
        page = tab.go(HOME)
        choice(page, "stop").click()
        assert person.waits() == 1
        expect(page.locator("#choice-send-back")).to_be_visible()
    assert set(project.finding_states().values()) == {"open"}


# ---- what was read


def opened_all(tab: Tab, *names: str) -> Page:
    for name in names:
        tab.go(f"{HOME}/read/{name}")
    return tab.page


def test_approval_is_bound_to_the_read_content(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project) as tab:
        page = opened_all(tab, "proposal.md")
        expect(page.locator("#bar")).to_contain_text("2 of the plan's documents not opened yet")
        opened_all(tab, "tasks.md", "specs/user-model.md")
        expect(page.locator("#bar")).not_to_contain_text("not opened yet")
        expect(page.locator(".documents a[data-state=read]")).to_have_count(3)
        choice(page, "approve").click()
        expect(page.locator("#phase")).to_contain_text("challenged")
        expect(page.locator("#choice-approve")).to_have_count(0)
    moved = last_move(change)
    assert (moved.by, moved.to, dict(moved.hashes)) == ("person:dev", Phase.CHALLENGED, change.hashes())


def rewritten_before(tab: Tab, change: Change) -> None:
    """A document that was read before, while another is read."""
    opened_all(tab, "specs/user-model.md", "proposal.md")
    replace_text(change.folder / "specs/user-model.md", USER, "A user is one machine.")


def rewritten_here(tab: Tab, change: Change) -> None:
    """The one that is read."""
    opened_all(tab, "proposal.md", "specs/user-model.md")
    replace_text(change.folder / "specs/user-model.md", USER, "A user is one machine.")
    expect(tab.page.locator(".paper")).to_contain_text("A user is one machine.")


def rewritten_unread(tab: Tab, change: Change) -> None:
    """One that was never opened, after the page was loaded."""
    opened_all(tab, "proposal.md")
    replace_text(change.folder / "specs/user-model.md", USER, "A user is one machine.")


@pytest.mark.parametrize("edit", [rewritten_before, rewritten_here, rewritten_unread])
def test_stale_approval_shows_the_difference(project: Scenario, edit: Callable[[Tab, Change], None]) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project, REFUSED) as tab:
        edit(tab, change)
        before = change.read()
        choice(tab.page, "approve").click()
        told = tab.page.locator("#told")
        expect(told).to_contain_text("specs/user-model.md changed since this page was made, so nothing was decided")
        expect(told.locator("del")).to_have_text(["person"])
        expect(told.locator("ins")).to_have_text(["machine"])
        for shown in (told.locator("ins"), told.get_by_role("button", name="Approve as it is now")):
            expect(shown).to_be_in_viewport()
        assert change.read() == before
        told.get_by_role("button", name="Approve as it is now").click()
        expect(tab.page.locator("#phase")).to_contain_text("challenged")
    moved = last_move(change)
    assert (moved.by, dict(moved.hashes)) == ("person:dev", change.hashes())


def test_difference_in_a_long_document_is_scrolled_into_view(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    replace_text(change.folder / "specs/user-model.md", "## Overview", "A word.\n\n" * 400 + "## Overview")
    with visiting(project, REFUSED) as tab:
        rewritten_before(tab, change)
        choice(tab.page, "approve").click()
        expect(tab.page.locator("#told ins")).to_be_in_viewport()
        expect(tab.page.locator("#told")).to_contain_text("lines as before")


def test_second_difference_is_shown_again(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project, REFUSED) as tab:
        rewritten_before(tab, change)
        choice(tab.page, "approve").click()
        told = tab.page.locator("#told")
        again = told.get_by_role("button", name="Approve as it is now")
        expect(again).to_be_visible()
        replace_text(change.folder / "specs/user-model.md", "one machine", "a machine")
        again.click()
        expect(told.locator("ins")).to_have_text(["a"])
        assert change.read().phase is Phase.PROPOSED
        again.click()
        expect(tab.page.locator("#phase")).to_contain_text("challenged")


def test_plan_can_be_sent_back_and_rejected_with_a_reason(project: Scenario) -> None:
    change = project.challenged("APPROVED", ("low", "It is plain")).change
    with visiting(project) as tab:
        page = tab.go(HOME)
        send = choice(page, "send-back")
        send.click()
        assert page.locator("#told").inner_text() == "", "nothing is sent without a reason"
        page.locator("#choice-send-back").get_by_role("textbox").fill("Say who may delete a user.")
        send.click()
        expect(page.locator("#part")).to_contain_text("Say who may delete a user.")
        expect(page.locator("#phase")).to_contain_text("proposed")
        choice(page, "reject", "Nobody needs it.").click()
        expect(page.locator("#phase")).to_contain_text("rejected")
    assert (last_move(change).by, last_move(change).why) == ("person:dev", "Nobody needs it.")


def test_approval_can_include_notes(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project) as tab:
        choice(tab.go(HOME), "approve-with-notes", "Mind the index.").click()
        expect(tab.page.locator("#phase")).to_contain_text("challenged")
    assert last_move(change).why == "Mind the index."


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}])
def test_decision_is_a_plain_form_without_htmx(project: Scenario, options: dict[str, bool]) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with visiting(project, "ERR_FAILED", REFUSED, **options) as tab:
        tab.page.context.route("**/vendor/*", lambda route: route.abort())
        opened_all(tab, "specs/user-model.md", "proposal.md")
        replace_text(change.folder / "specs/user-model.md", USER, "A user is one machine.")
        choice(tab.page, "approve").click()
        expect(tab.page.locator(".told del")).to_have_text(["person"])
        tab.page.get_by_role("button", name="Approve as it is now").click()
        expect(tab.page.locator(".told.good")).to_be_visible()
        tab.page.get_by_role("link", name="Back to add-oauth").click()
        expect(tab.page.locator("#phase")).to_contain_text("challenged")
    assert last_move(project.change).by == "person:dev"
