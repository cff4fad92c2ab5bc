"""`agentd archive`: specs merged, folder put away, all of it or nothing, and taken back byte for byte."""

import os
from pathlib import Path

import pytest

from agentd.change.folder import read_state
from agentd.domain.terms import Phase
from plans import NOTES, delta_text, requirement_text, scenario_text, spec_text
from scenario import Scenario, approve_code, tree_files

SHORTER = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 40 characters."))
TAGS = spec_text(
    "tags", requirement_text("R1", "Tags", "A note has tags."), scenario_text("Tagged", "R1", "it is found by its tag")
)


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    """A project with a spec."""
    project.write("agentd/specs/notes.md", NOTES)
    project.commit("a spec")
    return project


def main_spec(box: Scenario, name: str = "notes") -> str:
    return (box.root / f"agentd/specs/{name}.md").read_text()


def archived(box: Scenario, change_id: str) -> Path:
    (found,) = (box.root / "agentd/archive").glob(f"*-{change_id}")
    return found


def test_archive_merges_specs_and_moves_the_change_folder(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORTER, "tags": TAGS})
    (change.folder / "GEMINI.md").write_text("context")
    end = notes.agentd("archive", "short-titles", "--json")
    assert (end.code, end.json["phase"]) == (0, "archived"), end.out + end.err
    assert not change.folder.exists()
    folder = archived(notes, "short-titles")
    assert end.json["folder"] == str(folder.relative_to(notes.root))
    date = f"{folder.name[:4]}-{folder.name[4:6]}-{folder.name[6:8]}"
    state = read_state(folder)
    assert (state.phase, state.history[-1].event, state.history[-1].why) == (
        Phase.ARCHIVED,
        "archived",
        "merged notes, tags",
    )
    assert not (folder / "GEMINI.md").exists(), "what agents were given to read is not archived"
    stamp = f"version: 2\narchived: {date}\nchange: short-titles"
    assert main_spec(notes) == NOTES.replace("at most 80", "at most 40").replace("version: 1", stamp)
    assert main_spec(notes, "tags") == TAGS.replace("version: 1", f"version: 1\narchived: {date}\nchange: short-titles")
    assert main_spec(notes, "CHANGELOG") == (
        f"# Changelog of the specs\n\n## {date}: short-titles\n\nBetter notes by short-titles\n\n"
        "- `notes`: version 2: R2 changed\n- `tags`: new, version 1\n"
    )
    assert notes.git("diff", "--cached", "--name-only") == "" and notes.git("rev-list", "--count", "HEAD") == "2"
    told = notes.agentd("log", "short-titles")
    assert notes.agentd("list").out.startswith("No open changes") and told.code in (0, 1)
    assert "archived" in notes.agentd("list", "--all").out


def test_archive_output_shows_merged_specs_and_next_commands(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER})
    end = notes.agentd("archive", "short-titles")
    assert end.code == 0 and "Archived short-titles to agentd/archive/" in end.out
    assert "  notes  version 2: R2 changed" in end.out and "git add --all" in end.out
    assert "Undo    agentd archive short-titles --undo" in end.out


def test_undo_restores_every_byte(notes: Scenario) -> None:
    notes.write("agentd/specs/CHANGELOG.md", "# Ours\r\n\r\n## 2020-01-01: old\r\n\r\n- it was\r\n")
    change = notes.notes_complete("short-titles", {"notes": SHORTER, "tags": TAGS})
    (change.folder / "AGENTS.md").write_text("context")
    os.chmod(change.folder / "proposal.md", 0o640)
    before = tree_files(notes.root)
    assert notes.agentd("archive", "short-titles").code == 0
    assert b"## 2020-01-01: old\r\n" in tree_files(notes.root)["agentd/specs/CHANGELOG.md"][1]
    assert tree_files(notes.root) != before
    notes.git("add", "--all")
    notes.commit("archived")
    back = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert (back.code, back.json["phase"]) == (0, "complete"), back.out
    assert tree_files(notes.root) == before
    assert notes.agentd("list", "--json").json["changes"][0]["next"] == "agentd archive short-titles"
    assert notes.agentd("archive", "short-titles").code == 0, "and it can be archived again"


