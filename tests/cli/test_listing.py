"""`list` and `status`: what a person sees, wide, narrow, piped, and what a program gets."""

import re
import subprocess
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.project.layout import find_project
from plans import EXAMPLE
from program import AGENTD
from scenario import Scenario
from terminal import run_on_terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def example(project: Scenario) -> Scenario:
    """The example change in place, and a new one beside it."""
    target = project.root / "agentd/changes/add-oauth"
    for path in EXAMPLE.rglob("*"):
        if path.is_file() and "review-1" not in path.name:
            (target / path.relative_to(EXAMPLE)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(EXAMPLE)).write_bytes(path.read_bytes())
    state = target / "STATE.yaml"
    state.write_text(
        state.read_text()
        .replace("setup: branch", "setup: in-place")
        .replace("branch: agentd/add-oauth", "branch: null")
    )
    lifecycle.create_change(find_project(), "短い-name".replace("短い", "x"), "長い説明 with 中文 and plain words " * 5)
    return project


def test_piped_list_has_aligned_columns_without_color(example: Scenario) -> None:
    ran = example.agentd("list")
    assert ran.code == 0 and "\x1b" not in ran.out
    head, *rows = ran.out.splitlines()
    assert head.split() == ["CHANGE", "PHASE", "FINDINGS", "COST", "UPDATED", "NEXT"]
    assert [row.split()[0] for row in rows] == ["x-name", "add-oauth"], "newest first"
    for row, phase, following in zip(rows, ("drafting", "challenged"), ("plan x-name", "impl add-oauth"), strict=True):
        assert row[head.index("PHASE") :].startswith(phase)
        assert row[head.index("NEXT") :] == f"agentd {following}"
    assert rows[1][head.index("FINDINGS") :].startswith("1 low ")
    assert rows[1][head.index("COST") :].startswith("0.18 USD ")


@pytest.mark.parametrize("width", [30, 40, 56, 60, 72, 80, 120])
@pytest.mark.parametrize("command", [("list",), ("status",), ("status", "add-oauth"), ("config",)])
def test_no_line_is_wider_than_the_terminal(example: Scenario, command: tuple[str, ...], width: int) -> None:
    from agentd.cli.text_table import display_width

    seen = run_on_terminal(example, *command, width=width)
    assert seen.code == 0
    following = [line for line in seen.lines if "agentd impl" in line or "agentd plan" in line]
    assert following or command == ("config",)
    for line in seen.lines:
        if line not in following and "Where" not in line:  # what is to be typed or opened is never cut
            assert display_width(line) <= width, line


def test_terminal_output_has_color_unless_no_color_is_set(example: Scenario) -> None:
    assert ANSI.search(run_on_terminal(example, "list").screen)
    example.env["NO_COLOR"] = "1"
    assert not ANSI.search(run_on_terminal(example, "list").screen)


def test_json_has_the_fields_of_the_contract(example: Scenario) -> None:
    data = example.agentd("list", "--json").json
    assert (data["schema_version"], data["command"], data["error"], data["exit_code"]) == (1, "list", None, 0)
    row = next(row for row in data["changes"] if row["change_id"] == "add-oauth")
    contract = {
        "change_id": "add-oauth",
        "phase": "challenged",
        "round": 2,
        "verdict": "APPROVED",
        "open": {"high": 0, "medium": 0, "low": 1},
        "cost": 0.179363,
        "running": False,
        "updated_at": "2026-01-19T10:54:25Z",
        "next": "agentd impl add-oauth",
        "description": "Let people sign in with Google or GitHub",
    }
    assert {key: row[key] for key in contract} == contract


def test_status_of_one_change_shows_the_essentials(example: Scenario) -> None:
    ran = example.agentd("status", "add-oauth")
    assert ran.code == 0
    for words in (
        "add-oauth  challenged",
        "Let people sign in with Google or GitHub",
        "APPROVED in round 2",
        "C4  low  The refusal has no status code  specs/auth-flow.md:77",
        "last challenge (round 2)",
        "0.18 USD of 10.00 USD in 13 calls, 207,589 tokens in, 13,038 out",
        "Next      agentd impl add-oauth",
    ):
        assert words in ran.out, ran.out
    data = example.agentd("status", "add-oauth", "--json").json
    assert [finding["id"] for finding in data["findings"]] == ["C4"]
    assert data["tokens"] == {"in": 207589, "out": 13038, "cached": 65536}


