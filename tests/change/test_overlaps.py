"""Open changes that touch the same requirement: told by `list` and `status` before anybody archives."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle, overlaps
from agentd.change.folder import Change
from agentd.change.overlaps import OverlapIndex
from agentd.cli.text_table import display_width
from agentd.documents.spec_parts import REQUIREMENT_PATTERN
from agentd.domain import clock
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Phase
from agentd.engine.tools import reading_tools
from agentd.engine.tools.tool_scope import ToolScope
from agentd.project.layout import find_project
from assertions import TIMES, assert_linear
from plans import NOTES, delta_text, requirement_text, scenario_text, spec_text
from scenario import Scenario
from terminal import run_on_terminal

R1 = requirement_text("R1", "Notes are kept", "A note is kept for ever.")
R2 = requirement_text("R2", "Notes have a title", "A title is at most 40 characters.")
TAGS = spec_text(
    "tags", requirement_text("R1", "Tags", "A note has tags."), scenario_text("Tagged", "R1", "it is found by its tag")
)
RENAMED = "## Renamed\n\n- R2: Notes have a title → R9: Notes have a name\n\n"
REMOVED = "## Removed\n\n- R2: Notes have a title\n  - **Reason**: Nobody reads it.\n\n"
SHARED = "### Scenario: {}\n\n- **WHEN** it happens\n- **THEN** all is {}\n\n"


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    """A project with a spec."""
    project.write("agentd/specs/notes.md", NOTES)
    project.commit("a spec")
    return project


def met(box: Scenario, *arguments: str, cwd: Path | None = None) -> dict[str, dict[str, list[str]]]:
    """Whom each change meets and where, as `list --json` has it."""
    rows = box.agentd("list", "--json", *arguments, cwd=cwd).json["changes"]
    found = {row["change_id"]: {one["change_id"]: one["requirements"] for one in row["overlaps"]} for row in rows}
    return {change_id: others for change_id, others in found.items() if others}


def meetings(box: Scenario) -> list[str]:
    """What `list` tells below its table."""
    table, _, told = box.agentd("list").out.partition("\n\n")
    assert table.startswith("CHANGE")
    return told.splitlines()


def settled() -> None:
    time.sleep(0.1)  # a file younger than a tick is not kept in the index


def rewrite(change: Change, text: str, name: str = "notes") -> None:
    """A person's edit of a spec."""
    (change.folder / "specs" / f"{name}.md").write_text(text)


def test_list_and_status_report_changes_to_the_same_requirement(notes: Scenario) -> None:
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    notes.notes_complete("add-sso", {"notes": delta_text("notes", R1 + R2)})
    notes.notes_proposed("add-tags", {"tags": TAGS})
    assert meetings(notes) == ["add-oauth and add-sso both change notes:R2"]
    assert met(notes) == {"add-oauth": {"add-sso": ["notes:R2"]}, "add-sso": {"add-oauth": ["notes:R2"]}}
    blocks = {block.split()[0]: block for block in notes.agentd("status").out.split("\n\n")[1:]}
    assert "\n  meets add-sso in notes:R2\n" in blocks["add-oauth"]
    assert "\n  meets add-oauth in notes:R2\n" in blocks["add-sso"]
    assert "meets" not in blocks["add-tags"]
    rows = notes.agentd("status", "--json").json["changes"]
    assert [row["overlaps"] for row in rows if row["change_id"] == "add-tags"] == [[]]
    assert "\nMeets     add-sso (complete) in notes:R2\n" in notes.agentd("status", "add-oauth").out
    assert "Meets" not in notes.agentd("status", "add-tags").out
    told = notes.agentd("status", "add-oauth", "--json").json["overlaps"]
    assert told == [{"change_id": "add-sso", "requirements": ["notes:R2"]}]


