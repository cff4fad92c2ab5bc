"""The closing summary: what came of a run, what is open, what it cost, what to type next."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from plans import EXAMPLE
from terminal import Person, start_on_terminal

CODE = (
    "import json, sys\nfrom agentd.cli.run_summary import run_summary\nprint(run_summary(json.load(open(sys.argv[1]))))"
)
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def usual(**other: Any) -> dict[str, Any]:
    return {**json.loads((EXAMPLE / "result.json").read_text()), **other}


def closing(folder: Path, result: dict[str, Any], width: int = 80, **env: str) -> Person:
    """What a person sees on a terminal of that width."""
    file = folder / "result.json"
    file.write_text(json.dumps(result))
    person = start_on_terminal([sys.executable, "-c", CODE, str(file)], {**ENV, **env}, width, 60)
    assert person.waits() == 0
    return person


def text(folder: Path, result: dict[str, Any], width: int = 80) -> str:
    return closing(folder, result, width).display.text.rstrip()


def test_typical_result_is_summarized(tmp_path: Path) -> None:
    assert text(tmp_path, usual()).splitlines() == [
        "NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM, 1 LOW severity issues",
        "",
        "  C1  high    The callback accepts any `state`",
        "              specs/auth-flow.md:26",
        "  C2  medium  People who hide their address cannot sign in",
        "              specs/user-model.md:20",
        "  C3  low     No test for a refusal by the provider",
        "              tasks.md:106",
        "",
        "Files   agentd/changes/add-oauth/",
        "        clarifications.md, proposal.md, specs/user-model.md, specs/auth-flow.md,",
        "        specs/api-endpoints.md, tasks.md, CHALLENGE.md, reviews/challenge-1.yaml",
        "Cost    0.09 USD this run, 0.09 USD for the change",
        "",
        "Next    agentd plan add-oauth --rounds 1         Fix and challenge again",
        "        agentd view add-oauth                    Look at it",
        '        agentd plan add-oauth --accept "REASON"  Accept with a reason',
    ]


def test_short_findings_take_one_line_each(tmp_path: Path) -> None:
    lines = text(tmp_path, usual(), 90).splitlines()
    assert lines[3] == "  C2  medium  People who hide their address cannot sign in  specs/user-model.md:20"


def test_overlong_title_is_wrapped_to_two_lines(tmp_path: Path) -> None:
    one = {**usual()["findings"]["list"][0], "title": "Much too long " * 20}
    first, second, place = text(tmp_path, usual(findings={"open": {}, "list": [one]}), 60).splitlines()[3:6]
    assert first.startswith("  C1  high  Much too long") and second.endswith("…") and place.endswith("auth-flow.md:26")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_width_shows_the_essentials(tmp_path: Path, width: int) -> None:
    seen = text(tmp_path, usual(), width)
    for word in (
        "C1",
        "C3",
        "The callback accepts",
        "specs/auth-flow.md:26",
        "tasks.md:106",
        "reviews/challenge-1.yaml",
        "0.09 USD this run",
    ):
        assert word in seen
    assert "agentd plan add-oauth --rounds 1" in seen
    assert "..." not in seen and "…" not in seen and "cannot sign in" in " ".join(seen.split())
    assert len(seen.splitlines()) <= (30 if width < 80 else 25)
    assert all(len(line) <= width for line in seen.splitlines())


@pytest.mark.parametrize(
    ("verdict", "colour"),
    [("APPROVED", 32), ("NEEDS_REVISION", 33), ("REJECTED", 31), ("NEEDS_CHANGES", 33), ("MAJOR_ISSUES", 31)],
)
def test_verdict_has_its_color(tmp_path: Path, verdict: str, colour: int) -> None:
    result = usual(verdict=verdict, message=f"{verdict} - and more")
    assert f"\x1b[{colour}m\x1b[1m{verdict}\x1b[0m - and more" in closing(tmp_path, result).raw.decode()
    plain = closing(tmp_path, result, NO_COLOR="1")
    assert b"\x1b" not in plain.raw and f"{verdict} - and more" in plain.display.text


def test_recommended_option_comes_first(tmp_path: Path) -> None:
    options = [
        {"id": "view", "label": "Look at it", "recommended": False, "flag": None, "command": "agentd view add-oauth"},
        {"id": "fix", "label": "Fix", "recommended": True, "flag": None, "command": "agentd plan add-oauth"},
        {"id": "stop", "label": "Stop here", "recommended": False, "flag": None, "command": None},
    ]
    decision = {"id": "after-challenge-1", "question": "What next?", "options": options}
    assert text(tmp_path, usual(decision_needed=decision)).splitlines()[-2:] == [
        "Next    agentd plan add-oauth  Fix (recommended)",
        "        agentd view add-oauth  Look at it",
    ]


def test_approved_plan_names_the_next_command(tmp_path: Path) -> None:
    result = usual(
        verdict="APPROVED",
        message="APPROVED - Ready for implementation!",
        findings={"open": {"high": 0, "medium": 0, "low": 0}, "list": []},
        decision_needed=None,
        next="agentd impl add-oauth",
    )
    lines = text(tmp_path, result).splitlines()
    assert lines[0] == "APPROVED - Ready for implementation!"
    assert lines[2].startswith("Files") and lines[-1] == "Next    agentd impl add-oauth"


def test_error_summary_shows_progress_and_next_step(tmp_path: Path) -> None:
    error = {
        "code": "over-budget",
        "message": "add-oauth has cost 10.02 USD of 10",
        "hint": "raise [budget] per_change",
    }
    result = usual(error=error, verdict=None, message="", decision_needed=None, next="agentd plan add-oauth")
    lines = text(tmp_path, result).splitlines()
    assert lines[:2] == ["Error: add-oauth has cost 10.02 USD of 10", "  → raise [budget] per_change"]
    assert "Cost    0.09 USD this run, 0.09 USD for the change" in lines
    assert any("proposal.md" in line for line in lines)
    assert lines[-1] == "Next    agentd plan add-oauth"


def test_error_before_any_work_is_short(tmp_path: Path) -> None:
    nothing = {"run": 0.0, "change": 0.0, "currency": "USD", "calls_without_price": 0}
    result = usual(
        error={"code": "not-trusted", "message": "not trusted", "hint": "agentd trust"},
        verdict=None,
        message="",
        findings={"open": {"high": 0, "medium": 0, "low": 0}, "list": []},
        files=[],
        cost=nothing,
        tokens={"in": 0, "out": 0, "cached": 0},
        decision_needed=None,
        next=None,
    )
    assert text(tmp_path, result).splitlines() == ["Error: not trusted", "  → agentd trust", "", "Cost    nothing"]


def test_unknown_prices_are_reported(tmp_path: Path) -> None:
    cost = {"run": 0.0, "change": 1.5, "currency": "USD", "calls_without_price": 1}
    words = "this run, 1.50 USD for the change, 1 call without a known price"
    assert f"0.00 USD {words}" in text(tmp_path, usual(cost=cost))
    assert f"unknown {words}" in text(tmp_path, usual(cost={**cost, "run": None}))
    seen = " ".join(text(tmp_path, usual(cost={**cost, "calls_without_price": 3})).split())
    assert "3 calls without a known price" in seen


def test_open_findings_are_sorted_by_severity_and_limited(tmp_path: Path) -> None:
    one = usual()["findings"]["list"][0]
    states = {"high": "open", "medium": "disputed", "low": "open"}
    many = [{**one, "id": f"C{number}", "severity": "low"} for number in range(12)]
    many += [{**one, "id": f"D{severity}", "severity": severity, "state": state} for severity, state in states.items()]
    many += [{**one, "id": "GONE", "severity": "high", "state": state} for state in ("fixed", "withdrawn", "accepted")]
    lines = text(tmp_path, usual(findings={"open": {}, "list": many})).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["Dhigh", "Dmedium", "C0"]
    assert "  … and 5 more: agentd status add-oauth" in lines
    assert not any("GONE" in line for line in lines) and len(lines) <= 25


def test_many_files_are_shortened_with_a_count(tmp_path: Path) -> None:
    files = [f"src/module_{number}.py" for number in range(40)] + ["README.md"]
    seen = text(tmp_path, usual(files=files))
    assert "src/module_0.py" in seen and "and 29 more" in seen
    assert len(seen.splitlines()) <= 25


def test_worktree_change_shows_its_location(tmp_path: Path) -> None:
    place = {"setup": "worktree", "branch": "agentd/add-oauth", "tree": "../notes-agentd/add-oauth", "target": "main"}
    assert "Where   worktree ../notes-agentd/add-oauth" in text(tmp_path, usual(git=place))


def test_control_characters_from_agents_do_not_move_the_cursor(tmp_path: Path) -> None:
    one = usual()["findings"]["list"][0]
    evil = {**one, "title": "a\x1b[2J\nb\u202ec" + "变更" * 300, "where": "x\x1b[H.md"}
    result = usual(findings={"open": {}, "list": [evil]}, message="NEEDS_REVISION\x1b[2J")
    person = closing(tmp_path, result)
    assert not person.display.strange and b"\x1b[2J" not in person.raw and b"\x1b[H" not in person.raw
    assert "\u202e" not in person.raw.decode()
    assert sum("C1" in line for line in person.display.lines) == 1
