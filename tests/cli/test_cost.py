"""`agentd cost`: what a person sees of the money, and what a program gets."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agentd.agents.protocol import TokenUsage
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.state import CallRecord
from agentd.cli.text_table import display_width
from agentd.domain import clock
from agentd.engine.calls.call_costs import OpenCall
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import Scenario
from terminal import run_on_terminal


@pytest.fixture
def example(project: Scenario) -> Scenario:
    """The example change in place."""
    text = (EXAMPLE / "STATE.yaml").read_text()
    text = text.replace("setup: branch", "setup: in-place").replace("branch: agentd/add-oauth", "branch: null")
    project.write("agentd/changes/add-oauth/STATE.yaml", text)
    return project


def made(change_id: str, *calls: CallRecord) -> Change:
    change = lifecycle.create_change(find_project(), change_id, "words")
    change.update(lambda old: replace(old, llm_calls=calls))
    return change


def call(step: str = "challenge", model: str | None = "m", cost: float | None = 0.5, at: str = "") -> CallRecord:
    return CallRecord(
        step, "codex", "challenger", model, 1000, 10, 100, 60_000, cost, at or "2026-01-19T10:30:00Z", None
    )


def leave_open(change: Change, cost: float) -> None:
    with change.running("agentd plan") as held:
        under_way = OpenCall.begin(
            change,
            held.token,
            step="review",
            round=1,
            number=1,
            attempt=1,
            agent="codex",
            role="reviewer",
            model="m",
            session=None,
        )
        under_way.update(TokenUsage(tokens_in=1), cost)


def table_of(text: str, head: str) -> dict[str, list[str]]:
    """The rows below a head, by their first word."""
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(head))
    rows: dict[str, list[str]] = {}
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        rows[line.split()[0]] = re.split(r"\s{2,}", line.strip())[1:]
    return rows


def test_cost_lists_all_changes_with_their_total(example: Scenario) -> None:
    made("second", call(cost=1.0), call(cost=0.5))
    lifecycle.drop_change(made("third", call(cost=2.0)), "person:dev", "no need")
    ended = project_archive(example, "20260101-fourth", "fourth", call(cost=4.0))
    assert ended.exists()
    ran = example.agentd("cost")
    assert ran.code == 0 and "\x1b" not in ran.out
    rows = table_of(ran.out, "CHANGE")
    assert rows["add-oauth"] == ["challenged", "13", "207,589", "13,038", "65,536", "0.18 USD"]
    assert rows["second"] == ["drafting", "2", "2,000", "20", "200", "1.50 USD"]
    assert rows["third"][0] == "dropped" and rows["third"][-1] == "2.00 USD"
    assert rows["fourth"][0] == "archived" and rows["fourth"][-1] == "4.00 USD"
    assert rows["total"] == ["17", "211,589", "13,078", "65,936", "7.68 USD"]


def project_archive(box: Scenario, folder: str, change_id: str, *calls: CallRecord) -> Path:
    """An archived change, as `archive` leaves it."""
    from agentd.change.state import ChangeState, render_state
    from agentd.domain.terms import Phase

    state = ChangeState(change_id, "words", clock.now(), clock.now(), phase=Phase.ARCHIVED, llm_calls=calls)
    return box.write(f"agentd/archive/{folder}/STATE.yaml", render_state(state))


def test_cost_of_one_change_is_listed_by_step_and_model(example: Scenario) -> None:
    ran = example.agentd("cost", "add-oauth")
    assert ran.code == 0
    assert "9.82 USD left of 10.00 USD for this change" in ran.out
    steps = table_of(ran.out, "STEP")
    assert list(steps)[:3] == ["proposal-gen", "proposal-review", "spec-gen-user-model"]
    assert list(steps)[-3:] == ["challenge", "reproposal", "total"]
    assert steps["challenge"] == ["2", "52,471", "3,933", "22,528", "0.1026 USD"]
    models = table_of(ran.out, "MODEL")
    assert list(models) == ["gpt-5.2-codex", "gemini-3-pro-preview", "gemini-3-flash-preview", "total"]
    assert models["total"] == ["13", "207,589", "13,038", "65,536", "0.1794 USD"]


def test_json_has_every_table(example: Scenario) -> None:
    made("second", call("review", None, None, "2026-01-20T00:00:30Z"), call("review", cost=1.0))
    whole = example.agentd("cost", "--json").json
    assert (whole["schema_version"], whole["command"], whole["error"]) == (1, "cost", None)
    rows = {row["change_id"]: row for row in whole["changes"]}
    assert rows["second"]["calls"] == 2 and rows["second"]["calls_without_price"] == 1
    assert rows["add-oauth"]["tokens"] == {"in": 207589, "out": 13038, "cached": 65536}
    assert whole["total"]["cost"] == 1.179363 == sum(row["cost"] for row in whole["changes"])
    assert [(row["day"], row["calls"]) for row in whole["by_day"]] == [("2026-01-19", 15)], "begun before midnight"
    assert {row["model"]: row["cost"] for row in whole["by_model"]}[None] == 0.0
    assert whole["today"] == {"day": clock.now()[:10], "cost": 0.0}
    one = example.agentd("--set", "budget.per_day=3", "cost", "second", "--json").json
    assert [(row["step"], row["calls"]) for row in one["by_step"]] == [("review", 2)]
    assert one["total"]["calls_without_price"] == 1
    assert one["budget"] == {
        "spent": 1.0,
        "per_change": 10.0,
        "left": 9.0,
        "spent_today": 0.0,
        "per_day": 3.0,
        "left_today": 3.0,
    }


@pytest.mark.parametrize(
    ("by", "first"), [("day", "2026-01-19"), ("model", "m"), ("step", "review"), ("change", "one")]
)
def test_by_option_selects_the_table(project: Scenario, by: str, first: str) -> None:
    made("one", call("review", cost=1.0), call("review", cost=0.5))
    for arguments in ((), ("one",)):
        ran = project.agentd("cost", *arguments, "--by", by)
        assert ran.code == 0 and ran.out.count("total") == 1
        assert table_of(ran.out, by.upper())[first][-1] == "1.50 USD"


def test_calls_without_a_price_are_reported_and_not_shown_as_free(project: Scenario) -> None:
    made("one", call("review", "gpt-99", None), call("resolve", "gpt-99", None), call("challenge", cost=0.5))
    ran = project.agentd("cost", "one")
    assert table_of(ran.out, "STEP")["review"][-1] == "unknown"
    assert "Not included: 2 calls without a known price (gpt-99)" in ran.out
    assert "Not included: 2 calls without a known price (gpt-99)" in project.agentd("cost").out


def test_call_in_progress_counts_toward_remaining_budget_and_today(project: Scenario) -> None:
    change = made("one", call(cost=1.0))
    leave_open(change, 0.25)
    ran = project.agentd("--set", "budget.per_day=1", "cost", "one")
    assert "0.25 USD for a running or interrupted call" in ran.out
    assert "8.75 USD left of 10.00 USD for this change" in ran.out
    assert "0.75 USD left of 1.00 USD for today" in ran.out
    assert "0.25 USD today, over all changes" in project.agentd("cost").out


def test_cost_works_without_a_limit_and_without_calls(project: Scenario) -> None:
    assert project.agentd("cost").out == "No call has reported its usage yet.\n"
    made("one")
    ran = project.agentd("--set", "budget.per_change=0", "cost", "one")
    assert ran.code == 0 and "left" not in ran.out and "No call has reported its usage yet." in ran.out
    assert table_of(project.agentd("cost").out, "CHANGE")["one"][-1] == "-"


def test_remaining_budget_is_never_negative(project: Scenario) -> None:
    made("one", call(cost=12.0))
    assert "0.00 USD left of 10.00 USD" in project.agentd("cost", "one").out


def test_unreadable_change_is_listed_with_its_problem(example: Scenario) -> None:
    example.write("agentd/changes/broken/STATE.yaml", ": : {")
    ran = example.agentd("cost")
    assert ran.code == 0
    assert table_of(ran.out, "CHANGE")["broken"][0] == "unreadable"
    assert re.search(r"^broken: .*STATE.yaml: line 1", ran.out, re.MULTILINE)
    rows = {row["change_id"]: row for row in example.agentd("cost", "--json").json["changes"]}
    assert "line 1" in rows["broken"]["problem"] and rows["add-oauth"]["problem"] is None
    alone = example.agentd("cost", "broken")
    assert alone.code == 6 and "git log" in alone.err


def test_change_that_is_not_checked_out_is_listed_with_its_cost(project: Scenario) -> None:
    from agentd.change.state import GitLocation
    from agentd.domain.terms import GitSetup

    project.git("switch", "-q", "-c", "agentd/away")
    place = GitLocation(GitSetup.BRANCH, "agentd/away", ".", "main")
    change = lifecycle.create_change(find_project(), "away", "words", place)
    change.update(lambda old: old.with_call(call(cost=3.0)))
    time.sleep(0.1)  # a file younger than a tick is not kept in the index
    assert "3.00 USD" in project.agentd("cost").out
    project.commit("away")
    project.git("switch", "-q", "main")
    ran = project.agentd("cost")
    rows = table_of(ran.out, "CHANGE")
    assert rows["away"] == ["not checked out", "-", "-", "-", "-", "3.00 USD"]
    assert "away: not checked out, so only its total cost is known" in ran.out
    assert project.agentd("cost", "--json").json["total"]["cost"] == 3.0
    assert "not checked out" in project.agentd("cost", "--by", "model").out
    alone = project.agentd("cost", "away")
    assert alone.code == 1 and "git switch" in alone.err


def test_dropped_change_has_its_cost_and_unknown_change_is_an_error(project: Scenario) -> None:
    lifecycle.drop_change(made("gone", call(cost=2.0)), "person:dev", "no need")
    ran = project.agentd("cost", "gone")
    assert ran.code == 0 and table_of(ran.out, "STEP")["total"][-1] == "2.00 USD"
    assert project.agentd("cost", "nope").code == 1
    assert project.agentd("cost", "No Id").code == 2


@pytest.mark.parametrize("width", [30, 60, 100])
@pytest.mark.parametrize("arguments", [(), ("add-oauth",), ("--by", "model")])
def test_no_line_is_wider_than_the_terminal(example: Scenario, arguments: tuple[str, ...], width: int) -> None:
    made("second", call(model="a-model-with-quite-a-long-name-\x1b[31m", cost=None))
    example.write("agentd/changes/broken/STATE.yaml", ": : {")
    seen = run_on_terminal(example, "cost", *arguments, width=width)
    assert seen.code == 0 and "COST" in seen.screen
    assert "\x1b[31m-" not in seen.screen.replace("\x1b[31munreadable", "")
    for line in seen.lines:
        assert display_width(line) <= width or " " not in line.strip(), line  # a path or a name alone


def test_cost_command_imports_nothing_heavy_and_needs_no_trust(example: Scenario) -> None:
    """A project with a command that nobody trusted."""
    example.write("agentd/config.toml", 'schema_version = 1\n[[checks]]\nname = "t"\ncommand = "false"\n')
    for arguments in (("cost",), ("cost", "add-oauth")):
        ran = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "agentd", *arguments, "--json"],
            cwd=example.root,
            env=example.env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(ran.stdout)["total"]["calls"] == 13
        loaded = {name.split(".")[0] for name in re.findall(r"\|\s+([\w.]+)$", ran.stderr, re.MULTILINE)}
        heavy = {"genai_prices", "mcp", "pydantic", "rich", "asyncio", "httpx2", "jinja2", "dbos", "tomlkit"}
        assert "yaml" in loaded and not loaded & heavy


def bars(seen: str) -> dict[str, str]:
    """By the first word of their lines."""
    found = (re.match(r"\s*(\S+).*? ([━╸]+)$", re.sub("\x1b\\[[0-9;]*m", "", line)) for line in seen.splitlines())
    return {one[1]: one[2] for one in found if one}


@pytest.mark.parametrize("by", ["change", "step", "model", "day"])
def test_bars_compare_costs_on_a_terminal(project: Scenario, by: str) -> None:
    made("first", call("challenge", "large", 4.0, "2026-01-19T10:30:00Z"))
    made("second", call("proposal-gen", "small", 1.0, "2026-01-20T10:30:00Z"), call("tasks-gen", None, 0.01, "x"))
    names = {
        "change": ("first", "second"),
        "step": ("challenge", "proposal-gen"),
        "model": ("large", "small"),
        "day": ("2026-01-19", "2026-01-20"),
    }
    found = bars(run_on_terminal(project, "cost", "--by", by, width=80).screen)
    assert found[names[by][0]] == "━" * 16
    assert found[names[by][1]].startswith("━━━━") and len(found[names[by][1]]) <= 5
    if by != "change":
        assert found[{"step": "tasks-gen"}.get(by, "-")] == "╸"
    assert "total" not in found
    assert not bars(project.agentd("cost", "--by", by).out)


def test_single_cost_has_no_bar(project: Scenario) -> None:
    made("first", call(cost=4.0))
    made("second")
    assert not bars(run_on_terminal(project, "cost").screen)


def test_status_shows_the_most_expensive_steps(project: Scenario) -> None:
    made("first", *(call(f"step-{number}", cost=float(number)) for number in range(1, 8)))
    ran = project.agentd("status", "first")
    told = ran.out.split("Cost ")[1].splitlines()
    assert [line.split() for line in told[1:6]] == [[f"step-{n}", f"{n}.00", "USD"] for n in (7, 6, 5, 4, 3)]
    assert told[6] == "  … and 2 more: agentd cost first"
    assert project.agentd("status", "first", "--json").json["by_step"][0]["step"] == "step-1"
    assert bars(run_on_terminal(project, "status", "first").screen)["step-7"] == "━" * 16
    assert bars(run_on_terminal(project, "status", "first", width=30).screen)["step-7"] == "━" * 10
    assert not bars(run_on_terminal(project, "status", "first", width=20).screen)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_bars_fit_a_narrow_terminal(project: Scenario, width: int) -> None:
    made("first", *(call(f"spec-gen-endpoints-{number}", cost=float(number)) for number in range(1, 4)))
    seen = run_on_terminal(project, "cost", "first", "--by", "step", width=width)
    found = bars(seen.screen)
    assert 4 <= len(found["spec-gen-endpoints-3"]) <= 16
    assert len(found["spec-gen-endpoints-1"]) < len(found["spec-gen-endpoints-3"])
    assert all(display_width(line) <= width for line in seen.lines)
