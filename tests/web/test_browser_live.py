"""A run that is looked at while it works: what it does appears by itself, and it is stopped and gone on with there."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from playwright.sync_api import Route, expect

from agentd.change import lifecycle
from agentd.change.state import CallRecord
from agentd.domain import events
from agentd.project.layout import find_project
from browser import visiting
from plans import notes_tasks, proposal_text
from playbooks import plan_steps, report_in_text, say, usage, write_document
from processes import wait_until
from scenario import NO_REVIEWS, Scenario

HOME = "/changes/add-oauth"
SLOW = [say("Reading the notes."), usage(0.25), write_document("proposal.md"), {"wait": 600.0}]


@pytest.fixture(autouse=True)
def nothing_left(project: Scenario) -> Iterator[None]:
    yield
    project.agentd("stop", "add-oauth")


def test_run_shows_its_steps_and_can_be_stopped_and_resumed(project: Scenario) -> None:
    project.with_agents(plan_steps(proposal_gen=SLOW), workflow=NO_REVIEWS)
    with visiting(project) as tab:
        page = tab.page
        expect(page.locator("#inbox")).to_contain_text("No open changes")
        assert project.run("plan", "--detach").code == 0
        expect(page.locator("#inbox .chip.live")).to_have_text("drafting")
        page.locator("a.entry").click()
        expect(page.locator("#phase .live")).to_be_visible()
        tab.go(f"{HOME}/run")
        part = page.locator("#part")
        expect(part.locator(".steps .running")).to_contain_text("roposal")
        expect(part).to_contain_text("Agent activity")
        part.get_by_text("Agent activity").click()
        actions = part.locator("details[data-fold=actions] .story")
        expect(actions).to_contain_text("proposal.md")
        expect(actions).to_contain_text("Reading the notes.")
        expect(part.locator("details[data-fold^=acts-]")).to_contain_text("Reading the notes.")
        expect(part.locator("details[data-fold^=acts-] .story")).to_be_hidden()
        expect(page.locator("#bar")).to_contain_text("0.25 USD")
        page.locator("#bar").get_by_role("button", name="Stop").click()
        expect(page.locator("#told")).to_contain_text("Stopped; what was done is kept.")
        wait_until(lambda: project.change.active_run() is None, "it is stopped")
        expect(page.locator("#choice-resume")).to_be_visible()
        expect(page.locator("#phase .live")).to_have_count(0)
        project.replay(plan_steps())
        page.locator("#choice-resume summary").click()
        page.locator("#choice-resume button").click()
        expect(page.locator("#told")).to_contain_text("add-oauth continues in the background")
        expect(page.locator("#phase")).to_contain_text("challenged")
        expect(part).to_contain_text("The last run")
    assert project.change.read().phase == "challenged"


def test_page_requested_just_before_the_end_of_a_run_is_refreshed(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    with ExitStack() as run, visiting(project) as tab:
        run.enter_context(change.running("agentd plan add-oauth"))
        change.journal().append(events.RunStarted(workflow="plan", command="agentd plan add-oauth"))
        page = tab.go(f"{HOME}/run")
        expect(page.locator("#bar[data-running]")).to_be_visible()
        expect(page.locator("#part")).not_to_contain_text("The last run")

        def ended(route: Route) -> None:
            time.sleep(1)  # the other part has its answer by now
            run.close()
            route.continue_()

        page.route("**/bar", ended)
        change.journal().append(events.RunFinished(workflow="plan", exit_code=0, message="All is well."))
        expect(page.locator("#part")).to_contain_text("The last run")


def test_exhausted_budget_can_be_raised_on_the_page(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED"), more="[budget]\nper_change = 0.04\n").change
    change.update(lambda old: old.with_call(CallRecord("x", "play", "planner", "m", 1, 1, 0, 1, 0.04, "", None)))
    assert project.run("plan").code == 7
    with visiting(project) as tab:
        page = tab.page
        expect(page.locator("#inbox .waits")).to_contain_text("has cost 0.04 USD of its 0.04 USD")
        tab.go(HOME)
        page.locator("#choice-resume summary").click()
        panel = page.locator("#choice-resume .panel")
        expect(panel).to_contain_text("0.04 of 0.04 USD spent")
        panel.get_by_role("spinbutton").fill("0.5")
        panel.get_by_role("button").click()
        expect(page.locator("#phase")).to_contain_text("challenged")
    raised = change.read().budget
    assert raised and (raised.per_change, raised.by) == (0.5, "person:dev")
    assert project.started_steps() == ["challenge"]


def test_tabs_appear_when_there_is_something_to_show(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "drafted", "A plan")
    with visiting(project) as tab:
        page = tab.go("/changes/drafted/run")
        tabs = page.locator(".tabs a")
        expect(tabs).to_have_text(["Overview", "Run"])
        tabs.first.focus()
        change.update(lambda old: replace(old, description="Another plan"))
        (change.folder / "proposal.md").write_text(proposal_text("drafted", ["notes"]))
        expect(tabs).to_have_text(["Overview", "Read", "Run"])
        (change.folder / "tasks.md").write_text(notes_tasks("drafted"))
        expect(tabs).to_have_text(["Overview", "Read", "Tasks", "Run"])
        expect(page.locator(".tabs [aria-current]")).to_have_text("Run")
        tabs.nth(2).click()
        expect(page.locator("#part")).to_contain_text("Do it")


def test_page_reports_a_lost_server(project: Scenario) -> None:
    project.proposed(report_in_text("APPROVED"))
    with visiting(project, "ERR_", "net::", "htmx:") as tab:
        tab.go(HOME)
        tab.door.process.kill()
        expect(tab.page.locator("[data-connection]")).to_contain_text("run agentd view again")
