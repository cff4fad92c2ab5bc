"""All commands look the same, and fit: headings, labels, the next command, counts, money, and lines of any width."""

import re
from pathlib import Path

import pytest

from agentd.change import lifecycle, run_control
from agentd.cli.text_table import display_width, wrap_text
from agentd.domain.events import NoticeIssued
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import RETRY_AT_ONCE, Scenario
from terminal import run_on_terminal

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BOLD, DIM = "\x1b[1m", "\x1b[2m"
RUN = "run:\n  workflow: plan\n  started_at: 2026-01-19T10:52:10Z\n  rounds_left: 1"
SPEC = "---\nid: tags\ntype: spec\ntitle: Tags\nversion: 1\n---\n\n# Spec: Tags\n\n## Overview\n\nTags.\n\n"
SPEC += "## Requirements\n\n### R1: Tags\n\nA note has tags.\n\n## Acceptance Criteria\n\n"
SPEC += "### Scenario: Tagged\n\n- **Requirement**: R1\n- **WHEN** it happens\n- **THEN** it is found\n"


@pytest.fixture
def example(project: Scenario) -> Scenario:
    """The example change in place, with findings, rounds and costs."""
    target = project.root / "agentd/changes/add-oauth"
    for path in EXAMPLE.rglob("*"):
        if path.is_file():
            (target / path.relative_to(EXAMPLE)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(EXAMPLE)).write_bytes(path.read_bytes())
    state = target / "STATE.yaml"
    text = state.read_text().replace("setup: branch", "setup: in-place")
    state.write_text(text.replace("branch: agentd/add-oauth", "branch: null"))
    project.configure(
        f"schema_version = 1\n{RETRY_AT_ONCE}[[checks]]\nname = 'tests'\ncommand = 'python -m unittest -v tests'\n"
    )
    return project


@pytest.fixture
def ended(project: Scenario) -> Scenario:
    """A change that was built, reviewed and archived, and nothing else."""
    change = project.notes_complete("add-tags", {"tags": SPEC})
    project.commit("the change", cwd=Path(change.tree))
    (change.folder / "REVIEW.md").write_text("# Review: add-tags\n\n**Verdict**: APPROVED\n")
    ran = project.agentd("archive", "add-tags")
    assert ran.code == 0, ran.err
    return project


def plain(line: str) -> str:
    return ANSI.sub("", line)


def stands_alone(line: str) -> bool:
    """A path, or what is to be typed: broken up it would be of no use."""
    words = line.strip().removeprefix("→ ").split(" ")
    return len(words) == 1 or words[0] in ("agentd", "git")


# ---- narrow and wide


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "command",
    [
        "status add-oauth",
        "status",
        "list",
        "trace add-oauth",
        "doctor",
        "trust",
        "cost",
        "cost add-oauth",
        "cost --by model",
        "log add-oauth",
        "impl add-oauth --dry-run",
        "validate --all",
        "validate add-oauth --diff",
    ],
)
def test_no_line_is_wider_than_the_terminal(example: Scenario, command: str, width: int) -> None:
    tell_at_length()
    seen = run_on_terminal(example, *command.split(), width=width)
    lines = [plain(line) for line in seen.lines]
    assert lines and [line for line in lines if display_width(line) > width and not stands_alone(line)] == []


def tell_at_length() -> None:
    """The journal has more to say than a line holds."""
    lifecycle.open_change(find_project(), "add-oauth").journal().append(
        NoticeIssued(code="long", message="and so on " * 15)
    )


def test_log_is_unwrapped_in_a_pipe_and_indented_on_a_terminal(example: Scenario) -> None:
    tell_at_length()
    [line] = example.agentd("log", "add-oauth").out.splitlines()
    first, *more = [plain(one) for one in run_on_terminal(example, "log", "add-oauth", width=40).lines]
    assert len(line) > 140 and len(more) > 2 and all(one.startswith("  ") for one in more)
    assert " ".join([first, *(one.strip() for one in more)]) == line


def test_trace_summary_is_wrapped_not_truncated(example: Scenario) -> None:
    screen = plain(run_on_terminal(example, "trace", "add-oauth", width=40).screen)
    result = " ".join(screen[re.search(r"^\d+ requirements,", screen, re.MULTILINE).start() :].split("\n\n")[0].split())  # type: ignore[union-attr]
    assert result == example.agentd("trace", "add-oauth").out.rstrip().splitlines()[-1]


