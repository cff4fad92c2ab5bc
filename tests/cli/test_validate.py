"""`agentd validate`: exit codes, places, mending, and many changes at once."""

import os
import shutil

import pytest

from agentd.change import lifecycle
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import Scenario


@pytest.fixture
def example(project: Scenario) -> Scenario:
    target = project.root / "agentd/changes/add-oauth"
    shutil.copytree(EXAMPLE, target)
    state = target / "STATE.yaml"
    text = state.read_text().replace("setup: branch", "setup: in-place")
    state.write_text(text.replace("branch: agentd/add-oauth", "branch: null"))
    project.write("agentd/specs/api-endpoints.md", (EXAMPLE / "base/api-endpoints.md").read_text())
    return project


def edit(box: Scenario, name: str, old: str, new: str, change: str = "add-oauth") -> None:
    path = box.root / "agentd/changes" / change / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_example_is_valid_in_strict_mode(example: Scenario) -> None:
    ran = example.agentd("validate", "add-oauth", "--strict")
    assert (ran.code, ran.out) == (0, "add-oauth  challenged, valid\n")
    assert example.agentd("validate-proposal", "add-oauth").code == 0, "an older word for it"


def test_dependency_cycle_has_file_line_and_exit_code(example: Scenario) -> None:
    edit(example, "tasks.md", "depends_on: []", 'depends_on: ["2.1"]')
    edit(example, "tasks.md", "depends_on: []", 'depends_on: ["1.1"]')
    ran = example.agentd("validate", "add-oauth")
    assert ran.code == 1
    where = "agentd/changes/add-oauth/tasks.md:18: high: "
    assert f"{where}Circular dependency detected: data.1 → logic.1 → data.1\n" in ran.out
    assert "    dependency-cycle: drop one of these dependencies\n" in ran.out
    assert ran.out.endswith("add-oauth  challenged, invalid, 1 high\n")


def test_strict_fails_on_any_finding(example: Scenario) -> None:
    edit(example, "proposal.md", "## Why\n", "## Why\n\nTODO\n")
    ran = example.agentd("validate", "add-oauth")
    assert ran.code == 0 and ran.out.endswith("add-oauth  challenged, valid, with 1 medium\n")
    assert example.agentd("validate", "add-oauth", "--strict").code == 1


def test_json_has_the_fields_of_the_mcp_tool(example: Scenario) -> None:
    edit(example, "proposal.md", "## Why\n", "## Why\n\nTODO\n")
    data = example.agentd("validate", "add-oauth", "--json").json
    assert (data["valid"], data["high_count"], data["medium_count"], data["low_count"]) == (True, 0, 1, 0)
    (finding,) = data["findings"]
    assert (finding["file"], finding["line"], finding["rule"], finding["severity"]) == (
        "proposal.md",
        23,
        "placeholder",
        "medium",
    )
    assert finding["message"] and finding["hint"]


def test_fix_writes_fixes_and_diff_only_shows_them(example: Scenario) -> None:
    path = example.root / "agentd/changes/add-oauth/specs/auth-flow.md"
    good = path.read_text()
    edit(example, "specs/auth-flow.md", "### R2: Provider", "#### R2. Provider")
    bad = path.read_text()
    ran = example.agentd("validate", "add-oauth", "--diff")
    assert ran.code == 0 and "-#### R2. Provider callback\n+### R2: Provider callback\n" in ran.out
    assert path.read_text() == bad
    ran = example.agentd("validate", "add-oauth", "--fix", "--diff")
    assert path.read_text() == bad, "with --diff nothing is written"
    ran = example.agentd("validate", "add-oauth", "--fix")
    assert ran.code == 0 and "fixed specs/auth-flow.md" in ran.out
    assert path.read_text() == good
    assert example.agentd("validate", "add-oauth", "--diff").out == "Nothing to fix.\n"


def test_fix_is_refused_while_a_run_is_active(example: Scenario) -> None:
    edit(example, "specs/auth-flow.md", "### R2: Provider", "#### R2. Provider")
    with lifecycle.open_change(find_project(), "add-oauth").running("agentd plan add-oauth"):
        assert example.agentd("validate", "add-oauth", "--fix").code == 5
        assert example.agentd("validate", "add-oauth").code == 1, "reading is fine"