MEET: dict[str, tuple[str, str, list[str]]] = {
    "both change its text": (delta_text("notes", R2), delta_text("notes", R2), ["notes:R2"]),
    "one changes its text, one a scenario of it": (
        delta_text("notes", R2),
        delta_text("notes", "", scenario_text("Too long", "R2", "the note is cut")),
        ["notes:R2"],
    ),
    "each adds a scenario to it": (
        delta_text("notes", "", scenario_text("Empty", "R2", "it has none")),
        delta_text("notes", "", scenario_text("Blank a/b", "R2", "it has none")),
        ["notes:R2"],
    ),
    "one removes it": (delta_text("notes", R2), delta_text("notes", aside=REMOVED), ["notes:R2"]),
    "one renames it": (delta_text("notes", R2), delta_text("notes", aside=RENAMED), ["notes:R2"]),
    "one adds the id that one renames to": (
        delta_text("notes", requirement_text("R9", "Notes have an age", "Since they were made.")),
        delta_text("notes", aside=RENAMED),
        ["notes:R9"],
    ),
    "both add the same id": (
        delta_text("notes", requirement_text("R3", "Notes have an age", "Since they were made.")),
        delta_text("notes", requirement_text("R3", "Notes have a colour", "Yellow.")),
        ["notes:R3"],
    ),
    "the same scenario of the whole spec": (
        delta_text("notes", "", SHARED.format("Unknown path", "refused")),
        delta_text("notes", "", SHARED.format("Unknown path", "lost")),
        ["notes:/Unknown path"],
    ),
    "two requirements": (delta_text("notes", R1 + R2), delta_text("notes", R2 + R1), ["notes:R1", "notes:R2"]),
    "each adds an id of its own": (
        delta_text("notes", requirement_text("R3", "Notes have an age", "Since they were made.")),
        delta_text("notes", requirement_text("R4", "Notes have a colour", "Yellow.")),
        [],
    ),
    "each changes another one": (delta_text("notes", R1), delta_text("notes", R2), []),
    "other scenarios of the whole spec": (
        delta_text("notes", "", SHARED.format("Unknown path", "refused")),
        delta_text("notes", "", SHARED.format("Known path", "refused")),
        [],
    ),
    "one repeats what is there": (
        delta_text("notes", R2),
        delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 80 characters.")),
        [],
    ),
}


@pytest.mark.parametrize("case", MEET)
def test_overlap_is_detected_for_every_kind_of_edit(case: str) -> None:
    one, other, expected = MEET[case]
    first, second = (
        overlaps.touched_requirements({"notes": (text, NOTES)}, REQUIREMENT_PATTERN) for text in (one, other)
    )
    radar = OverlapIndex([("one", Phase.PROPOSED, first), ("other", Phase.COMPLETE, second)])
    found = [("other", Phase.COMPLETE, expected)] if expected else []
    assert radar.find_overlapping("one", first) == found
    assert radar.all_overlaps() == ([(["one", "other"], expected)] if expected else [])


def test_two_changes_that_create_the_same_spec_overlap(notes: Scenario) -> None:
    """Also where none of their requirements is the same."""
    other = TAGS.replace("R1", "R7")
    notes.notes_proposed("add-tags", {"tags": TAGS})
    notes.notes_proposed("tag-notes", {"tags": other})
    notes.notes_proposed("label-notes", {"tags": TAGS, "notes": delta_text("notes", R1)})
    assert met(notes)["label-notes"] == {"add-tags": ["tags"], "tag-notes": ["tags"]}
    assert "add-tags, label-notes and tag-notes all change tags" in meetings(notes)


def test_change_that_creates_a_spec_overlaps_with_one_that_edits_it(notes: Scenario) -> None:
    notes.notes_proposed("add-tags", {"tags": TAGS})
    notes.write("agentd/specs/tags.md", TAGS)
    shorter = delta_text("tags", requirement_text("R1", "Tags", "A note has a tag."))
    notes.notes_proposed("one-tag", {"tags": shorter})
    assert met(notes)["one-tag"] == {"add-tags": ["tags:R1"]}


