"""`agentd import openspec`: what becomes of what, what is told, and that it is all or nothing."""

import os
from pathlib import Path

import pytest

from agentd.change.folder import read_state
from agentd.documents import spec, tasks
from agentd.domain import clock
from agentd.domain.errors import Refusal
from agentd.domain.terms import Phase
from agentd.migrate import import_model, openspec
from agentd.migrate.import_model import LARGEST
from agentd.project.layout import find_project
from agentd.storage.transaction import run_transaction
from scenario import Result, Scenario, tree_files

PURPOSE = "## Purpose\nWho may come in, and how the system knows who they are.\n\n"
SESSION = (
    "### Requirement: Session ends\nThe system SHALL end a session after an hour.\n\n"
    "#### Scenario: Idle\n- **WHEN** nothing happens for an hour\n- **THEN** the session is over\n\n"
    "#### Scenario: Busy\n- **GIVEN** a session\n- **WHEN** something happens\n- **THEN** it goes on\n"
)
OLD = "### Requirement: Old thing\nThe system SHALL do it.\n\n#### Scenario: Old\n- **WHEN** old\n- **THEN** done\n"
AUTH = f"# auth Specification\n\n{PURPOSE}## Requirements\n{SESSION}\n{OLD}"
ADDED = (
    "## ADDED Requirements\n### Requirement: Two factors\nThe system MUST ask for a code.\n\n"
    "#### Scenario: Asked\n- **WHEN** the password is right\n- **THEN** a code is asked for\n"
)
PROPOSAL = "# Change: Ask for a code\n\n## Why\nPasswords leak.\n\n## What Changes\n- A code.\n\n## Impact\n- Code.\n"
TASKS = (
    "# Tasks\n\n## 1. Database\n\n- [x] 1.1 Add a table\n  with an index\n- [ ] 1.2 Fill it\n\n"
    "## 2. Testing\n- [ ] 2.1 Try\n"
)


@pytest.fixture
def auth(project: Scenario) -> Scenario:
    """A project with one spec of OpenSpec."""
    project.write("openspec/specs/auth/spec.md", AUTH)
    return project


def change(box: Scenario, delta: str, name: str = "add-code", capability: str = "auth") -> None:
    box.write(f"openspec/changes/{name}/specs/{capability}/spec.md", delta)
    box.write(f"openspec/changes/{name}/proposal.md", PROPOSAL)
    box.write(f"openspec/changes/{name}/tasks.md", TASKS)


def imported(box: Scenario) -> Result:
    ran = box.agentd("import", "openspec", "--json")
    assert ran.code == 0, ran.err
    return ran


def notes(ran: Result) -> dict[str, list[str]]:
    """The messages by file and line."""
    found: dict[str, list[str]] = {}
    for one in ran.json["notes"]:
        found.setdefault(f"{one['file']}:{one['line']}", []).append(one["message"])
    return found


def ours(box: Scenario, name: str = "specs/auth.md", change_id: str = "add-code") -> str:
    return (box.root / "agentd/changes" / change_id / name).read_bytes().decode()


def test_imported_requirements_get_ids_and_every_other_byte_is_kept(auth: Scenario) -> None:
    imported(auth)
    text = (auth.root / "agentd/specs/auth.md").read_text()
    head, _, body = text.partition("\n---\n\n")
    assert "id: auth" in head and "version: 1" in head
    expected = AUTH.replace("## Purpose", "## Overview")
    for number, name in enumerate(("Session ends", "Old thing"), 1):
        expected = expected.replace(f"### Requirement: {name}", f"### R{number}: {name}")
    assert body == expected
    found = spec.parse_spec(text, "auth")
    assert [(one.id, one.title) for one in found.requirements] == [("R1", "Session ends"), ("R2", "Old thing")]
    assert [(one.requirement, one.name) for one in found.scenarios] == [("R1", "Idle"), ("R1", "Busy"), ("R2", "Old")]


