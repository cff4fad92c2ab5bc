"""`agentd import speckit`: a change for each feature, nothing of it lost."""

from pathlib import Path

from agentd.change.folder import read_state
from agentd.documents import spec, tasks
from agentd.domain.terms import Layer, Phase
from scenario import Result, Scenario, tree_files

SPEC = """# Feature Specification: Photo albums

**Feature Branch**: `001-photo-albums`
**Created**: 2026-01-02
**Status**: Draft
**Input**: User description: "Let me put photos into albums"

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Make an album (Priority: P1)

A person makes an album.

**Why this priority**: Nothing works without it.

**Acceptance Scenarios**:

1. **Given** a signed-in person, **When** they name an album, **Then** it is there
2. **Given** an album, **When** they name it again,
   **Then** they are told, **And** nothing changes

### User Story 2 - Share it (Priority: P2)

**Acceptance Scenarios**:

1. **Given** an album, **When** it is shared, **Then** others see it
2. **Given** nothing at all

### Edge Cases

- What happens with a thousand albums?

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST keep albums by name.
- **FR-002**: System MUST refuse
  a name that is taken.
- **FR-003**: System MUST share via [NEEDS CLARIFICATION: how?]

### Key Entities *(include if feature involves data)*

- **Album**: has a name.

## Success Criteria *(mandatory)*

- **SC-001**: A person makes an album in a minute.
"""
PLAN = "# Implementation Plan\n\n## Summary\n\nAlbums in SQLite.\n\n## Technical Context\n\nPython 3.11\n"
TASKS = """# Tasks: Photo albums

## Phase 1: Setup

- [x] T001 Create the project structure
- [ ] T002 [P] Configure linting in pyproject/tool.toml

## Phase 2: User Story 1

- [ ] T003 [P] [US1] Create the model in src/models/album.py
- [ ] T004 [P] [US1] Create the model in `src/models/photo.py`
- [ ] T005 [US1] Write the service in src/services/albums.py (depends on T003, T004)
- [ ] T006 [US1] Add logging

## Testing

- [ ] T007 Test it in tests/test_albums.py
"""


def made(box: Scenario, **texts: str) -> None:
    for name, text in {"spec": SPEC, "plan": PLAN, "tasks": TASKS, **texts}.items():
        box.write(f"specs/001-photo-albums/{name}.md", text)
    box.write("specs/001-photo-albums/contracts/api.yaml", "openapi: 3.1.0\n")
    box.write(".specify/memory/constitution.md", "# Constitution\n")


def line_of(words: str) -> int:
    return SPEC[: SPEC.index(words)].count("\n") + 1


def imported(box: Scenario) -> Result:
    ran = box.agentd("import", "speckit", "--json")
    assert ran.code == 0, ran.err
    return ran


def folder(box: Scenario) -> Path:
    return box.root / "agentd/changes/001-photo-albums"


def test_functional_requirements_and_acceptance_scenarios_become_a_new_spec(project: Scenario) -> None:
    made(project)
    imported(project)
    text = (folder(project) / "specs/photo-albums.md").read_text()
    found = spec.parse_spec(text, "photo-albums")
    assert [(one.id, one.title, one.text) for one in found.requirements] == [
        ("R1", "System MUST keep albums by name", "**FR-001**: System MUST keep albums by name."),
        ("R2", "System MUST refuse a name that is taken", "**FR-002**: System MUST refuse\n  a name that is taken."),
        ("R3", "System MUST share via", "**FR-003**: System MUST share via [NEEDS CLARIFICATION: how?]"),
    ]
    assert [(one.name, one.requirement) for one in found.scenarios] == [
        ("User Story 1 - Make an album, 1", ""),
        ("User Story 1 - Make an album, 2", ""),
        ("User Story 2 - Share it, 1", ""),
    ]
    second = found.scenarios[1]
    assert (second.given, second.when) == (("an album",), ("they name it again",))
    assert second.then == ("they are told", "nothing changes")
    for kept in (
        "A person makes an album.",
        "What happens with a thousand",
        "has a name.",
        "SC-001",
        "Given** nothing",
    ):
        assert kept in text
    one, other = text.partition("### User Story 2")[::2]
    assert "**Acceptance Scenarios**" not in one, "nothing is left below it"
    assert "**Acceptance Scenarios**:\n\n2. **Given** nothing" in other