def test_all_option_validates_every_change(example: Scenario) -> None:
    for number in range(3):
        shutil.copytree(example.root / "agentd/changes/add-oauth", example.root / f"agentd/changes/copy-{number}")
    edit(example, "tasks.md", "user-model:R1", "user-model:R7", "copy-1")
    ran = example.agentd("validate", "--all")
    assert ran.code == 1
    assert ran.out.endswith("4 changes, 1 invalid: copy-1\n")
    data = example.agentd("validate", "--all", "--json").json
    assert {row["change_id"]: row["valid"] for row in data["changes"]} == {
        "add-oauth": True,
        "copy-0": True,
        "copy-1": False,
        "copy-2": True,
    }


def test_many_changes_are_validated_in_parallel_and_reported_in_order(example: Scenario) -> None:
    """More than one process's worth; every tenth is broken."""
    for number in range(230):
        folder = f"agentd/changes/many-{number:03}"
        example.write(f"{folder}/STATE.yaml", f"change_id: many-{number:03}\nphase: proposed\n")
        example.write(f"{folder}/proposal.md", "# P\n" if number % 10 == 0 else (EXAMPLE / "proposal.md").read_text())
    data = example.agentd("validate", "--all", "--json").json
    rows = {row["change_id"]: row for row in data["changes"]}
    assert len(rows) == 231
    for number in range(230):
        missing = [one["message"] for one in rows[f"many-{number:03}"]["findings"] if one["rule"] == "heading-missing"]
        assert len(missing) == (4 if number % 10 == 0 else 0)


def test_draft_is_not_blamed_for_missing_later_documents(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "add-oauth", "words")
    assert project.agentd("validate", "add-oauth", "--strict").code == 0
    (change.folder / "proposal.md").write_bytes((EXAMPLE / "proposal.md").read_bytes())
    assert project.agentd("validate", "add-oauth", "--strict").code == 0


def test_links_are_resolved_within_the_project(example: Scenario) -> None:
    example.write("docs/a b.md")
    edit(example, "proposal.md", "## Why\n", "## Why\n\n[a](docs/a%20b.md) [b](specs/user-model.md) [c](no.md)\n")
    data = example.agentd("validate", "add-oauth", "--json").json
    assert [one["message"] for one in data["findings"]] == ["no.md does not exist"]


def test_project_settings_are_applied(example: Scenario) -> None:
    edit(example, "proposal.md", "## Why\n", "## Why\n\nTODO\n")
    example.write("agentd/config.toml", '[validation.severity]\nplaceholder = "high"\n')
    assert example.agentd("validate", "add-oauth").code == 1
    ran = example.agentd("--set", "validation.severity.placeholder=off", "validate", "add-oauth", "--strict")
    assert ran.code == 0


def test_validate_needs_one_id_or_all(example: Scenario) -> None:
    ran = example.agentd("validate")
    assert ran.code == 2 and "agentd validate --all" in ran.err
    assert example.agentd("validate", "add-oauth", "--all").code == 2
    assert example.agentd("validate", "nobody").code == 1


def test_change_with_a_broken_state_is_not_valid(example: Scenario) -> None:
    (example.root / "agentd/changes/add-oauth/STATE.yaml").write_text("x: [")
    (example.root / "agentd/changes/add-oauth/tasks.md").unlink()
    assert example.agentd("validate", "add-oauth").code == 6
    ran = example.agentd("validate", "--all")
    assert ran.code == 1 and "1 change, 1 invalid: add-oauth" in ran.out


def test_symlink_or_pipe_is_not_a_document(example: Scenario) -> None:
    outside = example.root.parent / "outside.md"
    outside.write_text("# R1\n")
    spec = example.root / "agentd/changes/add-oauth/specs/auth-flow.md"
    spec.unlink()
    spec.symlink_to(outside)
    tasks = example.root / "agentd/changes/add-oauth/tasks.md"
    tasks.unlink()
    os.mkfifo(tasks)
    ran = example.agentd("validate", "add-oauth", "--fix")
    assert ran.code == 1 and "specs/auth-flow.md:1: high" in ran.out and "tasks.md:1: high" in ran.out
    assert spec.is_symlink() and outside.read_text() == "# R1\n"


def test_busy_change_does_not_prevent_fixing_the_others(example: Scenario) -> None:
    shutil.copytree(example.root / "agentd/changes/add-oauth", example.root / "agentd/changes/copy")
    for change in ("add-oauth", "copy"):
        edit(example, "specs/auth-flow.md", "### R2: Provider", "#### R2. Provider", change)
    with lifecycle.open_change(find_project(), "add-oauth").running("agentd plan add-oauth"):
        ran = example.agentd("validate", "--all", "--fix")
    assert "add-oauth was not fixed: add-oauth is being worked on by" in ran.err
    assert "copy: fixed specs/auth-flow.md" in ran.out
