"""The matrix of a change: specs and tasks from its folder, files and tests from git."""

import os
from dataclasses import replace

import pytest

from agentd.change.folder import Change
from agentd.documents.records import Finding
from agentd.domain.errors import Refusal
from agentd.domain.terms import Severity
from agentd.project.config.loader import load_config
from agentd.trace import matrix_builder
from agentd.trace.matrix import TraceMatrix, TraceRow, trace_findings
from agentd.trace.matrix_builder import build_matrix, find_weakenings
from scenario import Scenario
from trace_example import begun, implemented, planned, trees


def matrix_of(change: Change) -> TraceMatrix:
    return build_matrix(change, *trees(change))


def row(matrix: TraceMatrix, requirement: str) -> TraceRow:
    return next(one for one in matrix.rows if one.requirement == requirement)


def found_in(change: Change, **severities: Severity | None) -> list[Finding]:
    rules = dict(load_config(change.project.config_file).validation.severity)
    rules |= {name.replace("_", "-"): severity for name, severity in severities.items()}
    base, tree = trees(change)
    return list(trace_findings(build_matrix(change, base, tree), find_weakenings(change, base, tree), rules))


def test_every_requirement_has_its_scenarios_tasks_files_and_tests(project: Scenario) -> None:
    matrix = matrix_of(implemented(project))
    assert [one.requirement for one in matrix.rows] == [
        "user-model:R1", "user-model:R2", "auth-flow:R1", "auth-flow:R2", "api-endpoints:R2", "api-endpoints:R5",
    ]  # fmt: skip
    assert row(matrix, "auth-flow:R2") == TraceRow(
        "auth-flow:R2",
        "Provider callback",
        ("Callback signs the person in", "Foreign state is refused", "Provider refuses"),
        ("2.2", "4.1"),
        ("src/notes/auth/callback.py", "tests/test_auth_flow.py"),
        ("tests/test_auth_flow.py:18 test_used_state_is_refused",),
        line=22,
    )
    assert row(matrix, "auth-flow:R1").tests == ("tests/test_auth_flow.py:14 test_start_covers_auth_flow_R1",)
    assert matrix.files_without_task == () and matrix.notes == () and matrix.implemented
    assert found_in(implemented_again(project)) == [], "an honest implementation has no finding"


def implemented_again(box: Scenario) -> Change:
    from agentd.change import lifecycle
    from agentd.project.layout import find_project

    return lifecycle.open_change(find_project(), "add-oauth")


def test_unimplemented_change_has_no_files_and_no_tests(project: Scenario) -> None:
    change = planned(project)
    project.write("tests/test_early.py", "# covers: auth-flow:R1\ndef test_a():\n    assert a()\n")
    matrix = build_matrix(change, None, None)
    assert not matrix.implemented and not matrix.tests
    assert all(one.tasks and not one.files and not one.tests for one in matrix.rows)
    assert trace_findings(matrix, find_weakenings(change, None, None), {}) == ()


def test_each_gap_is_a_finding_with_its_location(project: Scenario) -> None:
    change = implemented(project)
    os.remove(project.root / "src/notes/auth/start.py")
    tests = project.root / "tests/test_auth_flow.py"
    tests.write_text(tests.read_text().replace("covers: user-model:R2", ""))
    tasks = change.folder / "tasks.md"
    tasks.write_text(tasks.read_text().replace("spec_ref: user-model:R1", "spec_ref: user-model:R2"))
    project.write("src/notes/extra.py", "x = 1\n")
    told = {(one.by, one.requirement, one.severity): one for one in found_in(change)}
    assert set(told) == {
        ("rule:requirement-without-task", "user-model:R1", Severity.MEDIUM),
        ("rule:requirement-without-file", "auth-flow:R1", Severity.MEDIUM),
        ("rule:requirement-without-test", "user-model:R2", Severity.MEDIUM),
        ("rule:file-without-task", None, Severity.LOW),
    }
    one = told["rule:requirement-without-file", "auth-flow:R1", Severity.MEDIUM]
    assert (one.where, one.verified, one.title) == (
        "specs/auth-flow.md:16", True, "No file changed for auth-flow:R1: Start of the sign-in",
    )  # fmt: skip
    assert one.evidence and one.evidence.quote == "Start of the sign-in"
    assert [one.by for one in found_in(change, file_without_task=None, requirement_without_test=None)] == [
        "rule:requirement-without-task",
        "rule:requirement-without-file",
    ]