def test_age_in_the_overview_is_never_truncated(example: Scenario) -> None:
    screen = plain(run_on_terminal(example, "status", width=40).screen)
    assert re.search(r"^  (.*, )?\d+ w ago$", screen, re.MULTILINE), screen


def test_text_without_spaces_is_split_but_paths_are_not() -> None:
    assert [display_width(line) for line in wrap_text("漢字" * 10, 8)] == [8] * 5
    assert wrap_text("in /a/very/long/path now", 8) == ["in", "/a/very/long/path", "now"]
    assert wrap_text("one two three", 7, "  ") == ["one two", "  three"]


def test_trust_wraps_commands_only_between_words(example: Scenario) -> None:
    lines = [plain(line) for line in run_on_terminal(example, "trust", width=40, typed="n\n").lines]
    shown = [line.partition(" | ")[2].rstrip() for line in lines if " | " in line]
    assert shown == ["python -m unittest -v tests"]
    narrow = "python -m unittest discover --start-directory tests --verbose"
    example.configure(f"schema_version = 1\n[[checks]]\nname = 'tests'\ncommand = '{narrow}'\n")
    lines = [plain(line) for line in run_on_terminal(example, "trust", width=40).lines]
    parts = [line.partition(" | ")[2] for line in lines if " | " in line]
    assert "".join(parts) == narrow and all(part.endswith(" ") for part in parts[:-1])


# ---- headings, labels, what to type next


def test_heading_is_a_bold_id_and_its_phase(example: Scenario) -> None:
    for command in (
        ("status", "add-oauth"),
        ("cost", "add-oauth"),
        ("impl", "add-oauth", "--dry-run"),
        ("validate", "add-oauth"),
    ):
        screen = run_on_terminal(example, *command).screen
        assert f"{BOLD}add-oauth\x1b[0m  " in screen, command
        assert re.search(r"^add-oauth  challenged\b", plain(screen), re.MULTILINE), command


def test_next_command_has_a_dim_label(example: Scenario) -> None:
    for command in (("status", "add-oauth"), ("init", "--no-commit")):
        screen = run_on_terminal(example, *command, width=120).screen
        assert re.search(rf"^{re.escape(DIM)}Next +\x1b\[0magentd ", screen, re.MULTILINE), screen
        assert "Next:" not in screen


def test_next_command_that_does_not_fit_moves_to_its_own_line(project: Scenario) -> None:
    lines = [plain(line) for line in run_on_terminal(project, "list", width=40).lines]
    assert lines == ["No open changes.", "Next", 'agentd plan <id> "what should change"']


def test_table_headings_are_dim_capitals(example: Scenario) -> None:
    for command in (("list",), ("cost",), ("cost", "add-oauth"), ("impl", "add-oauth", "--dry-run")):
        heads = re.findall(
            rf"^{re.escape(DIM)}([A-Z ]+)\x1b\[0m", run_on_terminal(example, *command).screen, re.MULTILINE
        )
        assert heads, command


def test_verdict_is_printed_in_capitals(example: Scenario) -> None:
    assert "APPROVED, " in example.agentd("status").out
    assert "APPROVED in round 2" in example.agentd("status", "add-oauth").out


def test_option_errors_use_the_common_error_format(example: Scenario) -> None:
    ran = example.agentd("mcp", "--prot", "1")
    assert ran.err == "Error: no such option '--prot'\n  → did you mean '--port'? agentd mcp --help\n", ran.err
    ran = example.agentd("cost", "--by", "moon")
    first = ran.err.splitlines()[0].removeprefix("Error: ")
    assert first[0].islower() and not first.endswith("."), first


def test_port_option_takes_a_number_in_every_help(example: Scenario) -> None:
    for command in ("mcp", "view"):
        assert re.search(r"--port N\b", example.agentd(command, "--help").out)


# ---- how a change stands


def test_ended_run_is_stopped_and_killed_run_is_interrupted(example: Scenario) -> None:
    state = example.root / "agentd/changes/add-oauth/STATE.yaml"
    state.write_text(state.read_text().replace("run: null", RUN))
    change = lifecycle.open_change(find_project(), "add-oauth")
    assert "challenged, interrupted" in example.agentd("list").out
    for code, word in ((130, "interrupted"), (3, "stopped"), (7, "stopped")):
        run_control.save_outcome(change, 1, {"exit_code": code})
        assert f"challenged, {word}" in example.agentd("list").out
    state.write_text(state.read_text().replace("updated_at: ", "updated_at: 2026-02-01T00:00:00Z # "))
    assert "challenged, interrupted" in example.agentd("list").out, "what is known is of an earlier run"


