"""Two changes on one spec: what does not meet is merged, what does is shown; and how all of it reads."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.change.folder import Change
from plans import NOTES, SHORT_TITLES, SHORT_TITLES_ID, TAGS, delta_text, requirement_text, scenario_text, spec_text
from scenario import Result, Scenario, approve_code, tree_files
from terminal import run_on_terminal

TITLE = "Notes have a title"
TINY = delta_text("notes", requirement_text("R2", TITLE, "A title is at most 20 characters.\n\n- as in\n    - a list"))
GONE = delta_text("notes", aside="## Removed\n\n- R2\n\n")
KEPT = delta_text("notes", requirement_text("R1", "Notes are kept", "A note is kept for ever."))
BASE = f"### R2: {TITLE}\n\nA title is at most 80 characters."
THEIRS = BASE.replace("80", "40")
KEYS = [
    *("schema_version", "command", "change_id", "phase", "folder", "specs", "changelog", "conflicts", "warnings"),
    *("commands", "diff", "next", "error", "exit_code"),
]
WAYS_ON = ["commit", "merge", "pull_request", "remove"]


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    return project.with_notes()


def main_spec(box: Scenario, name: str = "notes") -> str:
    return (box.root / f"agentd/specs/{name}.md").read_bytes().decode()


def both(box: Scenario, first: dict[str, str], second: dict[str, str]) -> Result:
    """Begun at the same time; the first is archived, and then the second."""
    box.notes_complete("first", first)
    box.notes_complete("second", second)
    ended = box.agentd("archive", "first")
    assert ended.code == 0, ended.err
    return archived(box, "second")


def archived(box: Scenario, change_id: str) -> Result:
    """If it is refused, nothing is written."""
    before = tree_files(box.root)
    ran = box.agentd("archive", change_id, "--json")
    assert ran.code == 0 or tree_files(box.root) == before, ran.out
    return ran


def conflict(ran: Result) -> tuple[str, str, str | None, str | None, str | None]:
    assert (ran.code, ran.json["error"]["code"]) == (1, "merge-conflict"), ran.out
    (one,) = ran.json["conflicts"]
    return one["name"], one["why"], one["base"], one["theirs"], one["yours"]


# ---- where they meet


def test_requirement_changed_by_two_changes_stops_the_second_archive(notes: Scenario) -> None:
    ran = both(notes, {"notes": SHORT_TITLES}, {"notes": TINY})
    yours = BASE.replace("80 characters.", "20 characters.\n\n- as in\n    - a list")
    assert conflict(ran) == ("notes:R2", "changed on both sides", BASE, THEIRS, yours)
    assert ran.json["error"]["hint"].startswith("agentd rebase second")
    assert ran.json["next"] == "agentd rebase second"
    told = notes.agentd("archive", "second")
    assert told.code == 1 and told.out == (
        f"notes:R2: changed on both sides\n  base\n{indented(BASE)}\n  theirs\n{indented(THEIRS)}\n  yours\n"
        f"{indented(yours)}\n\n"
    )
    assert told.err == (
        "Error: notes:R2 was changed by others since second began, and second changes it too\n"
        "  → agentd rebase second updates the change to the current specs\n"
    )
    assert notes.agentd("archive", "second", "--dry-run").out == told.out, "a dry run says so too"


def indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def test_all_conflicting_requirements_are_named(notes: Scenario) -> None:
    all_of_it = [requirement_text(f"R{number}", f"No {number}", "Ours.") for number in (3, 4, 5, 6)]
    other = [text.replace("Ours", "Theirs") for text in all_of_it]
    ran = both(
        notes, {"notes": delta_text("notes", "".join(all_of_it))}, {"notes": delta_text("notes", "".join(other))}
    )
    assert ran.json["error"]["message"] == (
        "notes:R3, notes:R4, notes:R5 and 1 more were changed by others since second began, and second changes them too"
    )
    assert len(ran.json["conflicts"]) == 4


@pytest.mark.parametrize(
    ("first", "second", "why", "theirs", "yours"),
    [
        (SHORT_TITLES, GONE, "removed here, changed in the main spec", THEIRS, None),
        (GONE, SHORT_TITLES, "changed here, removed in the main spec", None, THEIRS),
    ],
    ids=["changed-removed", "removed-changed"],
)
def test_requirement_removed_by_one_change_and_edited_by_another_conflicts(
    notes: Scenario, first: str, second: str, why: str, theirs: str | None, yours: str | None
) -> None:
    assert conflict(both(notes, {"notes": first}, {"notes": second})) == ("notes:R2", why, BASE, theirs, yours)


def test_same_requirement_id_added_by_two_changes_conflicts(notes: Scenario) -> None:
    tags, stars = ("### R3: Tags\n\nThere are tags.", "### R3: Stars\n\nThere are stars.")
    ran = both(notes, {"notes": delta_text("notes", f"{tags}\n\n")}, {"notes": delta_text("notes", f"{stars}\n\n")})
    assert conflict(ran) == ("notes:R3", "added on both sides, in other words", None, tags, stars)


def test_same_spec_created_with_different_text_conflicts(notes: Scenario) -> None:
    ran = both(notes, {"tags": TAGS}, {"tags": TAGS.replace("has tags", "has labels")})
    name, why, base, theirs, yours = conflict(ran)
    assert (name, why, base) == ("tags:R1", "added on both sides, in other words", None)
    assert "has tags" in str(theirs) and "has labels" in str(yours)


def test_change_to_a_deleted_spec_conflicts(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    (notes.root / "agentd/specs/notes.md").unlink()
    name, why, base, theirs, yours = conflict(archived(notes, SHORT_TITLES_ID))
    assert (name, why) == ("notes", "changed here, the whole spec removed in the main specs")
    assert (base, theirs, yours) == (NOTES, None, SHORT_TITLES)


# ---- where they do not


def test_changes_to_different_requirements_are_both_merged(notes: Scenario) -> None:
    notes.write("agentd/specs/CHANGELOG.md", "# Ours\n\nBy hand.\n\n## 2020-01-01: old\n\n- it was\n")
    assert both(notes, {"notes": SHORT_TITLES}, {"notes": KEPT}).code == 0
    stamp = re.sub(r"version: 3\narchived: [\d-]+\nchange: second", "version: 1", main_spec(notes))
    assert stamp == NOTES.replace("80", "40").replace("until it is deleted", "for ever")
    log = main_spec(notes, "CHANGELOG")
    assert re.findall(r"^#.*?(\w+)$", log, re.MULTILINE) == ["Ours", "second", "first", "old"], "newest first"
    assert "- `notes`: version 3: R1 changed" in log and "- `notes`: version 2: R2 changed" in log


def test_archives_are_undone_in_reverse_order(notes: Scenario) -> None:
    notes.notes_complete("first", {"notes": SHORT_TITLES})
    notes.notes_complete("second", {"notes": KEPT})
    before = tree_files(notes.root)
    for change_id in ("first", "second"):
        assert archived(notes, change_id).code == 0
    after = tree_files(notes.root)
    refused = notes.agentd("archive", "first", "--undo", "--json")
    assert refused.code == 1 and tree_files(notes.root) == after
    assert refused.json["error"]["hint"] == "agentd archive second --undo first"
    for change_id in ("second", "first"):
        assert notes.agentd("archive", change_id, "--undo").code == 0
    assert tree_files(notes.root) == before


def test_undo_after_reverting_and_archiving_again_undoes_the_last_archive(notes: Scenario) -> None:
    change = notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    notes.commit("the change")
    for _ in range(2):
        assert archived(notes, SHORT_TITLES_ID).code == 0
        archive = main_spec(notes)
        notes.execute("sh", "-c", "rm -r agentd/archive agentd/specs && git checkout -- agentd")
    assert archived(notes, SHORT_TITLES_ID).code == 0 and main_spec(notes) == archive
    notes.commit("archived")
    assert notes.agentd("archive", SHORT_TITLES_ID, "--undo").code == 0
    assert change.read().phase == "complete" and main_spec(notes) == NOTES


def test_different_scenarios_of_one_requirement_are_both_merged(notes: Scenario) -> None:
    one = delta_text("notes", "", scenario_text("Too long", "R2", "the note is cut"))
    other = delta_text("notes", "", scenario_text("Empty", "R2", "the note is refused"))
    ran = both(notes, {"notes": one}, {"notes": other})
    assert ran.json["specs"][0]["touches"] == [{"kind": "scenario", "name": "notes:R2/Empty", "how": "added"}]
    text = main_spec(notes)
    assert text.count("### Scenario: ") == 3 and "the note is cut" in text and "### Scenario: Empty" in text
    assert "- `notes`: version 3: 1 scenario added" in main_spec(notes, "CHANGELOG")


@pytest.mark.parametrize(("name", "text"), [("notes", SHORT_TITLES), ("tags", TAGS), ("notes", GONE)])
def test_identical_changes_on_both_sides_do_not_conflict(notes: Scenario, name: str, text: str) -> None:
    notes.notes_complete("first", {name: text})
    notes.notes_complete("second", {name: text})
    assert notes.agentd("archive", "first").code == 0
    before = main_spec(notes, name)
    ran = archived(notes, "second")
    version = int(before.partition("version: ")[2].partition("\n")[0])
    (row,) = ran.json["specs"]
    assert (ran.code, row["changed"], row["version"], row["touches"]) == (0, False, version, [])
    assert main_spec(notes, name) == before
    assert main_spec(notes, "CHANGELOG").count(f"- `{name}`: unchanged\n") == 1


def test_manual_edit_of_the_main_spec_is_kept(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    notes.write("agentd/specs/notes.md", NOTES.replace("What holds for notes.", "What holds, by hand.\n\n* odd  "))
    assert archived(notes, SHORT_TITLES_ID).code == 0
    assert "What holds, by hand.\n\n* odd  \n\n## Requirements" in main_spec(notes) and "40" in main_spec(notes)


def test_line_endings_are_preserved(notes: Scenario) -> None:
    (notes.root / "agentd/specs/notes.md").write_bytes(NOTES.replace("\n", "\r\n").encode())
    assert both(notes, {"notes": SHORT_TITLES}, {"notes": KEPT}).code == 0
    text = main_spec(notes)
    assert text.count("\n") == text.count("\r\n") and "at most 40" in text and "for ever" in text


# ---- what a change began from


def by_hand(box: Scenario, text: str) -> Change:
    """A change whose folder somebody made: nothing is kept of what it began from."""
    change = box.notes_complete(SHORT_TITLES_ID, {"notes": text})
    (change.folder / "base/notes.md").unlink()
    change.update(lambda old: replace(old, base=replace(old.base, specs={})))
    approve_again(change)
    return change


def approve_again(change: Change) -> None:
    """Its code is judged with the folder as it is now."""
    change.update(lambda old: replace(old, history=old.history[:-1], phase=old.history[-2].to))
    approve_code(change)


def test_edited_base_text_is_a_state_error(notes: Scenario) -> None:
    change = notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    (change.folder / "base/notes.md").write_text(NOTES.replace("80", "70"))
    ran = archived(notes, SHORT_TITLES_ID)
    assert (ran.code, ran.json["error"]["code"]) == (6, "state-error")
    assert ran.json["error"]["hint"] == f"git log -p -- agentd/changes/{SHORT_TITLES_ID}/base/notes.md"


def test_missing_base_text_falls_back_to_the_base_version(notes: Scenario) -> None:
    by_hand(notes, SHORT_TITLES)
    assert archived(notes, SHORT_TITLES_ID).code == 0 and "at most 40" in main_spec(notes)


def test_missing_base_text_with_a_different_version_conflicts(notes: Scenario) -> None:
    by_hand(notes, SHORT_TITLES.replace("base_version: 1", "base_version: 7"))
    name, why, base, theirs, yours = conflict(archived(notes, SHORT_TITLES_ID))
    assert (name, why, base, theirs, yours) == ("notes:R2", "added on both sides, in other words", None, BASE, THEIRS)


# ---- what cannot be read


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("agentd/specs/notes.md", b"\xff\xfe", "agentd/specs/notes.md:1: this is not UTF-8 text"),
        ("agentd/specs/notes.md", NOTES.replace("version: 1", "version: [").encode(), "agentd/specs/notes.md:"),
        ("agentd/specs/notes.md", NOTES.replace("### R1", "### R2").encode(), "agentd/specs/notes.md:"),
        ("agentd/specs/CHANGELOG.md", b"# Ours\n\xff", "agentd/specs/CHANGELOG.md:2: this is not UTF-8 text"),
    ],
    ids=["not-text", "frontmatter", "twice", "changelog"],
)
def test_unreadable_file_is_named_with_a_hint(notes: Scenario, file: str, data: bytes, words: str) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    (notes.root / file).write_bytes(data)
    error = archived(notes, SHORT_TITLES_ID).json["error"]
    assert error["code"] == "format-invalid" and error["message"].startswith(words), error
    assert error["hint"] == "fix it, then run the command again"


def test_unmergeable_spec_of_the_change_is_named(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": delta_text("notes", aside="## Removed\n\n- the second one\n\n")})
    error = archived(notes, SHORT_TITLES_ID).json["error"]
    assert error["code"] == "format-invalid" and error["message"].startswith("specs/notes.md:"), error


def test_archive_does_not_write_through_a_symlink(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    page = notes.root / "agentd/specs/notes.md"
    page.rename(notes.root / "elsewhere.md")
    page.symlink_to("../../elsewhere.md")
    error = archived(notes, SHORT_TITLES_ID).json["error"]
    assert "is a symbolic link" in error["message"] and error["hint"]


# ---- how it reads


def test_json_result_always_has_the_same_keys(notes: Scenario) -> None:
    notes.notes_complete("first", {"notes": SHORT_TITLES, "tags": TAGS})
    notes.notes_complete("second", {"notes": TINY})
    results = [
        ("complete", notes.agentd("archive", "first", "--dry-run", "--json")),
        ("archived", notes.agentd("archive", "first", "--json")),
        ("complete", notes.agentd("archive", "second", "--json")),
        ("complete", notes.agentd("archive", "first", "--undo", "--json")),
    ]
    for phase, ran in results:
        assert list(ran.json) == KEYS and (ran.json["phase"], ran.json["exit_code"]) == (phase, ran.code), ran.out
        assert list(ran.json["commands"]) == WAYS_ON and isinstance(ran.json["next"], str)
    dry, real, refused, _ = (ran.json for _, ran in results)
    assert dry["diff"].startswith("--- a/agentd/specs/notes.md") and real["diff"] is None
    assert without(dry, "diff", "phase", "next") == without(real, "diff", "phase", "next")
    assert [list(row) for row in real["specs"]] == [["id", "file", "version", "new", "changed", "touches"]] * 2
    assert list(refused["conflicts"][0]) == ["kind", "name", "why", "base", "theirs", "yours"]


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in names}


def test_spec_outcome_moves_to_its_own_line_on_a_narrow_terminal(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES, "tags": TAGS})
    lines = [line.rstrip() for line in run_on_terminal(notes, "archive", SHORT_TITLES_ID, width=28).lines]
    place = lines.index("  notes")
    assert lines[place : place + 4] == ["  notes", "    version 2: R2 changed", "  tags", "    new, version 1"]


@pytest.mark.parametrize("width", [80, 50])
def test_terminal_output_is_complete_at_any_width(notes: Scenario, width: int) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES, "tags": TAGS})
    shown = run_on_terminal(notes, "archive", SHORT_TITLES_ID, width=width)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.screen)
    assert shown.code == 0 and shown.screen != plain, "with colour"
    (folder,) = (notes.root / "agentd/archive").iterdir()
    first = f"Archived {SHORT_TITLES_ID} to agentd/archive/{folder.name}"
    assert plain.strip().split("\n") == [
        *([first] if width == 80 else first.rsplit(" ", 1)),
        "",
        "  notes  version 2: R2 changed",
        "  tags   new, version 1",
        "",
        "Nothing is committed yet:",
        "  git add --all",
        f"  git commit --message 'Archive {SHORT_TITLES_ID}'",
        "",
        f"Undo    agentd archive {SHORT_TITLES_ID} --undo",
    ]


def test_no_color_disables_colors(notes: Scenario) -> None:
    notes.notes_complete("first", {"notes": SHORT_TITLES})
    notes.notes_complete("second", {"notes": TINY})
    notes.env["NO_COLOR"] = "1"
    ended = run_on_terminal(notes, "archive", "first", width=50)
    refused = run_on_terminal(notes, "archive", "second", width=50)
    assert (ended.code, refused.code) == (0, 1) and "\x1b" not in ended.screen + refused.screen
    assert "    - as in\n        - a list" in refused.screen


def test_control_characters_in_specs_do_not_reach_the_terminal(notes: Scenario) -> None:
    bad = spec_text("tags", requirement_text("R1", "Tags", "A note has \x1b]0;tags\x07 and \u202emore."), "")
    ran = both(notes, {"tags": TAGS}, {"tags": bad})
    assert "\x1b]0;" in ran.json["conflicts"][0]["yours"]
    told = notes.agentd("archive", "second")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", told.out + told.err)


def test_archive_path_is_relative_to_the_current_folder(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    below = Path(notes.root, "src")
    below.mkdir()
    assert (
        f"Archived {SHORT_TITLES_ID} to ../agentd/archive/" in notes.agentd("archive", SHORT_TITLES_ID, cwd=below).out
    )