def test_undo_is_refused_after_later_edits(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER})
    assert notes.agentd("archive", "short-titles").code == 0
    text = main_spec(notes)
    notes.write("agentd/specs/notes.md", text + "\nMore.\n")
    refused = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert refused.code == 1 and "agentd/specs/notes.md was changed" in refused.json["error"]["message"]
    notes.write("agentd/specs/notes.md", text)
    assert notes.agentd("archive", "short-titles", "--undo").code == 0


def test_undo_without_local_state_suggests_git_revert(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER})
    assert notes.agentd("archive", "short-titles").code == 0
    notes.execute("rm", "-rf", ".git/agentd")
    refused = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert refused.code == 1 and "git revert" in refused.json["error"]["hint"]
    nobody = notes.agentd("archive", "nobody", "--undo", "--json")
    assert (nobody.code, nobody.json["error"]["code"]) == (1, "change-not-found")


def test_a_dry_run_shows_the_diff_and_writes_nothing(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER, "tags": TAGS})
    before = tree_files(notes.root)
    shown = notes.agentd("archive", "short-titles", "--dry-run")
    assert shown.code == 0 and tree_files(notes.root) == before
    assert "-A title is at most 80 characters.\n+A title is at most 40 characters." in shown.out
    assert "--- /dev/null\n+++ b/agentd/specs/tags.md" in shown.out
    assert "rename agentd/changes/short-titles => agentd/archive/" in shown.out
    assert notes.agentd("archive", "short-titles", "--dry-run", "--json").json["phase"] == "complete"
    assert notes.agentd("archive", "short-titles", "--dry-run", "--undo").code == 2


def test_change_without_specs_creates_no_spec(notes: Scenario) -> None:
    notes.notes_complete("typo", {})
    assert notes.agentd("archive", "typo").code == 0
    assert sorted(path.name for path in (notes.root / "agentd/specs").iterdir()) == ["CHANGELOG.md", "notes.md"]
    assert main_spec(notes) == NOTES and "No spec changed." in main_spec(notes, "CHANGELOG")


def test_only_a_complete_change_is_archived(notes: Scenario) -> None:
    notes.notes_proposed("short-titles", {"notes": SHORTER})
    before = tree_files(notes.root)
    refused = notes.agentd("archive", "short-titles", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-complete")
    assert refused.json["error"]["hint"] == "agentd plan short-titles" and tree_files(notes.root) == before
    assert notes.agentd("archive", "nobody", "--json").json["error"]["code"] == "change-not-found"


def test_second_archive_with_the_same_name_and_date_gets_a_suffix(notes: Scenario) -> None:
    notes.notes_complete("typo", {})
    assert notes.agentd("archive", "typo", "--json").code == 0
    folder = archived(notes, "typo")
    folder.rename(folder.with_name("kept"))
    folder.mkdir()
    notes.notes_complete("typo", {})
    end = notes.agentd("archive", "typo", "--json")
    assert end.code == 0 and end.json["folder"].endswith("-typo-1"), end.out


def test_spec_edited_after_the_review_is_not_archived(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORTER})
    page = change.folder / "specs/notes.md"
    page.write_text(page.read_text().replace("at most 40", "at most 20"))
    refused = notes.agentd("archive", "short-titles", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-complete")
    assert refused.json["error"]["hint"].startswith("agentd impl short-titles --review")


def test_code_edited_after_the_review_is_warned_about(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER})
    notes.write("short-titles.py", "DONE = False\n")
    end = notes.agentd("archive", "short-titles")
    assert end.code == 0 and "short-titles.py changed since the review" in end.err


def test_merge_change_alias_archives(notes: Scenario) -> None:
    notes.notes_complete("typo", {})
    assert notes.agentd("merge-change", "typo").code == 0