def test_long_requirement_gets_a_shortened_title(project: Scenario) -> None:
    words = "System MUST keep each of the albums, under whatever name a person has given to it; always"
    made(project, spec=SPEC.replace("System MUST keep albums by name.", words).replace("how?]", "how?]\n- **FR-004**:"))
    imported(project)
    titles = [
        one.title for one in spec.parse_spec((folder(project) / "specs/photo-albums.md").read_text(), "x").requirements
    ]
    assert titles[0] == "System MUST keep each of the albums, under whatever name a person has …"
    assert titles[3] == "FR-004"


def test_report_counts_the_scenarios(project: Scenario) -> None:
    made(project)
    told = project.agentd("import", "speckit").out
    assert "  1 change: 3 requirements added or changed, 3 scenarios, 7 tasks\n" in told


def test_tasks_keep_their_paths_and_parallel_tasks_have_no_dependency(project: Scenario) -> None:
    made(project)
    imported(project)
    found = tasks.parse_tasks((folder(project) / "tasks.md").read_text()).tasks
    rows = [(one.id, [file.path for file in one.files], one.depends_on) for one in found]
    assert rows == [
        ("2.1", [], ()),
        ("2.2", ["pyproject/tool.toml"], ()),
        ("2.3", ["src/models/album.py"], ()),
        ("2.4", ["src/models/photo.py"], ()),
        ("2.5", ["src/services/albums.py"], ("2.3", "2.4")),
        ("2.6", [], ("2.5",)),
        ("4.1", ["tests/test_albums.py"], ()),
    ]
    assert found[-1].layer is Layer.TESTING
    assert {str(file.action) for one in found for file in one.files} == {"CREATE"}
    said = project.agentd("validate", "001-photo-albums", "--json").json["findings"]
    bare = [one["message"] for one in said if one["rule"] == "task-format"]
    assert bare == [f"task {id_}: no file is given" for id_ in ("2.1", "2.6")]


def test_tests_of_a_story_belong_to_the_testing_layer(project: Scenario) -> None:
    heading = "### Tests for User Story 1 (OPTIONAL - only if tests requested) ⚠️"
    made(project, tasks=TASKS.replace("## Phase 2: User Story 1", heading))
    imported(project)
    found = tasks.parse_tasks((folder(project) / "tasks.md").read_text()).tasks
    assert [one.layer for one in found] == [Layer.LOGIC] * 2 + [Layer.TESTING] * 5


def test_unsupported_files_are_kept_and_reported(project: Scenario) -> None:
    made(project)
    before = tree_files(project.root)
    ran = imported(project)
    told = {f"{one['file']}:{one['line']}": one["message"] for one in ran.json["notes"]}
    assert (folder(project) / "imported/plan.md").read_text() == PLAN
    assert (folder(project) / "imported/contracts/api.yaml").read_text() == "openapi: 3.1.0\n"
    assert "is not imported" in told[".specify/memory/constitution.md:0"]
    assert told[f"specs/001-photo-albums/spec.md:{line_of('[NEEDS')}"] == "still needs clarification"
    assert (
        told[f"specs/001-photo-albums/spec.md:{line_of('2. **Given** nothing')}"]
        == "does not say When and Then; it stays as text"
    )
    state = read_state(folder(project))
    assert (state.phase, state.description) == (Phase.PROPOSED, "Albums in SQLite.")
    after = tree_files(project.root)
    assert {name: data for name, data in after.items() if name in before} == before


def test_feature_without_requirements_scenarios_or_tasks_is_imported_and_reported(project: Scenario) -> None:
    made(project, spec="\ufeff# Something\r\n\r\nWords.\r\n", tasks="# Tasks\n\nNone yet.\n", plan="")
    told = [one["message"] for one in imported(project).json["notes"]]
    assert any("no functional requirement" in one for one in told)
    assert any("no acceptance scenario" in one for one in told)
    assert any("no checkbox" in one for one in told)
    assert not (folder(project) / "tasks.md").exists()


def test_feature_that_cannot_be_merged_is_reported(project: Scenario) -> None:
    made(project, spec=SPEC + "\n```\nleft open\n")
    told = [one["message"] for one in imported(project).json["notes"]]
    assert any("is not closed" in one for one in told)