def test_finished_changes_do_not_overlap(notes: Scenario) -> None:
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    notes.notes_proposed("given-up", {"notes": delta_text("notes", R2)})
    notes.notes_complete("done", {"notes": delta_text("notes", R2)})
    assert set(met(notes)["add-oauth"]) == {"given-up", "done"}
    assert notes.agentd("drop", "given-up", "--yes").code == 0
    assert notes.agentd("archive", "done").code == 0
    assert met(notes, "--all") == {} and meetings(notes) == []
    assert len(notes.agentd("list", "--all", "--json").json["changes"]) == 3


def test_interrupted_drop_does_not_overlap(notes: Scenario) -> None:
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    dropped = notes.notes_proposed("given-up", {"notes": delta_text("notes", R2)})
    settled()
    assert met(notes)
    dropped.update(lambda old: old.with_transition(TransitionEvent.DROPPED, by="person:dev", why="", at=clock.now()))
    assert met(notes) == {}
    for change_id in ("add-oauth", "given-up"):
        assert notes.agentd("status", change_id, "--json").json["overlaps"] == []


def test_archived_folder_does_not_overlap_whatever_its_phase(notes: Scenario) -> None:
    """Put away by hand: its phase is still an open one."""
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    old = notes.notes_proposed("older", {"notes": delta_text("notes", R2)})
    (notes.root / "agentd/archive").mkdir()
    old.folder.rename(notes.root / "agentd/archive/20260101-older")
    assert met(notes, "--all") == {}


def test_draft_overlaps_as_soon_as_it_has_a_spec(notes: Scenario) -> None:
    notes.notes_proposed("add-sso", {"notes": delta_text("notes", R2)})
    change = lifecycle.create_change(find_project(), "add-oauth", "Sign in")
    assert met(notes) == {}
    for name, text in (("base", NOTES), ("specs", delta_text("notes", R2))):
        notes.write(f"agentd/changes/add-oauth/{name}/notes.md", text)
    change.update(lambda old: replace(old, description="Sign in, please"))
    assert met(notes)["add-sso"] == {"add-oauth": ["notes:R2"]}
    assert "add-oauth (drafting) in notes:R2" in notes.agentd("status", "add-sso").out


def test_copies_of_a_change_in_several_worktrees_count_as_one(notes: Scenario) -> None:
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    notes.commit("a change")
    place = notes.in_worktree("add-sso")  # its tree has a copy of add-oauth
    change = notes.notes_proposed("add-sso", {"notes": delta_text("notes", R1)}, place)
    for cwd in (notes.root, Path(change.tree)):
        assert met(notes, cwd=cwd) == {}, "a change does not meet its own copy"
    rewrite(change, delta_text("notes", R2))
    change.update(lambda old: replace(old, description="Another one"))
    for cwd in (notes.root, Path(change.tree)):
        assert met(notes, cwd=cwd) == {"add-oauth": {"add-sso": ["notes:R2"]}, "add-sso": {"add-oauth": ["notes:R2"]}}


def test_change_on_a_branch_that_is_not_checked_out_still_overlaps(notes: Scenario) -> None:
    notes.notes_proposed("add-sso", {"notes": delta_text("notes", R2)}, notes.on_branch("add-sso"))
    settled()
    assert met(notes) == {}  # seen once, as every command sees it
    notes.commit("a change")
    notes.git("switch", "-q", "main")
    notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2)})
    assert met(notes)["add-oauth"] == {"add-sso": ["notes:R2"]}
    assert "Meets     add-sso (proposed) in notes:R2" in notes.agentd("status", "add-oauth").out


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to(path.parent.parent.parent / "kept.md")