def test_spec_deleted_after_the_review_stops_the_archive(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORTER})
    (change.folder / "specs/notes.md").unlink()
    refused = notes.agentd("archive", "short-titles", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-complete"), refused.out


def test_line_endings_changed_by_git_do_not_matter(notes: Scenario) -> None:
    notes.write(".gitattributes", "* text=auto\n")
    change = notes.notes_complete("short-titles", {"notes": SHORTER})
    page = change.folder / "specs/notes.md"
    page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    approve_code(change)
    assert notes.agentd("archive", "short-titles").code == 0


def test_clone_without_local_target_branch_uses_the_remote_branch(notes: Scenario, tmp_path: Path) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER}, notes.on_branch("short-titles"))
    notes.commit("work")
    notes.git("switch", "-q", "main")
    notes.write("other.txt", "more")
    notes.commit("main moves on")
    clone = tmp_path / "clone"
    notes.git("clone", "-q", "--no-local", "--branch", "agentd/short-titles", str(notes.root), str(clone))
    refused = notes.agentd("archive", "short-titles", "--json", cwd=clone)
    assert (refused.code, refused.json["error"]["code"]) == (1, "stale-branch")
    assert "git merge origin/main" in refused.json["error"]["hint"]
    notes.git("merge", "-q", "origin/main", cwd=clone)
    page = clone / "agentd/changes/short-titles/specs/notes.md"
    text = page.read_text()
    page.write_text(text.replace("at most 40", "at most 4"))
    edited = notes.agentd("archive", "short-titles", "--json", cwd=clone)
    assert edited.json["error"]["code"] == "change-not-complete", "without the judged tree, too"
    page.write_text(text)
    assert notes.agentd("archive", "short-titles", cwd=clone).code == 0


def test_sections_that_cannot_be_merged_are_warned_about(notes: Scenario) -> None:
    more = SHORTER.replace("## Acceptance Criteria", "## Data Model\n\nRows.\n\n## Acceptance Criteria")
    notes.notes_complete("short-titles", {"notes": more})
    end = notes.agentd("archive", "short-titles", "--json")
    assert end.code == 0 and "`## Data Model`: not merged" in end.json["warnings"][0]
    assert "Data Model" not in main_spec(notes)


def test_removal_of_a_requirement_renamed_elsewhere_is_warned_about(notes: Scenario) -> None:
    gone = delta_text("notes", aside="## Removed\n\n- R2: Notes have a title\n  - **Reason**: Nobody reads it.\n\n")
    notes.notes_complete("no-titles", {"notes": gone})
    renamed = delta_text("notes", aside="## Renamed\n\n- R2: Notes have a title → R7: Titles\n\n")
    notes.notes_complete("renamed", {"notes": renamed})
    assert notes.agentd("archive", "renamed").code == 0
    end = notes.agentd("archive", "no-titles", "--json")
    assert end.code == 0
    assert end.json["warnings"][0].startswith("notes:R2 is removed here and no longer in the main specs")


def test_undo_refusal_says_what_to_do_first(notes: Scenario) -> None:
    notes.notes_complete("short-titles", {"notes": SHORTER})
    kept = delta_text("notes", requirement_text("R1", "Notes are kept", "A note is kept for ever."))
    assert notes.agentd("archive", "short-titles").code == 0
    notes.notes_complete("kept", {"notes": kept})
    assert notes.agentd("archive", "kept").code == 0
    refused = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert (refused.code, refused.json["error"]["hint"]) == (1, "agentd archive kept --undo first")
    notes.git("add", "--all")
    notes.commit("archived")
    notes.git("switch", "-q", "-c", "elsewhere", "HEAD~1")
    refused = notes.agentd("archive", "kept", "--undo", "--json")
    assert (refused.code, refused.json["error"]["hint"]) == (1, "git switch main, then run the command again")
    notes.git("switch", "-q", "main")
    assert notes.agentd("archive", "kept", "--undo").code == 0
    assert notes.agentd("archive", "short-titles", "--undo").code == 0