def test_all_four_sections_become_one_delta_based_on_the_main_spec(auth: Scenario) -> None:
    renamed = (
        "## RENAMED Requirements\n- FROM: `### Requirement: Session ends`\n- TO: `### Requirement: Session lasts`\n"
    )
    modified = SESSION.replace("Session ends", "Session lasts").replace("an hour", "a day")
    removed = "## REMOVED Requirements\n### Requirement: Old thing\n**Reason**: Nobody needs it.\n"
    change(auth, f"{ADDED}\n## MODIFIED Requirements\n{modified}\n{removed}\n{renamed}")
    imported(auth)
    found = spec.parse_spec(ours(auth), "auth")
    assert found.base_version == 1
    assert [(one.id, one.title) for one in found.requirements] == [("R3", "Two factors"), ("R1", "Session lasts")]
    assert [(one.id, one.reason) for one in found.removed] == [("R2", "Nobody needs it.")]
    assert [(one.old.id, one.new.id, one.new.title) for one in found.renamed] == [("R1", "R1", "Session lasts")]
    assert modified.partition("\n")[2].rstrip() in ours(auth)
    assert ours(auth, "base/auth.md") == (auth.root / "agentd/specs/auth.md").read_text()
    assert auth.agentd("validate", "add-code", "--json").json["findings"] != []
    high = {
        (one["file"], one["rule"])
        for one in auth.agentd("validate", "add-code", "--json").json["findings"]
        if one["severity"] == "high"
    }
    assert {rule for file, rule in high if "specs/" in file} == set()


def test_same_requirement_added_by_two_changes_gets_the_same_id(auth: Scenario) -> None:
    change(auth, ADDED, "a-first")
    change(auth, ADDED, "b-same")
    change(auth, ADDED.replace("Two factors", "Three factors"), "c-other")
    imported(auth)
    assert "### R3: Two factors" in ours(auth, change_id="a-first")
    assert "### R3: Two factors" in ours(auth, change_id="b-same")
    assert "### R4: Three factors" in ours(auth, change_id="c-other")


def test_open_change_is_imported_as_proposed_and_validated(auth: Scenario) -> None:
    change(auth, ADDED)
    auth.write("openspec/changes/add-code/design.md", "# Design\n")
    imported(auth)
    state = read_state(auth.root / "agentd/changes/add-code")
    assert (state.phase, state.description) == (Phase.PROPOSED, "Ask for a code")
    assert state.history[-1].why == "imported from OpenSpec"
    assert ours(auth, "imported/design.md") == "# Design\n"
    assert ours(auth, "imported/tasks.md") == TASKS
    found = auth.agentd("validate", "add-code", "--json").json["findings"]
    assert [one["message"] for one in found if one["rule"] == "task-format"] == [
        f"task {id_}: no file is given" for id_ in ("2.1", "2.2", "4.1")
    ]
    assert [one["message"] for one in found if one["rule"] == "heading-missing"] == []