BROKEN: dict[str, Callable[[Path], object]] = {
    "another encoding": lambda path: path.write_bytes("# naïve\n".encode("latin-1")),
    "a NUL": lambda path: path.write_bytes(delta_text("notes", R2).encode() + b"\0"),
    "an id that stands twice": lambda path: path.write_text(delta_text("notes", R2 + R2)),
    "broken frontmatter": lambda path: path.write_text("---\nid: [\n---\n" + delta_text("notes", R2)),
    "a folder": lambda path: path.mkdir(),
    "a pipe": pipe,
    "a link": link,
}


@pytest.mark.parametrize("where", ["specs", "base"])
@pytest.mark.parametrize("kind", BROKEN)
def test_unreadable_spec_does_not_hide_overlaps_of_other_specs(notes: Scenario, kind: str, where: str) -> None:
    notes.write("agentd/specs/tags.md", TAGS)
    tags = delta_text("tags", requirement_text("R1", "Tags", "A note has a tag."))
    notes.notes_proposed("add-sso", {"notes": delta_text("notes", R1 + R2), "tags": tags})
    change = notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R2), "tags": tags})
    path = change.folder / where / "notes.md"
    (notes.root / "agentd/changes/kept.md").write_text(path.read_text())
    path.unlink()
    BROKEN[kind](path)
    assert met(notes)["add-oauth"] == {"add-sso": ["tags:R1"]}
    assert overlaps.read_touched(str(change.folder)) == ["tags:R1"]


def test_edit_shows_in_status_at_once_and_in_list_after_the_next_step(notes: Scenario) -> None:
    notes.notes_proposed("add-sso", {"notes": delta_text("notes", R2)})
    change = notes.notes_proposed("add-oauth", {"notes": delta_text("notes", R1)})
    settled()
    assert met(notes) == {}
    rewrite(change, delta_text("notes", R2))
    assert met(notes) == {}, "a warm listing reads no spec"
    assert "add-sso (proposed) in notes:R2" in notes.agentd("status", "add-oauth").out
    assert reading_tools.get_change(ToolScope(find_project()), {"change_id": "add-oauth"})["overlaps"]
    change.update(lambda old: replace(old, description="Sign in, please"))
    assert met(notes)["add-oauth"] == {"add-sso": ["notes:R2"]}
    settled()
    assert met(notes) == met(notes), "from the index too"


def test_index_in_an_older_format_is_rebuilt(notes: Scenario) -> None:
    for change_id in ("add-oauth", "add-sso"):
        notes.notes_proposed(change_id, {"notes": delta_text("notes", R2)})
    settled()
    told = meetings(notes)
    index = notes.root / ".git/agentd/index.json"
    data = json.loads(index.read_text())
    assert [row[-2] for row in data["rows"].values()] == [["notes:R2"], ["notes:R2"]]
    older = {key: row[:-1] for key, row in data["rows"].items()}
    index.write_text(json.dumps({**data, "format": data["format"] - 1, "rows": older}))
    assert meetings(notes) == told == ["add-oauth and add-sso both change notes:R2"]


OWN = "schema_version = 1\n[validation]\nrequirement_pattern = '^### (REQ-[0-9]+) (.+)$'\n"


@pytest.mark.parametrize(("settings", "id_", "gap"), [(OWN, "REQ-2", " "), ("schema_version = [", "R2", ": ")])
def test_requirement_ids_follow_the_project_pattern(notes: Scenario, settings: str, id_: str, gap: str) -> None:
    """With a configuration that cannot be read they are the usual ones: a listing needs none."""
    if settings == OWN:
        notes.write("agentd/specs/notes.md", NOTES.replace("### R1: ", "### REQ-1 ").replace("### R2: ", "### REQ-2 "))
    for number in (40, 50):
        words = f"### {id_}{gap}Notes have a title\n\nA title is at most {number} characters.\n\n"
        notes.notes_proposed(f"title-{number}", {"notes": delta_text("notes", words)})
    notes.write("agentd/config.toml", settings)
    (notes.root / ".git/agentd/index.json").unlink()
    assert met(notes)["title-40"] == {"title-50": [f"notes:{id_}"]}


