"""Documents, findings, comments, names and journals that want to run or load something, in a real browser."""

import json
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect
from test_hostile_pages import HOSTILE

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.domain import events
from browser import MERMAID_STYLES, Tab, visiting
from plans import SHORT_TITLES, SPEC_FILE, TASKS_TEXT
from playbooks import say
from scenario import Scenario

HOME = "/changes/add-oauth"
MARK = "<img src=x onerror=window.hit=1><script>window.hit=1</script>\"'><svg onload=window.hit=1>"
QUIET = """() => {
  const ours = [...document.scripts].every((one) => one.src.startsWith(location.origin + '/static/'));
  const strange = 'iframe, frame, object, embed, base, meta[http-equiv], form[action*="//"], foreignObject, '
    + 'svg a, svg script';
  const handlers = [...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())
    .filter((name) => name.startsWith('on'));
  const links = [...document.querySelectorAll('[href], [src]')]
    .map((one) => one.getAttribute('href') || one.getAttribute('src') || '')
    .filter((address) => /^\\s*(javascript|vbscript|data|file|blob):/i.test(address));
  return {hit: window.hit ?? null, ours, strange: document.querySelectorAll(strange).length, handlers, links};
}"""
NOTHING: dict[str, Any] = {"hit": None, "ours": True, "strange": 0, "handlers": [], "links": []}
GOOD = "flowchart LR\n  A[Sign in] --> B[Callback]\n"
BAD_DIAGRAMS = {
    "a callback": "flowchart LR\n  A --> B\n  click A call hit()\n  click B callback\n",
    "a link": 'flowchart LR\n  A --> B\n  click A "javascript:window.hit=1"\n'
    '  click B href "https://evil.example" _blank\n',
    "a label of HTML": 'flowchart LR\n  A["<img src=x onerror=window.hit=1>"] --> B["<iframe src=//evil.example>"]\n',
    "a directive": '%%{init: {"securityLevel": "loose", "flowchart": {"htmlLabels": true}}}%%\n'
    'flowchart LR\n  A["<b onclick=window.hit=1>x</b>"] --> B\n  click A call hit()\n',
    "frontmatter": "---\nconfig:\n  securityLevel: loose\n  htmlLabels: true\n---\n"
    'flowchart LR\n  A["<script>window.hit=1"] --> B\n',
    "styles of its own": '%%{init: {"themeCSS": "*{background:url(https://evil.example/x)}"}}%%\n'
    "flowchart LR\n  A --> B\n"
    "  classDef x fill:url(https://evil.example/y)\n  class A x\n",
    "an image": 'flowchart LR\n  A@{ img: "https://evil.example/x.png", label: "x" } --> B\n',
    "a sequence": "sequenceDiagram\n  A->>B: <img src=x onerror=window.hit=1>\n  link A: x @ javascript:window.hit=1\n",
    "no diagram": "<script>window.hit=1</script>\n",
}


def quiet(tab: Tab, path: str) -> None:
    tab.go(path)
    found = tab.run(QUIET)
    assert found == NOTHING, (path, found)
    assert len(tab.page.frames) == 1 and len(tab.page.context.pages) == 1, path


def test_hostile_documents_run_and_load_nothing(project: Scenario) -> None:
    change = project.proposed([say("")]).change
    small = {name: text for name, text in HOSTILE.items() if len(text) < 20_000}
    assert len(small) > 60
    for number, text in enumerate(small.values()):
        body = text.encode("utf-8", "surrogatepass")
        (change.folder / f"specs/h{number}.md").write_bytes(b"# Spec\n\n" + body + b"\n\nThe end.\n")
    with visiting(project, MERMAID_STYLES) as tab:
        for number in range(len(small)):
            quiet(tab, f"{HOME}/read/specs/h{number}.md")
        quiet(tab, f"{HOME}/specs")
        quiet(tab, f"{HOME}/trace")


def test_markup_in_findings_comments_titles_and_journal_is_shown_as_text(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", MARK)).change
    title = MARK.replace("\n", " ")
    (change.folder / "tasks.md").write_text(TASKS_TEXT.replace("Store users", title))
    comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC_FILE, "The pair is unique"), MARK, "person:<b>x</b>"
    )
    change.update(lambda old: replace(old, description=MARK))
    step: dict[str, Any] = {"step": MARK, "round": 1, "number": 1, "attempt": 1}
    change.journal().append(
        events.StepStarted(**step, role="planner", agent=MARK, model=MARK, session=None, resumed=False)
    )
    change.journal().append(events.AgentActivity(**step, kind="tool", text=MARK, ok=False))
    change.journal().append(events.WarningIssued(**step, code=MARK, message=MARK))
    with visiting(project, MERMAID_STYLES) as tab:
        quiet(tab, "/")
        expect(tab.page.locator(".what")).to_contain_text("<script>window.hit=1")
        for part in ("", "/read/tasks.md", f"/read/{SPEC_FILE}", "/rounds", "/tasks", "/trace", "/specs", "/run"):
            quiet(tab, HOME + part)
        expect(tab.page.locator(".story").last).to_contain_text("<script>window.hit=1")
        tab.go(f"{HOME}/read/{SPEC_FILE}")
        expect(tab.page.locator("#note-K1 .said")).to_have_text(MARK)


