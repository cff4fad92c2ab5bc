"""`agentd trace`: what a person sees at every width, and what a program gets."""

import re

import pytest

from agentd.cli.text_table import display_width
from scenario import Scenario
from terminal import run_on_terminal
from trace_example import begun, implemented, planned

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_piped_trace_prints_a_table(project: Scenario) -> None:
    implemented(project)
    ran = project.agentd("trace", "add-oauth")
    assert ran.code == 0 and "\x1b" not in ran.out
    lines = ran.out.splitlines()
    assert lines[0].split() == ["REQUIREMENT", "TITLE", "TASKS", "FILES", "TESTS"]
    (first,) = (number for number, line in enumerate(lines) if line.startswith("auth-flow:R2"))
    assert re.split(r"\s{2,}", lines[first]) == [
        "auth-flow:R2", "Provider callback", "2.2, 4.1", "src/notes/auth/callback.py",
        "tests/test_auth_flow.py:18 test_used_state_is_refused",
    ]  # fmt: skip
    assert lines[first + 1].split() == ["tests/test_auth_flow.py"]
    assert lines[-1] == "6 requirements, each with task, changed file and test"


def test_gaps_are_marked_and_further_notes_are_listed_below(project: Scenario) -> None:
    project.write("tests/test_old.py", "def test_a():\n    assert a()\n    assert b()\n")
    begun(project)
    project.write("src/notes/auth/start.py", "x = 1\n")
    project.write("tests/test_old.py", "def test_a():\n    assert a()  # covers: auth-flow:R9\n")
    ran = project.agentd("trace", "add-oauth")
    assert ran.code == 0
    assert re.search(r"^auth-flow:R1 .* src/notes/auth/start\.py +✗ none$", ran.out, re.MULTILINE)
    assert re.search(r"^auth-flow:R2 .* ✗ none +✗ none$", ran.out, re.MULTILINE)
    assert "6 requirements, 5 without a changed file, 6 without a test" in ran.out
    below = ran.out[ran.out.index("Tests that check") :].splitlines()
    assert below == [
        "Tests that check less than before",
        "  tests/test_old.py:1: test_a has 1 assertion, 2 before",
        "",
        "Changed files that no task names",
        "  tests/test_old.py",
        "",
        "Notes",
        "  tests/test_old.py:2: auth-flow:R9 is in no spec",
    ]


def test_unimplemented_change_shows_dashes_for_files_and_tests(project: Scenario) -> None:
    planned(project)
    ran = project.agentd("trace", "add-oauth")
    assert ran.code == 0 and "✗" not in ran.out
    assert re.search(r"^auth-flow:R1 +Start of the sign-in +2\.1 +- +-$", ran.out, re.MULTILINE)
    assert ran.out.endswith("6 requirements, each with a task; nothing is implemented yet\n")
    data = project.agentd("trace", "add-oauth", "--json").json
    assert not data["implemented"] and {row["files"] for row in data["requirements"]} == {None}


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_trace_fits_the_terminal(project: Scenario, width: int) -> None:
    implemented(project)
    project.write("docs/a-rather-long-name-of-a-file-that-nobody-has-named-in-any-task.txt", "x\n")
    seen = run_on_terminal(project, "trace", "add-oauth", width=width)
    assert seen.code == 0
    lines = [ANSI.sub("", line) for line in seen.lines]
    assert max(display_width(line) for line in lines if " " in line.strip()) <= width, "a path alone stays whole"
    assert ("REQUIREMENT" in lines[0]) == (width >= 120)
    if width < 120:
        start = lines.index("user-model:R2")
        block = [line.split()[0] for line in lines[start + 2 : start + 5]]
        assert block == ["tasks", "files", "tests"]
        assert lines[start + 4].endswith("test_second_provider_joins"), (
            "the end of a place says more than its beginning"
        )


def test_json_has_the_trace_matrix(project: Scenario) -> None:
    implemented(project)
    data = project.agentd("trace", "add-oauth", "--json").json
    assert (data["schema_version"], data["command"], data["error"], data["exit_code"]) == (1, "trace", None, 0)
    assert (data["change_id"], data["implemented"]) == ("add-oauth", True)
    assert data["requirements"][2] == {
        "requirement": "auth-flow:R1",
        "title": "Start of the sign-in",
        "scenarios": ["Sign-in starts at the provider"],
        "tasks": ["2.1"],
        "files": ["src/notes/auth/start.py"],
        "tests": ["tests/test_auth_flow.py:14 test_start_covers_auth_flow_R1"],
        "waived": False,
    }
    assert data["unnamed"] == data["weakened"] == data["notes"] == []


def test_markdown_table_escapes_special_characters(project: Scenario) -> None:
    change = implemented(project)
    spec = change.folder / "specs/auth-flow.md"
    spec.write_text(spec.read_text().replace("R1: Start of the sign-in", "R1: Start | `now` <b>*x*"))
    project.write("docs/a|b.txt", "x\n")
    ran = project.agentd("trace", "add-oauth", "--markdown")
    lines = ran.out.splitlines()
    assert ran.code == 0 and lines[0] == "# Trace of add-oauth"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 6
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}
    assert r"| **auth-flow:R1** Start \| \`now\` \<b\>\*x\* |" in ran.out
    assert "src/notes/auth/callback.py<br>tests/test\\_auth\\_flow.py" in ran.out
    assert r"- docs/a\|b.txt" in lines


def test_change_without_specs_and_invalid_options_are_reported(project: Scenario) -> None:
    change = planned(project)
    for path in (change.folder / "specs").glob("*.md"):
        path.unlink()
    ran = project.agentd("trace", "add-oauth")
    assert (ran.code, ran.out) == (0, "There are no requirements in the specs of add-oauth.\n")
    assert "There are no requirements" in project.agentd("trace", "add-oauth", "--markdown").out
    both = project.agentd("trace", "add-oauth", "--markdown", "--json")
    assert both.code == 2 and "cannot be used together" in both.json["error"]["message"]
    assert project.agentd("trace", "nobody").code == 1


def test_trace_changes_nothing(project: Scenario) -> None:
    implemented(project)
    before = project.git("status", "--porcelain"), project.git("write-tree")
    project.agentd("trace", "add-oauth")
    assert (project.git("status", "--porcelain"), project.git("write-tree")) == before


def test_trace_is_listed_in_help(project: Scenario) -> None:
    assert "Show the tasks, files and tests behind each requirement." in project.agentd("--help").out
