"""The pages as the documentation shows them, of a project that looks like one; AGENTD_PICTURES says where to."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agentd.change import comment_store, lifecycle
from agentd.change.folder import Change
from agentd.documents.comments import CommentSeverity
from agentd.project.layout import find_project
from browser import MERMAID_STYLES, PHONE, Tab, entered, is_as_wide_as_its_window, served
from plans import BAD_CODE, NOTES, delta_text, requirement_text
from playbooks import answer, edit_document, example_plan_steps, finding, implement, previous, report
from playbooks import report as reviewed
from raw_http import Server
from scenario import CHECK, NO_REVIEWS, Scenario

AUTH, USERS = "specs/auth-flow.md", "specs/user-model.md"
HOME = "/changes/add-oauth"
LONGER = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 120 characters."))
SEARCH = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is found by any of its words."))
BUDGET = "[budget]\nper_change = 0.5\n"
STOLEN: dict[str, Any] = {
    "title": "A stolen callback address signs the thief in",
    "what": "Nothing says that the callback must come from the browser that started the sign-in.",
    "suggestion": "Bind `state` to a cookie that the browser had before.",
    "evidence": {"file": AUTH, "quote": "accepts a callback only with a `state` that it issued"},
}
TAKEN: dict[str, Any] = {
    "title": "Two providers with one address can become two users",
    "what": "R2 joins by a verified address, but two first sign-ins at once both find nobody.",
    "suggestion": "Say that the address is unique in the store, and what the second sign-in sees.",
    "evidence": {"file": USERS, "quote": "joins the user with the same `email` only if the provider says"},
}
ENDS: dict[str, Any] = {
    "title": "Nobody can sign out everywhere",
    "what": "The cookie is valid for 7 days, and nothing ends it earlier.",
    "suggestion": "Add a requirement, or say that this is left for later.",
    "evidence": {"file": AUTH, "quote": "valid for 7 days"},
}
COLD = finding(
    "medium",
    "Without a name the greeting ends in a comma",
    what="`greet()` says “Hello, !”, and R2 wants the world greeted.",
    requirement="greeting:R2",
    evidence={"file": "greeting.py", "line": 5, "quote": "return f"},
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("pictures")
    with Scenario(root / "notes-service", root / "home").with_project().entered() as box:
        sign_in(box)
        greeting(box)
        box.write("agentd/specs/notes.md", NOTES)
        described(box.notes_proposed("longer-titles", {"notes": LONGER}), "Allow titles of 120 characters")
        described(box.notes_proposed("search-by-word", {"notes": SEARCH}), "Find notes by the words of their titles")
        lifecycle.create_change(
            find_project(), "share-a-note", "Let people share a note by a link that ends after a week"
        )
        with served(box) as door:
            yield door


def described(change: Change, words: str) -> None:
    change.update(lambda old: replace(old, description=words))


def sign_in(box: Scenario) -> None:
    """A plan in its second round, with words of its judge and of a person beside it."""
    steps = example_plan_steps()
    first, second = (finding("high", **STOLEN), finding("medium", **TAKEN)), finding("low", **ENDS)
    steps["challenge"] = report("NEEDS_REVISION", *first, summary="Sound, but for what a thief can do with a callback.")
    mended = "accepts a callback only from the browser that began, with a `state` that it issued to the same browser"
    steps["reproposal"] = [
        edit_document(AUTH, "accepts a callback only with a `state` that it issued to the same browser", mended),
        answer("C1", "fixed", "R2 says so now."),
        answer("C2", "disputed", "R1 has it: an address is unique."),
    ]
    judged = previous("Two at once are still not told apart.", C1="fixed", C2="open")
    words = "The callback is safe now. Two sign-ins at once are still open."
    steps["challenge/2"] = report("NEEDS_REVISION", second, previous=judged, summary=words)
    box.with_agents(steps, BUDGET, NO_REVIEWS)
    assert box.run("plan", "--yes", "--rounds", "1").code == 1
    change = box.change
    place = comment_store.comment_anchor(change, AUTH, "keeps both for 10 minutes")
    comment_store.add_comment(
        change, place, "Ten minutes is short when the provider asks for a second factor.", "person:dev"
    )
    comment_store.reply_to_comment(change, "K1", "Fifteen, then. The others allow that too.", "person:ada")
    place = comment_store.comment_anchor(change, AUTH, "On any failure no cookie is set.")
    comment_store.add_comment(change, place, "Good.", "person:ada", CommentSeverity.NOTE)


def greeting(box: Scenario) -> None:
    """Code that was reviewed, and is not right yet."""
    box.greeting_approved(
        {"implement-greeting": implement(BAD_CODE), "review": reviewed("NEEDS_CHANGES", COLD)}, BUDGET + CHECK
    )
    assert box.run("impl", "--rounds", "0").code == 1


FOLDER = os.environ.get("AGENTD_PICTURES") and Path(os.environ["AGENTD_PICTURES"]).absolute()  # from where we start


def picture(page: Page, name: str) -> None:
    if FOLDER:
        FOLDER.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


def read(tab: Tab) -> Page:
    """The spec, with its diagram drawn and its notes in place."""
    page = tab.go(f"{HOME}/read/{AUTH}")
    expect(page.locator("figure.diagram > svg")).to_have_count(1)
    for name in ("C1", "C3", "K1", "K2"):
        expect(page.locator(f"#note-{name}")).to_be_visible()
    page.evaluate("document.querySelector('#r1').scrollIntoView({behavior: 'instant'})")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_documentation_screenshots_are_rendered(shown: Server, scheme: str) -> None:
    size = {"width": 1360, "height": 860}
    with entered(shown, MERMAID_STYLES, viewport=size, color_scheme=scheme) as tab:
        suffix = "" if scheme == "light" else "-dark"
        expect(tab.go("/").locator(".list > li")).to_have_count(5)
        picture(tab.page, f"inbox{suffix}")
        picture(read(tab), f"reading{suffix}")
        tab.go(HOME)
        picture(tab.page, f"overview{suffix}")
        expect(tab.go(f"{HOME}/rounds").locator("#challenge-2 ins").first).to_be_visible()
        picture(tab.page, f"rounds{suffix}")
        expect(tab.go(f"{HOME}/tasks").locator(".picture svg .node").first).to_be_visible()
        picture(tab.page, f"tasks{suffix}")
        expect(tab.go(f"{HOME}/cost").locator(".picture svg").first).to_be_visible()
        picture(tab.page, f"cost{suffix}")
        expect(tab.go(f"{HOME}/trace").locator("table")).to_be_visible()
        picture(tab.page, f"trace{suffix}")
        expect(tab.go("/changes/greet/code").locator(".remark").first).to_contain_text("ends in a comma")
        picture(tab.page, f"code{suffix}")
        expect(tab.go("/changes/greet/checks").locator(".output").first).to_be_visible()
        picture(tab.page, f"checks{suffix}")
        expect(tab.go("/changes/longer-titles/specs").locator("#spec-notes ins").first).to_be_visible()
        picture(tab.page, f"specs{suffix}")
        tab.go(f"{HOME}/run")
        picture(tab.page, f"run{suffix}")


def test_phone_screenshots_are_rendered(shown: Server) -> None:
    with entered(shown, MERMAID_STYLES, **PHONE) as tab:
        for path, name in (("/", "phone-inbox"), (HOME, "phone-overview"), (f"{HOME}/rounds", "phone-rounds")):
            tab.go(path)
            assert is_as_wide_as_its_window(tab)
            picture(tab.page, name)
        page = read(tab)
        page.evaluate("document.querySelector('#r2').scrollIntoView({behavior: 'instant'})")
        picture(page, "phone-read")
