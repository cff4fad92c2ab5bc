"""`agentd export openspec`: specs of our own form as OpenSpec has them."""

from pathlib import Path

from openspec_project import read_all

from loopback import clis
from plans import requirement_text, scenario_text, spec_text
from scenario import Scenario

TEXT = "The system SHALL keep a note until it is deleted by somebody who may."
NOTES = spec_text(
    "notes",
    requirement_text("R1", "Notes are kept", TEXT)
    + requirement_text("R2", "Notes have a title", "A title SHALL be short."),
    scenario_text("Kept", "R1", "the note is there")
    + scenario_text("Long", "R2", "it is refused")
    + scenario_text("Gone", "R1", "no"),
).replace("What holds for notes.", "What holds for notes, in enough words to be a purpose that nobody calls brief.")


def test_scenarios_are_exported_under_their_requirements(project: Scenario, tmp_path: Path) -> None:
    project.write("agentd/specs/notes.md", NOTES)
    project.write("agentd/specs/CHANGELOG.md", "# Changelog\n")
    ran = project.agentd("export", "openspec", "--into", str(tmp_path / "out"), "--json")
    assert (ran.code, ran.json["specs"], ran.json["notes"]) == (0, ["notes"], [])
    found = read_all(tmp_path / "out")["notes"]
    assert {name: list(block.scenarios) for name, block in found.items()} == {
        "Notes are kept": ["Kept", "Gone"],
        "Notes have a title": ["Long"],
    }
    assert found["Notes are kept"].text == TEXT
    assert found["Notes are kept"].scenarios["Kept"] == "- **WHEN** it happens\n- **THEN** the note is there"
    text = (tmp_path / "out/openspec/specs/notes/spec.md").read_text()
    assert "Acceptance Criteria" not in text and "## Purpose" in text and not text.startswith("---")


def test_real_openspec_accepts_the_export(project: Scenario, tmp_path: Path) -> None:
    program = clis.need("openspec")
    clis.isolate()
    project.write("agentd/specs/notes.md", NOTES)
    assert project.agentd("export", "openspec", "--into", str(tmp_path / "out")).code == 0
    ran = project.execute(
        program, "validate", "--specs", "--strict", "--json", cwd=tmp_path / "out", OPENSPEC_TELEMETRY="0", CI="1"
    )
    assert ran.json["summary"]["totals"] == {"items": 1, "passed": 1, "failed": 0}


def test_scenario_of_the_whole_spec_is_exported_as_text_and_reported(project: Scenario, tmp_path: Path) -> None:
    whole = "### Scenario: Always\n\n- **WHEN** anything\n- **THEN** fine\n"
    project.write("agentd/specs/notes.md", NOTES + "\n" + whole)
    ran = project.agentd("export", "openspec", "--into", str(tmp_path / "out"), "--json")
    (note,) = ran.json["notes"]
    assert "'Always' belongs to no requirement" in note["message"]
    text = (tmp_path / "out/openspec/specs/notes/spec.md").read_text()
    assert whole.rstrip() in text and text.count("Scenario: Kept") == 1


def test_export_does_not_overwrite_specs_or_leave_the_folder(project: Scenario, tmp_path: Path) -> None:
    project.write("agentd/specs/notes.md", NOTES.replace("version: 1", "version: 1\nopenspec: ../../out"))
    out = tmp_path / "deep" / "out"
    assert project.agentd("export", "openspec", "--into", str(out)).code == 0
    assert (out / "openspec/specs/notes/spec.md").is_file()
    before = sorted(path.name for path in out.iterdir())
    ran = project.agentd("export", "openspec", "--into", str(out))
    assert (ran.code, "already exists" in ran.err) == (1, True)
    assert sorted(path.name for path in out.iterdir()) == before == ["openspec"]
