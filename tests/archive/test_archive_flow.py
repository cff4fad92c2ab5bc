"""`agentd archive`: specs merged, folder put away, all of it or nothing, and taken back byte for byte."""

import os
from pathlib import Path

import pytest

from agentd.change.folder import read_state
from agentd.terms import Phase
from finished import NOTES, begun, complete, delta, requirement, scenario, snapshot, spec
from support import Box

SHORTER = delta("notes", requirement("R2", "Notes have a title", "A title is at most 40 characters."))
TAGS = spec("tags", requirement("R1", "Tags", "A note has tags."), scenario("Tagged", "R1", "it is found by its tag"))


@pytest.fixture
def notes(project: Box) -> Box:
    """A project with a spec."""
    project.write("agentd/specs/notes.md", NOTES)
    project.commit("a spec")
    return project


def main_spec(box: Box, name: str = "notes") -> str:
    return (box.root / f"agentd/specs/{name}.md").read_text()


def archived(box: Box, change_id: str) -> Path:
    (found,) = (box.root / "agentd/archive").glob(f"*-{change_id}")
    return found


def test_its_specs_become_the_projects_and_its_folder_is_put_away(notes: Box) -> None:
    change = complete(notes, "short-titles", {"notes": SHORTER, "tags": TAGS})
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
    assert notes.agentd("list").out.startswith("No changes yet") and told.code in (0, 1)
    assert "archived" in notes.agentd("list", "--all").out


def test_what_a_person_reads_says_what_was_merged_and_what_to_type(notes: Box) -> None:
    complete(notes, "short-titles", {"notes": SHORTER})
    end = notes.agentd("archive", "short-titles")
    assert end.code == 0 and "short-titles is archived in agentd/archive/" in end.out
    assert "  notes  version 2: R2 changed" in end.out and "git add --all" in end.out
    assert "To take it back: agentd archive short-titles --undo" in end.out


def test_taking_it_back_restores_every_byte(notes: Box) -> None:
    notes.write("agentd/specs/CHANGELOG.md", "# Ours\r\n\r\n## 2020-01-01: old\r\n\r\n- it was\r\n")
    change = complete(notes, "short-titles", {"notes": SHORTER, "tags": TAGS})
    (change.folder / "AGENTS.md").write_text("context")
    os.chmod(change.folder / "proposal.md", 0o640)
    before = snapshot(notes.root)
    assert notes.agentd("archive", "short-titles").code == 0
    assert b"## 2020-01-01: old\r\n" in snapshot(notes.root)["agentd/specs/CHANGELOG.md"][1]
    assert snapshot(notes.root) != before
    notes.git("add", "--all")
    notes.commit("archived")
    back = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert (back.code, back.json["phase"]) == (0, "complete"), back.out
    assert snapshot(notes.root) == before
    assert notes.agentd("list", "--json").json["changes"][0]["next"] == "agentd archive short-titles"
    assert notes.agentd("archive", "short-titles").code == 0, "and it can be archived again"


def test_nothing_is_taken_back_that_somebody_built_on(notes: Box) -> None:
    complete(notes, "short-titles", {"notes": SHORTER})
    assert notes.agentd("archive", "short-titles").code == 0
    text = main_spec(notes)
    notes.write("agentd/specs/notes.md", text + "\nMore.\n")
    refused = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert refused.code == 1 and "agentd/specs/notes.md was changed" in refused.json["error"]["message"]
    notes.write("agentd/specs/notes.md", text)
    assert notes.agentd("archive", "short-titles", "--undo").code == 0


def test_what_was_archived_elsewhere_is_taken_back_by_git(notes: Box) -> None:
    complete(notes, "short-titles", {"notes": SHORTER})
    assert notes.agentd("archive", "short-titles").code == 0
    notes.run("rm", "-rf", ".git/agentd")
    refused = notes.agentd("archive", "short-titles", "--undo", "--json")
    assert refused.code == 1 and "git revert" in refused.json["error"]["hint"]
    nobody = notes.agentd("archive", "nobody", "--undo", "--json")
    assert (nobody.code, nobody.json["error"]["code"]) == (1, "change-not-found")


def test_a_dry_run_shows_the_diff_and_writes_nothing(notes: Box) -> None:
    complete(notes, "short-titles", {"notes": SHORTER, "tags": TAGS})
    before = snapshot(notes.root)
    shown = notes.agentd("archive", "short-titles", "--dry-run")
    assert shown.code == 0 and snapshot(notes.root) == before
    assert "-A title is at most 80 characters.\n+A title is at most 40 characters." in shown.out
    assert "--- /dev/null\n+++ b/agentd/specs/tags.md" in shown.out
    assert "rename agentd/changes/short-titles => agentd/archive/" in shown.out
    assert notes.agentd("archive", "short-titles", "--dry-run", "--json").json["phase"] == "complete"
    assert notes.agentd("archive", "short-titles", "--dry-run", "--undo").code == 2


def test_a_change_without_specs_invents_none(notes: Box) -> None:
    complete(notes, "typo", {})
    assert notes.agentd("archive", "typo").code == 0
    assert sorted(path.name for path in (notes.root / "agentd/specs").iterdir()) == ["CHANGELOG.md", "notes.md"]
    assert main_spec(notes) == NOTES and "No spec changed." in main_spec(notes, "CHANGELOG")


def test_only_a_complete_change_is_archived(notes: Box) -> None:
    begun(notes, "short-titles", {"notes": SHORTER})
    before = snapshot(notes.root)
    refused = notes.agentd("archive", "short-titles", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-complete")
    assert refused.json["error"]["hint"] == "agentd plan short-titles" and snapshot(notes.root) == before
    assert notes.agentd("archive", "nobody", "--json").json["error"]["code"] == "change-not-found"


def test_a_second_one_of_that_day_and_name_gets_a_number(notes: Box) -> None:
    complete(notes, "typo", {})
    assert notes.agentd("archive", "typo", "--json").code == 0
    folder = archived(notes, "typo")
    folder.rename(folder.with_name("kept"))
    folder.mkdir()
    complete(notes, "typo", {})
    end = notes.agentd("archive", "typo", "--json")
    assert end.code == 0 and end.json["folder"].endswith("-typo-1"), end.out


def test_specs_that_changed_since_the_code_was_judged_are_not_merged(notes: Box) -> None:
    change = complete(notes, "short-titles", {"notes": SHORTER})
    page = change.folder / "specs/notes.md"
    page.write_text(page.read_text().replace("at most 40", "at most 20"))
    refused = notes.agentd("archive", "short-titles", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "change-not-complete")
    assert refused.json["error"]["hint"].startswith("agentd impl short-titles --review")


def test_code_that_changed_since_the_review_is_told(notes: Box) -> None:
    complete(notes, "short-titles", {"notes": SHORTER})
    notes.write("short-titles.py", "DONE = False\n")
    end = notes.agentd("archive", "short-titles")
    assert end.code == 0 and "short-titles.py changed since the review" in end.err


def test_the_old_name_of_the_command_is_read(notes: Box) -> None:
    complete(notes, "typo", {})
    assert notes.agentd("merge-change", "typo").code == 0