@pytest.mark.parametrize(
    ("proposal", "summary"),
    [
        (PROPOSAL, "Ask for a code"),
        (PROPOSAL.replace("Change: Ask for a code", "Proposal"), "Passwords leak."),
        (
            "## Why\n<!-- reason -->\n\nPasswords\nleak.\n\nAnd more.\n\n## What Changes\n- A.\n\n## Impact\n- C.\n",
            "Passwords\nleak.",
        ),
        (PROPOSAL.replace("## Why", "## Summary\nMine.\n\n## Why"), "Mine."),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_summary_is_taken_from_the_proposal(auth: Scenario, proposal: str, summary: str, newline: str) -> None:
    change(auth, ADDED)
    source = auth.root / "openspec/changes/add-code/proposal.md"
    source.write_bytes(proposal.replace("\n", newline).encode())
    assert "Summary" not in str(notes(imported(auth)))
    text = ours(auth, "proposal.md").replace(newline, "\n").partition("\n---\n\n")[2]
    assert text.partition("## Summary\n")[2].partition("\n## ")[0].strip() == summary
    assert text.replace(f"## Summary\n\n{summary}\n\n", "", 1) == proposal or text == proposal
    found = auth.agentd("validate", "add-code", "--json").json["findings"]
    assert [one for one in found if one["file"].endswith("proposal.md") and one["severity"] == "high"] == []


def test_missing_summary_is_reported_and_not_invented(auth: Scenario) -> None:
    change(auth, ADDED)
    auth.write("openspec/changes/add-code/proposal.md", "# Proposal\n\n## Why\n\n## What Changes\n- A code.\n")
    told = notes(imported(auth))["openspec/changes/add-code/proposal.md:0"]
    assert told == ["has neither a title nor a Why to take a Summary from"]
    assert "Summary" not in ours(auth, "proposal.md")


CAPABILITIES = (
    "\n## Capabilities\n\n### New Capabilities\n- `auth`: Who may\n  come in.\n- `other`: <brief description>\n"
)


@pytest.mark.parametrize("mark", ["`auth`:", "**auth**:", "**`auth`** -", "auth —"])
def test_new_capability_gets_its_overview_from_the_proposal(project: Scenario, mark: str) -> None:
    change(project, ADDED)
    change(project, ADDED, capability="other")
    proposal = PROPOSAL + CAPABILITIES.replace("`auth`:", mark)
    project.write("openspec/changes/add-code/proposal.md", proposal)
    told = notes(imported(project))
    assert "\n## Overview\n\nWho may come in.\n\n## Requirements\n" in ours(project)
    assert "openspec/changes/add-code/specs/auth/spec.md:0" not in told
    (without,) = told["openspec/changes/add-code/specs/other/spec.md:0"]
    assert "it has no Overview" in without and "## Overview" not in ours(project, "specs/other.md")


def test_imported_plan_with_file_paths_in_tasks_is_valid(auth: Scenario) -> None:
    auth.write("src/otp.py", "")
    change(auth, ADDED)
    lines = ["Add `src/otp.py`", "Make src/new/mail.py and `./src/otp.py`", "Set `pyproject.toml`, `user.name` and .js"]
    lines += ["Forbid it in .eslintrc.json and .gitignore", "Read https://example.com/a.html and ../up/x.py in `t.py`"]
    auth.write("openspec/changes/add-code/tasks.md", "".join(f"- [ ] {one}\n" for one in lines))
    told = notes(imported(auth))
    found = tasks.parse_tasks(ours(auth, "tasks.md")).tasks
    assert [[(file.path, file.action) for file in one.files] for one in found] == [
        [("src/otp.py", "MODIFY")],
        [("src/new/mail.py", "CREATE"), ("src/otp.py", "MODIFY")],
        [("pyproject.toml", "CREATE")],
        [(".eslintrc.json", "CREATE"), (".gitignore", "CREATE")],
        [("t.py", "CREATE")],
    ]
    assert told["openspec/changes/add-code/tasks.md:1"] == ["tasks name no requirement"]
    high = [one for one in auth.agentd("validate", "add-code", "--json").json["findings"] if one["severity"] == "high"]
    assert high == []
    assert auth.agentd("plan", "add-code", "--accept", "It was agreed on elsewhere.").code == 0


def test_report_counts_everything_and_summarizes_repeated_notes(auth: Scenario) -> None:
    renamed = "## RENAMED Requirements\n- FROM: `### Requirement: Session ends`\n- TO: `### Requirement: It ends`\n"
    removed = "## REMOVED Requirements\n### Requirement: Old thing\n**Reason**: Gone.\n"
    change(auth, f"{ADDED}\n{removed}\n{renamed}", "c-0")
    for number in range(1, 5):
        change(auth, ADDED, f"c-{number}")
    auth.write("openspec/changes/c-4/tasks.md", "- [x] 1 Only one\n")
    dry = auth.agentd("import", "openspec", "--dry-run")
    shown = dry.out.splitlines()
    counts = "5 requirements added or changed, 1 removed, 1 renamed, 5 scenarios, 13 tasks"
    assert f"  5 changes: {counts}" in shown
    ticked = "tasks are ticked; here all are pending until a review approves their code"
    assert shown[shown.index(f"  5 changes: {ticked}") + 1] == "    c-0, c-1, c-2 and 2 more"
    assert "  For every line: agentd import openspec --dry-run --verbose" in shown and len(shown) < 20
    every = auth.agentd("import", "openspec", "--dry-run", "--verbose").out
    assert every.count("ticked; here all are pending") == 5 and "changes/c-3/tasks.md:5: 1 of 3 tasks" in every
    data = imported(auth).json
    assert len([one for one in data["notes"] if "ticked" in one["message"]]) == 5
    first = data["changes"][0]
    assert [first[name] for name in ("requirements", "removed", "renamed", "scenarios", "tasks")] == [1, 1, 1, 1, 3]


def test_ticked_task_is_imported_as_pending_and_reported(auth: Scenario) -> None:
    change(auth, ADDED)
    told = notes(imported(auth))["openspec/changes/add-code/tasks.md:5"]
    assert any("1 of 3 tasks is ticked" in one for one in told)
    assert "status: done" not in ours(auth, "tasks.md")
    assert "Task 1.1 of the OpenSpec list, under '1. Database'. It is ticked there." in ours(auth, "tasks.md")


def test_change_without_a_proposal_is_imported_as_a_draft(auth: Scenario) -> None:
    auth.write("openspec/changes/idea/.openspec.yaml", "schema: spec-driven\ncreated: 2026-01-02\n")
    imported(auth)
    state = read_state(auth.root / "agentd/changes/idea")
    assert (state.phase, state.created_at) == (Phase.DRAFTING, "2026-01-02T00:00:00Z")


def test_archived_change_is_imported_with_its_files_unchanged(auth: Scenario) -> None:
    auth.write("openspec/changes/archive/2025-01-11-add-login/proposal.md", PROPOSAL)
    auth.write("openspec/changes/archive/2025-01-11-add-login/STATE.yaml", "phase: complete\n")
    imported(auth)
    folder = auth.root / "agentd/archive/20250111-add-login"
    assert read_state(folder).phase is Phase.ARCHIVED
    assert (folder / "imported/proposal.md").read_text() == PROPOSAL
    row = next(one for one in auth.agentd("list", "--all", "--json").json["changes"] if one["change_id"] == "add-login")
    assert row["phase"] == "archived"


def test_nested_capability_round_trips_through_a_flat_id(auth: Scenario, tmp_path: Path) -> None:
    auth.write("openspec/specs/web/auth/spec.md", AUTH)
    auth.write("openspec/specs/web-auth/spec.md", AUTH)
    imported(auth)
    assert auth.agentd("export", "openspec", "--into", str(tmp_path / "out")).code == 0
    back, there = tree_files(tmp_path / "out/openspec"), tree_files(auth.root / "openspec")
    assert {name: data for name, (_, data) in back.items()} == {name: data for name, (_, data) in there.items()}
    assert len(back) == 3


@pytest.mark.parametrize(
    "text",
    [AUTH.replace("\n", "\r\n"), "\ufeff" + AUTH, AUTH.rstrip("\n"), "\ufeff" + PURPOSE + "## Requirements\n" + OLD],
)
def test_line_endings_and_byte_order_marks_round_trip(project: Scenario, tmp_path: Path, text: str) -> None:
    source = project.root / "openspec/specs/auth/spec.md"
    source.parent.mkdir(parents=True)
    source.write_bytes(text.encode())
    imported(project)
    assert project.agentd("export", "openspec", "--into", str(tmp_path / "out")).code == 0
    assert (tmp_path / "out/openspec/specs/auth/spec.md").read_bytes() == text.encode()


def test_dry_run_reports_the_same_and_writes_nothing(auth: Scenario) -> None:
    change(auth, ADDED)
    before = tree_files(auth.root)
    dry = auth.agentd("import", "openspec", "--dry-run", "--json").json
    assert tree_files(auth.root) == before and dry["written"] is False
    done = imported(auth).json
    assert {key: dry[key] for key in ("specs", "changes", "notes")} == {
        key: done[key] for key in ("specs", "changes", "notes")
    }


@pytest.mark.parametrize(
    "there", ["agentd/specs/auth.md", "agentd/changes/add-code/STATE.yaml", "agentd/archive/20250111-old/x"]
)
def test_existing_target_is_named_and_nothing_is_written(auth: Scenario, there: str) -> None:
    change(auth, ADDED)
    auth.write("openspec/changes/archive/2025-01-11-old/proposal.md", PROPOSAL)
    auth.write(there, "change_id: add-code\n")
    before = tree_files(auth.root)
    ran = auth.agentd("import", "openspec")
    assert ran.code == 1
    assert (
        there.split("/")[2] in ran.err.replace("the change add-code", "add-code") and "nothing was written" in ran.err
    )
    assert tree_files(auth.root) == before


@pytest.mark.parametrize(
    "there", ["agentd/specs/auth.md", "agentd/changes/add-code/proposal.md", "agentd/archive/20250111-old/STATE.yaml"]
)
def test_target_created_meanwhile_is_not_overwritten(auth: Scenario, tmp_path: Path, there: str) -> None:
    change(auth, ADDED)
    auth.write("openspec/changes/archive/2025-01-11-old/proposal.md", PROPOSAL)
    project = find_project()
    moving = openspec.read_openspec(import_model.read_source_tree(project.root, openspec.OPENSPEC_FOLDER), clock.now())
    import_model.refuse_existing(project, moving)
    wanted = import_model.import_operations(project, moving)
    auth.write(there, "Somebody's.\n")
    before = tree_files(auth.root)
    with pytest.raises(Refusal, match=f"{there} was just changed by someone else"):
        run_transaction(tmp_path / "record", project.root, "the import", wanted)
    assert tree_files(auth.root) == before


def test_missing_project_and_missing_openspec_folder_are_reported(box: Scenario, project: Scenario) -> None:
    (box.root / "agentd/config.toml").rename(box.root / "config.toml")
    ran = box.agentd("import", "openspec")
    assert (ran.code, "agentd init" in ran.err) == (3, True)
    (box.root / "config.toml").rename(box.root / "agentd/config.toml")
    ran = box.agentd("import", "openspec")
    assert (ran.code, "nothing from OpenSpec" in ran.err) == (1, True)


def test_symlinks_out_of_the_tree_are_not_followed(auth: Scenario, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text(AUTH.replace("Old thing", "Secret thing"))
    (auth.root / "openspec/specs/linked").mkdir()
    os.symlink(secret, auth.root / "openspec/specs/linked/spec.md")
    os.symlink(tmp_path, auth.root / "openspec/changes", target_is_directory=True)
    told = notes(imported(auth))
    assert "openspec/specs/linked/spec.md:0" in told and "openspec/changes:0" in told
    assert not any("Secret" in data.decode() for _, data in tree_files(auth.root / "agentd").values())


def test_odd_files_are_reported_with_line_and_the_rest_is_imported(auth: Scenario) -> None:
    change(auth, ADDED)
    auth.write("openspec/specs/huge/spec.md", AUTH + "x" * LARGEST)
    (auth.root / "openspec/specs/binary").mkdir()
    (auth.root / "openspec/specs/binary/spec.md").write_bytes(b"# a\n\xff\xfe\n")
    auth.write("openspec/specs/bare/spec.md", "# bare\n\n" + SESSION + SESSION)
    auth.write("openspec/project.md", "# Project\n")
    told = notes(imported(auth))
    assert "bytes" in told["openspec/specs/huge/spec.md:0"][0]
    assert "not UTF-8" in told["openspec/specs/binary/spec.md:2"][0]
    assert told["openspec/specs/bare/spec.md:0"] == [
        "has no `## Purpose`, so the spec has no Overview",
        "has no `## Requirements`",
    ]
    assert any("occurs twice, first on line 3" in one for one in told["openspec/specs/bare/spec.md:14"])
    assert told["openspec/project.md:0"] == ["is neither a spec nor a change, and stays where it is"]
    assert (auth.root / "agentd/specs/auth.md").is_file() and not (auth.root / "agentd/specs/huge.md").exists()


@pytest.mark.parametrize(
    ("delta", "line", "words"),
    [
        (
            "## MODIFIED Requirements\n" + SESSION.partition("\n#### Scenario: Busy")[0],
            2,
            "leaves out the scenario 'Busy'",
        ),
        (ADDED + "\n## MODIFIED Requirements\n### Requirement: Unknown\nIt SHALL.\n", 10, "is not in the main spec"),
        (ADDED + "\n## REMOVED Requirements\n- `### Requirement: Unknown`\n", 10, "neither removed nor renamed"),
        (ADDED + "\n## RENAMED Requirements\n- FROM: `### Requirement: Old thing`\n", 10, "has no TO"),
        (ADDED.replace("Two factors", "Old thing"), 2, "is in the main spec already"),
        (ADDED + "\n## Notes\nSomething.\n", 9, "`## Notes` is not mapped"),
        ("### Requirement: Lost\nIt SHALL.\n\n" + ADDED, 1, "is in no section of a change"),
        (ADDED + "\n#### Scenario: Asked\n- **WHEN** a\n- **THEN** b\n", 9, "occurs twice"),
    ],
)
def test_unsupported_content_of_a_change_is_reported_and_kept(
    auth: Scenario, delta: str, line: int, words: str
) -> None:
    change(auth, delta)
    told = notes(imported(auth))
    name = "openspec/changes/add-code/specs/auth/spec.md"
    assert any(words in one for one in told.get(f"{name}:{line}", [])), told
    assert ours(auth, "imported/specs/auth/spec.md") == delta


def test_markup_in_names_and_requirements_in_code_are_read_like_openspec(auth: Scenario) -> None:
    odd = "### Requirement: Use `a → R9: b` & **marks** ###\nIt SHALL.\n\n```\n### Requirement: No\n```\n\n"
    odd += "#### Scenario: S\n- **WHEN** a\n- **THEN** b\n"
    auth.write("openspec/specs/odd/spec.md", f"# odd\n\n{PURPOSE}## Requirements\n{odd}")
    renamed = "- FROM: `### Requirement: Use `a → R9: b` & **marks**`\n- TO: `### Requirement: C#`\n"
    change(auth, f"## RENAMED Requirements\n{renamed}", capability="odd")
    imported(auth)
    (found,) = spec.parse_spec((auth.root / "agentd/specs/odd.md").read_text(), "odd").requirements
    assert found.title == "Use `a → R9: b` & **marks**"
    (moved,) = spec.parse_spec(ours(auth, "specs/odd.md"), "odd").renamed
    assert (moved.old.id, moved.new.title) == ("R1", "C#")


def test_review_tag_in_an_imported_proposal_becomes_plain_text(auth: Scenario) -> None:
    change(auth, ADDED)
    tag = '\n<review status="APPROVED" iteration="1" reviewer="me">\nFine.\n</review>\n'
    auth.write("openspec/changes/add-code/proposal.md", PROPOSAL + tag)
    told = notes(imported(auth))
    assert "only agentd writes verdicts" in told["openspec/changes/add-code/proposal.md:12"][0]
    assert "\n&lt;review status" in ours(auth, "proposal.md")
    assert ours(auth, "imported/proposal.md") == PROPOSAL + tag


def test_failed_import_leaves_nothing(auth: Scenario) -> None:
    change(auth, ADDED)
    (auth.root / "agentd/changes").write_text("in the way")
    ran = auth.agentd("import", "openspec")
    assert ran.code != 0
    assert not (auth.root / "agentd/specs").exists()