def test_markup_in_file_and_branch_names_is_shown_as_text(project: Scenario) -> None:
    project.with_notes(start="specs")
    change: Change = project.notes_complete("short-titles", {"notes": SHORT_TITLES})
    name = "<img src=x onerror=window.hit=1>.py"
    project.write(name, MARK + "\n")
    change.update(lambda old: replace(old, git=replace(old.git, branch="<img/src=x/onerror=window.hit=1>")))
    with visiting(project) as tab:
        for part in ("", "/code", "/checks", "/specs", "/trace", "/run"):
            quiet(tab, f"/changes/short-titles{part}")
        tab.go("/changes/short-titles/code")
        expect(tab.page.locator(".file .path").filter(has_text=name)).to_have_count(1)


def test_not_found_page_does_not_echo_input(project: Scenario) -> None:
    with visiting(project, "status of 404") as tab:
        tab.page.goto(f"http://{tab.door.host}/changes/%3Cscript%3Ewindow.hit=1%3C/script%3E")
        assert tab.run(QUIET) == NOTHING


# ---- diagrams


def with_diagram(box: Scenario, *sources: str) -> str:
    change = box.proposed([say("")]).change
    text = "".join(f"```mermaid\n{source}```\n\n" for source in sources)
    (change.folder / "specs/drawn.md").write_text(f"# Spec: Drawn\n\n{text}")
    return f"{HOME}/read/specs/drawn.md"


def test_diagram_is_drawn_and_its_source_kept(project: Scenario) -> None:
    path = with_diagram(project, GOOD, "sequenceDiagram\n  A->>B: Hello\n")
    with visiting(project, MERMAID_STYLES) as tab:
        page = tab.go(path)
        expect(page.locator("figure.diagram > svg")).to_have_count(2)
        expect(page.locator("figure.diagram > svg").first).to_contain_text("Sign in")
        assert page.locator(".mermaid-source").first.text_content() == GOOD
        filled = page.locator("figure.diagram > svg .node rect").first.evaluate("one => getComputedStyle(one).fill")
        assert filled != "rgb(0, 0, 0)", "its styles have reached it"
        assert tab.run(QUIET) == NOTHING


@pytest.mark.parametrize("kind", BAD_DIAGRAMS)
def test_hostile_diagram_is_sanitized_or_shown_as_source(project: Scenario, kind: str) -> None:
    path = with_diagram(project, BAD_DIAGRAMS[kind], GOOD)
    with visiting(project, MERMAID_STYLES) as tab:
        page = tab.go(path)
        expect(page.locator("figure.diagram > svg").last).to_contain_text("Sign in")
        assert tab.run(QUIET) == NOTHING
        for node in page.locator("figure.diagram > svg .node").all():
            node.click(force=True)
        assert tab.run("window.hit ?? null") is None
        source = page.locator(".mermaid-source").first.text_content() or ""
        assert source.strip() == BAD_DIAGRAMS[kind].strip()
        styles = json.dumps(tab.run("document.adoptedStyleSheets.flatMap(s => [...s.cssRules].map(r => r.cssText))"))
        assert "evil.example" not in styles


def test_diagrams_are_always_drawn_in_strict_mode(project: Scenario) -> None:
    path = with_diagram(project, BAD_DIAGRAMS["a directive"], BAD_DIAGRAMS["frontmatter"], GOOD)
    with visiting(project, MERMAID_STYLES) as tab:
        page = tab.go(path)
        expect(page.locator("figure.diagram > svg").last).to_contain_text("Sign in")
        for rules in ("getSiteConfig", "getConfig"):
            found = tab.run(
                f"(({{securityLevel, htmlLabels}}) => [securityLevel, htmlLabels])(mermaid.mermaidAPI.{rules}())"
            )
            assert found == ["strict", False], rules


def test_diagram_source_is_shown_without_mermaid(project: Scenario) -> None:
    path = with_diagram(project, GOOD)
    with visiting(project, "ERR_FAILED") as tab:
        tab.page.context.route("**/mermaid.min.js", lambda route: route.abort())
        page = tab.go(path)
        expect(page.locator(".mermaid-source")).to_be_visible()
        assert page.locator("figure.diagram svg").count() == 0