def test_dropped_change_is_not_shown_as_interrupted(example: Scenario) -> None:
    state = example.root / "agentd/changes/add-oauth/STATE.yaml"
    state.write_text(state.read_text().replace("run: null", RUN))
    assert example.agentd("drop", "add-oauth", "--yes").code == 0
    row = example.agentd("list", "--all").out.splitlines()[1]
    assert "dropped " in row and "interrupted" not in row


def test_list_and_status_say_the_same_when_nothing_is_open(ended: Scenario) -> None:
    told = {command: ended.agentd(command).out for command in ("list", "status")}
    assert told["list"] == told["status"]
    assert told["list"].startswith("No open changes; agentd list --all includes")
    assert "Next    agentd plan <id>" in told["list"]


def test_archived_change_can_still_be_read(ended: Scenario) -> None:
    status = ended.agentd("status", "add-tags")
    assert status.code == 0 and status.out.startswith("add-tags  archived\n") and "Next" not in status.out
    assert ended.agentd("status", "add-tags", "--json").json["next"] is None
    ended.write("add-tags.py", "DONE = 'by somebody else, later'\n")
    ended.write("later.py", "")
    traced = ended.agentd("trace", "add-tags", "--json").json
    assert traced["implemented"] and traced["unnamed"] == []
    assert ended.agentd("view", "add-tags", "--plain").out.startswith("# Review: add-tags")
    assert ended.agentd("view", "add-tags").out.startswith("# Review: add-tags")
    assert ended.agentd("validate", "add-tags").code == 1


def test_trace_of_missing_code_points_to_view(ended: Scenario) -> None:
    state = next((ended.root / "agentd/archive").glob("*-add-tags/STATE.yaml"))
    state.write_text(re.sub(r"(\n +tree: )[0-9a-f]{40}", rf"\g<1>{'ab' * 20}", state.read_text()))
    ran = ended.agentd("trace", "add-tags")
    assert ran.code == 1 and "is not in this repository" in ran.err
    assert "→ agentd view add-tags" in ran.err


# ---- counts and money


def test_validate_counts_changes_in_singular_and_plural(ended: Scenario) -> None:
    assert ended.agentd("validate", "--all").out == "No open changes.\n"
    for name in ("one", "two"):
        lifecycle.create_change(find_project(), name, "words")
        told = ended.agentd("validate", "--all").out.splitlines()[-1]
        assert told == {"one": "1 change, valid", "two": "2 changes, all valid"}[name]


def test_all_amounts_of_one_output_have_the_same_digits(example: Scenario) -> None:
    amounts = re.findall(r"  \d+\.(\d+) USD$", example.agentd("cost", "add-oauth").out, re.MULTILINE)
    assert len(amounts) > 4 and {len(digits) for digits in amounts} == {4}


# ---- import


def test_import_summary_uses_singular_and_plural(project: Scenario) -> None:
    project.write("specs/001-tags/spec.md", SPECKIT)
    project.write("specs/001-tags/tasks.md", "# Tasks\n\n- [x] T001 Create tags in src/tags.py\n- [ ] T002 More\n")
    dry = project.agentd("import", "speckit", "--dry-run")
    assert dry.code == 0, dry.err
    assert "  1 change: 1 requirement added or changed, 1 scenario, 2 tasks\n" in dry.out and "0 " not in dry.out
    assert "1 of 2 tasks is ticked" in dry.out
    assert dry.out.endswith("The original files were not changed.\nNext    agentd import speckit\n")
    assert project.agentd("import", "speckit").out.endswith("Next    agentd list\n")


def test_existing_files_of_an_import_are_joined_with_and(project: Scenario) -> None:
    openspec = "# auth Specification\n\n## Purpose\nx\n\n## Requirements\n### Requirement: Sign in\nIt SHALL.\n\n"
    openspec += "#### Scenario: A\n- **WHEN** a\n- **THEN** b\n"
    project.write("openspec/specs/auth/spec.md", openspec)
    project.write("openspec/specs/mail/spec.md", openspec.replace("auth", "mail"))
    assert project.agentd("import", "openspec").code == 0
    ran = project.agentd("import", "openspec")
    assert ran.code == 1 and "agentd/specs/auth.md and agentd/specs/mail.md already exist" in ran.err


SPECKIT = """# Feature Specification: Tags

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Tag a note (Priority: P1)

People tag notes.

**Acceptance Scenarios**:

1. **Given** a note, **When** it is tagged, **Then** it is found

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST keep the tags of a note
"""