def test_requirement_with_waived_tasks_has_no_gap(project: Scenario) -> None:
    change = implemented(project)
    os.remove(project.root / "src/notes/auth/start.py")
    tasks = change.folder / "tasks.md"
    start = tasks.read_text().index('id: "2.1"')
    text = tasks.read_text()
    tasks.write_text(text[:start] + text[start:].replace("status: pending", "status: waived", 1))
    assert row(matrix_of(change), "auth-flow:R1").waived
    assert found_in(change) == []


def test_files_not_named_by_tasks_are_listed_without_agentds_own(project: Scenario) -> None:
    change = implemented(project)
    project.write("docs/odd näme.txt", "x\n")
    project.write("agentd/notes.md", "x\n")
    project.write("tests/test_more.py", "# covers: auth-flow:R1\ndef test_more():\n    assert start()\n")
    assert matrix_of(change).files_without_task == ("docs/odd näme.txt", "tests/test_more.py")
    assert [one.where for one in found_in(change)] == ["docs/odd näme.txt"], (
        "a test that covers something belongs there"
    )


def test_commits_by_anyone_do_not_matter(project: Scenario) -> None:
    change = implemented(project)
    before = matrix_of(change)
    project.commit("all of it")
    assert matrix_of(change) == before


def test_task_may_name_a_folder_or_a_pattern(project: Scenario) -> None:
    change = implemented(project)
    project.write("src/notes/auth/more.py", "x = 1\n")
    tasks = change.folder / "tasks.md"
    text = tasks.read_text().replace("file: src/notes/auth/start.py", "file: src/notes/auth/")
    tasks.write_text(text.replace("file: src/notes/api/me.py", 'file: "src/notes/api/m*.py"'))
    matrix = matrix_of(change)
    assert matrix.files_without_task == ()
    assert "src/notes/auth/more.py" in row(matrix, "auth-flow:R1").files
    assert row(matrix, "api-endpoints:R2").files == ("src/notes/api/me.py",)