def test_overlaps_are_reported_to_personal_agent_sessions(notes: Scenario) -> None:
    for change_id in ("add-oauth", "add-sso"):
        notes.notes_proposed(change_id, {"notes": delta_text("notes", R2)})
    rows = reading_tools.list_changes(ToolScope(find_project()), {})["changes"]
    found = {row["change_id"]: row["overlaps"] for row in rows}
    assert found["add-oauth"] == [{"change_id": "add-sso", "requirements": ["notes:R2"]}]
    assert reading_tools.get_change(ToolScope(find_project()), {"change_id": "add-sso"})["overlaps"] == [
        {"change_id": "add-oauth", "requirements": ["notes:R2"]}
    ]


def ages(*numbers: int) -> str:
    """Requirements that are new."""
    return "".join(requirement_text(f"R{number}", f"Age {number}", "Since they were made.") for number in numbers)


def test_many_overlaps_are_shortened_with_a_count(notes: Scenario) -> None:
    notes.notes_proposed("all", {"notes": delta_text("notes", ages(*range(10, 17)) + R2)})
    for number in range(10, 17):
        notes.notes_proposed(f"only-{number}", {"notes": delta_text("notes", ages(number))})
    told = meetings(notes)
    assert len(told) == 6 and told[-1] == "and 2 more; agentd list --json has them all"
    assert all("all and only-1" in line for line in told[:-1])
    block = next(one for one in notes.agentd("status").out.split("\n\n") if one.startswith("all "))
    assert "meets only-10 in notes:R10; only-11 in notes:R11; only-12 in notes:R12; 4 more" in block
    assert "only-12 (proposed) in notes:R12; 4 more" in " ".join(notes.agentd("status", "all").out.split())
    assert len(met(notes)["all"]) == 7


def test_many_names_in_an_overlap_line_are_shortened_with_a_count(notes: Scenario) -> None:
    for number in range(5):
        notes.notes_proposed(f"change-{number}", {"notes": delta_text("notes", ages(10, 11, 12, 13, 14))})
    assert meetings(notes) == [
        "change-0, change-1, change-2 and 2 more all change notes:R10, notes:R11, notes:R12 and 2 more"
    ]
    assert list(met(notes)["change-4"]) == ["change-0", "change-1", "change-2", "change-3"], "by name"
    lines = [line for line in notes.agentd("status").out.splitlines() if line.startswith("  meets")]
    where = "in notes:R10, notes:R11, notes:R12 and 2 more"
    first, last = lines[-1], lines[0]  # newest first
    assert first == f"  meets change-1, change-2, change-3 and 1 more {where}"
    assert last == f"  meets change-0, change-1, change-2 and 1 more {where}"


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.parametrize("command", [("list",), ("status",), ("status", "add-sign-on")])
def test_overlap_lines_fit_a_narrow_terminal(notes: Scenario, command: tuple[str, ...], width: int) -> None:
    evil = SHARED.format("Red \x1b[31m path", "lost")
    for change_id in ("add-open-auth", "add-sign-on"):
        notes.notes_proposed(change_id, {"notes": delta_text("notes", R1 + R2, evil)})
    seen = run_on_terminal(notes, *command, width=width)
    assert "notes:/Red" in seen.screen or "meets add-" in seen.screen, seen.screen
    assert "\x1b[31m path" not in seen.screen, "no title commands the terminal"
    for line in seen.lines:
        if "agentd plan" not in line and "Where" not in line:  # what is to be typed or opened is never cut
            assert display_width(line) <= width, line


def test_overlap_detection_takes_linear_time() -> None:
    def work(count: str) -> Any:
        return OverlapIndex(
            (f"c{n}", Phase.PROPOSED, ["notes:R2", f"notes:R{n + 10}"]) for n in range(int(count))
        ).all_overlaps()

    (everyone,) = work("100")
    assert len(everyone[0]) == 100
    assert_linear(work, "2000", str(2000 * TIMES))