def test_status_of_all_changes_shows_the_next_commands(example: Scenario) -> None:
    out = example.agentd("status").out
    assert out.startswith("2 open changes\n")
    assert "add-oauth  challenged\n  Let people sign in" in out
    assert "  → agentd impl add-oauth\n" in out


def test_empty_project_says_how_to_begin(project: Scenario) -> None:
    for command in ("list", "status"):
        ran = project.agentd(command)
        assert ran.code == 0 and 'agentd plan <id> "what should change"' in ran.out
    assert project.agentd("list", "--json").json["changes"] == []


def test_list_outside_a_project_says_what_to_run(box: Scenario, tmp_path: Path) -> None:
    ran = box.agentd("list")
    assert ran.code == 3 and "agentd init" in ran.err
    ran = box.agentd("list", cwd=tmp_path)
    assert ran.code == 3 and "git init" in ran.err
    ran = box.agentd("list", "--json", cwd=tmp_path)
    assert ran.code == 3 and ran.err == ""
    assert ran.json["error"]["code"] == "no-git" and ran.json["error"]["hint"] == "git init"


def test_typo_gets_a_suggestion(example: Scenario) -> None:
    assert "did you mean agentd status?" in example.agentd("statsu").err
    ran = example.agentd("status", "add-oatuh")
    assert ran.code == 1 and "did you mean add-oauth?" in ran.err
    ran = example.agentd("status", "Add OAuth")
    assert ran.code == 2 and "use add-oauth" in ran.err
    ran = example.agentd("list", "--jsn")
    assert ran.code == 2 and "agentd list --help" in ran.err


def test_killed_run_is_shown_as_interrupted(example: Scenario) -> None:
    state = example.root / "agentd/changes/add-oauth/STATE.yaml"
    text = "run:\n  workflow: plan\n  started_at: 2026-01-19T10:52:10Z\n  rounds_left: 1"
    state.write_text(state.read_text().replace("run: null", text))
    assert "challenged, interrupted" in example.agentd("list").out
    with lifecycle.open_change(find_project(), "add-oauth").running("agentd plan add-oauth"):
        assert "challenged, running" in example.agentd("list").out


def test_reader_that_closes_the_pipe_early_is_not_an_error(example: Scenario) -> None:
    """More than a pipe holds, to a reader that is gone before it is written."""
    for number in range(300):
        example.write(
            f"agentd/changes/many-{number}/STATE.yaml", f"change_id: many-{number}\ndescription: {'x' * 400}\n"
        )
    for command in ("list --json", "list"):
        assert shell(example, f"'{AGENTD}' {command} | true; exit ${{PIPESTATUS[0]}}") == (0, "")


def shell(box: Scenario, command: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command], cwd=box.root, env=box.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return done.returncode, done.stderr


def test_closed_full_or_non_utf8_stdout_does_not_crash(example: Scenario) -> None:
    assert shell(example, f"'{AGENTD}' list >&-") == (0, "")
    code, err = shell(example, f"'{AGENTD}' list --json >/dev/full")
    assert code == 3 and "Traceback" not in err
    code, err = shell(
        example, f"PYTHONIOENCODING=latin-1 '{AGENTD}' status && PYTHONIOENCODING=ascii '{AGENTD}' status --json"
    )
    assert (code, err) == (0, "")


def test_control_characters_in_a_description_are_removed(example: Scenario) -> None:
    lifecycle.create_change(find_project(), "evil", "before \x1b[2J\x1b]0;title\x07 after\nsecond line")
    for command in (("status",), ("status", "evil"), ("list",)):
        out = example.agentd(*command).out
        assert "\x1b" not in out and "\x07" not in out
    assert "before" in example.agentd("status").out


def test_status_counts_findings_from_the_current_records(example: Scenario) -> None:
    assert example.agentd("list").code == 0
    record = example.root / "agentd/changes/add-oauth/reviews/challenge-2.yaml"
    record.write_text(record.read_text().replace("  - id: C4\n    severity: low", "  - id: C4\n    severity: high"))
    assert example.agentd("status", "add-oauth", "--json").json["open"] == {"high": 1, "medium": 0, "low": 0}