def test_subfolder_project_uses_its_own_paths_and_sees_outside_changes(
    project: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("services/notes/agentd/config.toml", "schema_version = 1\n")
    project.write("other/test_other.py", "# covers: nobody:R1\ndef test_other():\n    assert x()\n")
    project.commit("a second project")
    monkeypatch.chdir(project.root / "services/notes")
    change = implemented(project, "services/notes")
    project.write("shared/lib.py", "x = 1\n")
    matrix = matrix_of(change)
    assert matrix.files_without_task == ("../../shared/lib.py",)
    assert row(matrix, "auth-flow:R1").files == ("src/notes/auth/start.py",)
    assert row(matrix, "auth-flow:R1").tests[0].startswith("tests/test_auth_flow.py:14 ")
    assert matrix.notes == (), "marks of another project are not ours"


def test_marks_without_a_requirement_are_notes_except_for_main_specs(project: Scenario) -> None:
    change = implemented(project)
    first = "def test_a():\n    assert a()  # covers: auth-flow:R9, api-endpoints:R1\n\n"
    text = f"{first}# covers: api-endpoints:R3\ndef test_b():\n    assert b()\n"
    project.write("tests/test_notes.py", text)
    assert [(one.path, one.line, one.what) for one in matrix_of(change).notes] == [
        ("tests/test_notes.py", 2, "auth-flow:R9 is in no spec"),
        ("tests/test_notes.py", 4, "api-endpoints:R3 is removed by this change"),
    ]


def test_tests_in_other_languages_and_unchanged_files_count(project: Scenario) -> None:
    project.write("web/start.test.ts", "it('starts (covers: auth-flow:R1)', () => { expect(start()).toBe(1) })\n")
    project.write(
        "core/lib.rs", "#[cfg(test)]\nmod tests {\n    /// covers: auth-flow:R1\n    #[test]\n    fn starts() {}\n}\n"
    )
    project.write("binary_test.py", "\0# covers: auth-flow:R1\n")
    project.write("tests/huge_test.py", "# covers: auth-flow:R1\n" + "x = 1\n" * 200_000)
    change = begun(project)
    tests = row(matrix_of(change), "auth-flow:R1").tests
    assert tests == ("core/lib.rs:5 starts", "web/start.test.ts:1 starts (covers: auth-flow:R1)")


def test_number_of_scanned_files_is_limited_and_reported(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    change = implemented(project)
    monkeypatch.setattr(matrix_builder, "MOST_FILES", 3)
    (note,) = matrix_of(change).notes
    assert note.what.endswith("files were not searched for tests")


def test_weakened_tests_are_found_between_the_trees(project: Scenario) -> None:
    project.write(
        "tests/test_old.py", "def test_a():\n    assert a()\n    assert b()\n\ndef test_b():\n    assert c()\n"
    )
    project.write("web/old.test.js", "it('works', () => { expect(a()).toBe(1) })\n")
    change = implemented(project)
    assert found_in(change) == []
    project.write("tests/test_old.py", "def test_a():\n    assert a()\n")
    os.remove(project.root / "web/old.test.js")
    told = [one for one in found_in(change) if one.by == "rule:test-weakened"]
    assert [(one.where, one.severity) for one in told] == [
        ("tests/test_old.py", Severity.HIGH),
        ("tests/test_old.py:1", Severity.HIGH),
        ("web/old.test.js", Severity.HIGH),
    ]
    assert told[1].title == "A test proves less than before: test_a has 1 assertion, 2 before"
    assert not [one for one in found_in(change, test_weakened=None) if one.by == "rule:test-weakened"]


def test_oversized_test_file_is_ignored(project: Scenario) -> None:
    large = "def test_a():\n    assert a()\n" + "x = 1\n" * 200_000
    project.write("tests/test_large.py", large)
    change = begun(project)
    project.write("tests/test_large.py", large.replace("    assert a()", "    a()"))
    assert find_weakenings(change, *trees(change)) == ()


def test_tests_removed_by_the_plan_are_allowed(project: Scenario) -> None:
    project.write(
        "tests/test_token.py",
        "def test_token():\n    '''covers: api-endpoints:R3'''\n    assert token()\n\ndef test_a():\n    assert a()\n",
    )
    project.write("tests/test_old.py", "def test_old():\n    assert old()\n")
    change = implemented(project)
    project.write("tests/test_token.py", "def test_a():\n    assert a()\n")
    os.remove(project.root / "tests/test_old.py")
    assert [one.where for one in found_in(change) if one.by == "rule:test-weakened"] == ["tests/test_old.py"]
    tasks = change.folder / "tasks.md"
    block = '```yaml\nid: "4.2"\nfile: tests/test_old.py\naction: DELETE\nspec_ref: api-endpoints:R5\n```\n'
    tasks.write_text(f"{tasks.read_text()}\n### Task 4.2: Old tests\n\n{block}")
    assert find_weakenings(change, *trees(change)) == ()


def test_missing_base_tree_is_reported(project: Scenario) -> None:
    change = implemented(project)
    change.update(lambda old: replace(old, base=replace(old.base, tree="1" * 40)))
    with pytest.raises(Refusal, match="add-oauth began from the tree 111111111111, which is not in this repository"):
        matrix_of(change)


def test_unreadable_documents_are_left_to_validation(project: Scenario) -> None:
    change = implemented(project)
    (change.folder / "specs/user-model.md").write_bytes(b"\xff\xfe\0")
    (change.folder / "tasks.md").write_bytes(b"\xff")
    matrix = matrix_of(change)
    assert [one.requirement for one in matrix.rows][:1] == ["auth-flow:R1"] and not matrix.rows[0].tasks
