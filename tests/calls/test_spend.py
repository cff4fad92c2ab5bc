"""Spending: every call counted once, whatever was killed and when, by one process or by many."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentd.agents.protocol import TokenUsage
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.state import CallRecord, ChangeState, StepRecord
from agentd.domain import clock
from agentd.domain.errors import OverBudget
from agentd.domain.terms import StepStatus
from agentd.engine.calls import budget, call_costs
from agentd.engine.calls.call_costs import OpenCall, Spending, change_spending, day_spending, settle_open_calls
from agentd.project.config.settings import BudgetSettings
from agentd.project.layout import find_project
from crash import Tell, run_in_fork
from exhaustive import Exhaustive
from program import PATIENCE
from scenario import Scenario


@pytest.fixture
def change(project: Scenario) -> Change:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def begin(change: Change, token: str, session: str | None = "s") -> OpenCall:
    return OpenCall.begin(
        change,
        token,
        step="challenge",
        round=2,
        number=1,
        attempt=1,
        agent="codex",
        role="challenger",
        model="gpt-5.2-codex",
        session=session,
    )


def call_once(change: Change, cost: float | None, session: str | None = "s") -> CallRecord | None:
    with change.running("agentd plan") as held:
        call = begin(change, held.token, session)
        call.update(TokenUsage(tokens_in=100, tokens_out=10, tokens_cached=5), cost)
        return call.finish(1234, None)


def settled(change: Change) -> tuple[CallRecord, ...]:
    with change.running("agentd plan") as held:
        return settle_open_calls(change, held.token)


def today() -> str:
    return clock.now()[:10]


def slips(change: Change) -> list[Path]:
    return sorted(Path(change.project.local_state_path("calls", change.id)).glob("*"))


def leave_open(change: Change, cost: float | None = 0.5, session: str = "s") -> Path:
    """A call whose run is no more, as it lies on disk."""
    with change.running("agentd plan") as held:
        call = begin(change, held.token, session)
        call.update(TokenUsage(tokens_in=100), cost)
    return Path(change.project.local_state_path("calls", change.id, f"{call.id}.json"))


def rewrite(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def done(state: ChangeState, session: str) -> ChangeState:
    return state.with_step(
        StepRecord("challenge", 2, len(state.steps) + 1, 1, StepStatus.DONE, {"of": session}, clock.now())
    )


def test_finished_call_is_in_the_state_and_the_ledger(change: Change) -> None:
    call = call_once(change, 0.25)
    assert call and change.read().llm_calls == (call,)
    assert (call.tokens_in, call.tokens_out, call.tokens_cached, call.duration_ms) == (100, 10, 5, 1234)
    assert (call.step, call.agent, call.role, call.model) == ("challenge", "codex", "challenger", "gpt-5.2-codex")
    assert call.cost == 0.25 and call.session == "s" and not call.extra
    (slip,) = call_costs.read_ledger(change.project, today()).values()
    assert slip.call == call and (slip.change_id, slip.round, slip.attempt) == ("add-oauth", 2, 1)
    assert change_spending(change) == Spending(0.25, 0.25)
    assert slips(change) == [] and not os.path.exists(change.project.local_state_path("calls", "add-oauth"))


def test_finished_call_has_its_session_and_model(change: Change) -> None:
    with change.running("agentd plan") as held:
        call = begin(change, held.token)
        call.update(TokenUsage(tokens_in=1, model="gpt-5.2-mini"), 0.1)
        call.finish(1, "captured")
    [counted] = change.read().llm_calls
    assert (counted.session, counted.model) == ("captured", "gpt-5.2-mini")


def test_call_without_usage_has_unknown_cost(change: Change) -> None:
    with change.running("agentd plan") as held:
        call = begin(change, held.token).finish(1, None)
    assert change.read().llm_calls == (call,)
    assert (call.tokens_in, call.tokens_out, call.tokens_cached, call.cost) == (None, None, None, None)
    assert "tokens_in: null" in (change.folder / "STATE.yaml").read_text()
    assert change_spending(change) == Spending(0.0, 0.0)
    assert call_costs.read_ledger(change.project, today()) == {} and slips(change) == []


def test_unknown_cost_adds_nothing_to_the_total(change: Change) -> None:
    call = call_once(change, None)
    assert call and call.cost is None and call.tokens_in == 100
    call_once(change, 0.5)
    assert change_spending(change) == Spending(0.5, 0.5)


def test_known_cost_is_not_overwritten_by_an_unknown_one(change: Change) -> None:
    with change.running("agentd plan") as held:
        call = begin(change, held.token)
        call.update(TokenUsage(tokens_in=1), 0.5)
        call.update(TokenUsage(tokens_in=2), None)
        assert call.cost == 0.5
        call.update(TokenUsage(tokens_in=2), 0.4)  # the whole call's figure at its end may be a better one
        last = call.finish(1, None)
    assert last and last.cost == 0.4


def test_call_in_progress_counts_and_can_be_excluded(change: Change) -> None:
    other = lifecycle.create_change(find_project(), "other", "words")
    call_once(other, 1.0)
    with change.running("agentd plan") as held:
        call = begin(change, held.token)
        assert change_spending(change) == Spending(0.0, 1.0)
        call.update(TokenUsage(tokens_in=1), 0.25)
        assert change_spending(change) == Spending(0.25, 1.25)
        assert change_spending(other) == Spending(1.0, 1.25)
        assert change_spending(change, but=call.id) == Spending(0.0, 1.0)


def test_interrupted_call_is_settled_by_the_next_run(change: Change) -> None:
    leave_open(change, 0.5)
    assert change_spending(change) == Spending(0.5, 0.5)
    (call,) = settled(change)
    assert call.cost == 0.5 and call.extra == {"cut": True}
    assert change.read().llm_calls == (call,) and "cut: true" in (change.folder / "STATE.yaml").read_text()
    assert settled(change) == () and slips(change) == []
    assert change_spending(change) == Spending(0.5, 0.5)


def test_interrupted_call_without_usage_has_unknown_cost(change: Change) -> None:
    with change.running("agentd plan") as held:
        begin(change, held.token)
    (call,) = settled(change)
    assert (call.tokens_in, call.cost, call.extra) == (None, None, {"cut": True}) and slips(change) == []
    assert change.read().llm_calls == (call,) and call_costs.read_ledger(change.project, today()) == {}


def test_call_that_could_not_start_leaves_no_record(change: Change) -> None:
    with change.running("agentd plan") as held:
        begin(change, held.token).withdraw()
    assert settled(change) == () and slips(change) == []
    assert change.read().llm_calls == ()


def test_call_counts_on_the_day_it_began(change: Change) -> None:
    path = leave_open(change, 0.5)
    eve = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%d")
    rewrite(path, began=f"{eve}T23:59:59Z")
    assert change_spending(change) == Spending(0.5, 0.0)
    settled(change)
    assert change_spending(change) == Spending(0.5, 0.0)
    assert day_spending(change.project, eve) == 0.5


def test_daily_total_includes_dropped_changes(change: Change) -> None:
    call_once(change, 0.5)
    lifecycle.drop_change(change, "person:dev", "no need")
    assert change_spending(lifecycle.create_change(find_project(), "next", "words")) == Spending(0.0, 0.5)


def test_identical_earlier_call_is_counted_separately(change: Change) -> None:
    """Two calls alike to the second, of an agent without sessions: the second was cut before STATE.yaml had it."""
    first = call_once(change, 0.5, session=None)
    assert first
    rewrite(leave_open(change), call=asdict(first))
    assert change_spending(change).change == 1.0
    settled(change)
    assert change.read().llm_calls == (first, first)
    assert change_spending(change) == Spending(1.0, 1.0)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"id": "x"}', b"[" * 100_000, b'{"call": {"cost": NaN}}', None],
)
def test_invalid_files_among_open_calls_are_ignored(change: Change, content: bytes | None) -> None:
    leave_open(change, 0.5)
    folder = Path(change.project.local_state_path("calls", "add-oauth"))
    strange = folder / "strange.json"
    if content is None:
        os.mkfifo(strange)  # opening it would wait for ever
    else:
        strange.write_bytes(content)
    (folder / "folder.json").mkdir()
    Path(change.project.local_state_path("calls", "a-file")).write_text("x")
    assert change_spending(change) == Spending(0.5, 0.5)
    assert len(settled(change)) == 1
    assert strange.exists() and change_spending(change) == Spending(0.5, 0.5)


def test_copy_of_an_open_call_in_another_folder_is_ignored(change: Change) -> None:
    path = leave_open(change, 0.5)
    other = lifecycle.create_change(find_project(), "other", "words")
    copy = Path(change.project.local_state_path("calls", "other", path.name))
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert change_spending(change) == Spending(0.5, 0.5) and change_spending(other) == Spending(0.0, 0.5)
    assert settled(other) == ()


def test_torn_ledger_line_loses_only_itself(change: Change) -> None:
    call_once(change, 0.25)
    path = Path(change.project.local_state_path("spend", f"{today()}.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\xff\n" + b"[]\n\n" + whole[:40])
    call_once(change, 0.5)
    assert change_spending(change) == Spending(0.75, 0.75)


def test_last_ledger_line_of_a_call_counts(change: Change) -> None:
    call_once(change, 0.25)
    (slip,) = call_costs.read_ledger(change.project, today()).values()
    call_costs.append_entry(change.project, replace(slip, call=replace(slip.call, cost=0.5)))
    assert change_spending(change).today == 0.5


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "x" * 10_000, "\x1b[31m", "a\u2028b", "\ufeff", ": {", "123"])
def test_hostile_model_name_does_not_corrupt_the_ledger(change: Change, name: str) -> None:
    with change.running("agentd plan") as held:
        call = begin(change, held.token, name)
        call.update(TokenUsage(tokens_in=-5, tokens_out=10**40, tokens_cached=7, model=name), 0.5)
    assert call.id
    (kept,) = settled(change)
    assert (kept.tokens_in, kept.tokens_cached) == (0, 0) and kept.cost == 0.5
    assert change.read().llm_calls == (kept,)


def test_unwritable_ledger_is_reported_and_nothing_is_lost(change: Change) -> None:
    Path(change.project.local_state_path("spend")).write_text("in the way")
    from agentd.storage.files import CannotWrite

    with pytest.raises(CannotWrite, match="spend"):
        call_once(change, 0.5)
    assert change.read().llm_calls == ()
    Path(change.project.local_state_path("spend")).unlink()
    settled(change)
    assert change_spending(change) == Spending(0.5, 0.5)


# ---- killed at any point ------------------------------------------------------------------------


def one_call(change: Change, session: str) -> Callable[[Tell], None]:
    def work(tell: Tell) -> None:
        with change.running("agentd plan") as held:
            settle_open_calls(change, held.token)
            call = begin(change, held.token, session)
            for cents in (10, 25):
                call.update(TokenUsage(tokens_in=cents), cents / 100)
                tell(cents)
            call.finish(5, None)
            change.update(lambda old: done(old, session), held.token)
            tell("finished")

    return work


def points(work: Callable[[int], tuple[bool, list[Any]]], exhaustive: Exhaustive) -> Iterator[tuple[int, list[Any]]]:
    """Die before the first operation, the second, and so on, until it lives to the end."""
    for number in exhaustive.points(range(1, 500)):
        lived, told = work(number)
        yield number, told
        if lived:
            assert number > 5, "it should have had occasions to die"
            return
    raise AssertionError("it never lived to the end")


def test_run_killed_at_any_operation_counts_its_call_exactly_once(
    project: Scenario, change: Change, exhaustive: Exhaustive
) -> None:
    total = 0.0
    for number, told in points(lambda n: run_in_fork(one_call(change, f"s{n}"), project.root, n), exhaustive):
        session = f"s{number}"
        costs = {(told[-1] if told[-1] != "finished" else 25) / 100} if told else {None}
        as_seen = change_spending(change)
        settled(change)
        state = change.read()
        calls = [call for call in state.llm_calls if call.session == session]
        ended = [step for step in state.steps if step.outputs["of"] == session]
        kept = [
            slip for slip in call_costs.read_ledger(change.project, today()).values() if slip.call.session == session
        ]
        # what was being written when it died may be there or not; what was told as seen must be
        costs |= {0.1} if not told else {0.25}
        assert len(calls) <= 1 and {call.cost for call in calls} <= costs, (number, told, calls)
        assert calls or None in costs
        assert [slip.call for slip in kept] == [call for call in calls if call.tokens_in is not None]
        assert not ended or not calls[0].extra, "a step ends with its exact call"
        assert "finished" not in told or ended
        total = round(total + sum(call.cost or 0 for call in calls), 6)
        assert as_seen == change_spending(change) == Spending(total, total), (number, told)
        assert slips(change) == []


def test_settlement_killed_at_any_operation_settles_exactly_once(
    project: Scenario, change: Change, exhaustive: Exhaustive
) -> None:
    def settling(tell: Tell) -> None:
        settled(change)

    def attempt(number: int) -> tuple[bool, list[Any]]:
        leave_open(change, 0.25, f"s{number}")
        return run_in_fork(settling, project.root, number)

    sessions: list[str] = []
    for number, _ in points(attempt, exhaustive):
        sessions.append(f"s{number}")
        total = len(sessions) / 4
        assert change_spending(change) == Spending(total, total)
        settled(change)
        assert [call.session for call in change.read().llm_calls] == sessions
        assert change_spending(change) == Spending(total, total)


# ---- the promise: never past the budget by more than the call in flight, nothing twice, nothing forgotten --------

CENTS = st.integers(min_value=1, max_value=300)
LIMIT = st.just(0) | st.integers(min_value=1, max_value=900)
RUN = st.fixed_dictionaries(
    {
        "change": st.integers(0, 1),
        "calls": st.lists(st.lists(CENTS, max_size=4), min_size=1, max_size=3),
        # in which call, in which part of it, before which operation on a file
        "dies": st.none()
        | st.tuples(st.integers(0, 2), st.sampled_from(["began", "tries", "ends"]), st.integers(1, 17)),
    }
)


def a_run(change: Change, limits: BudgetSettings, run: dict[str, Any], mark: str) -> Callable[[Tell], None]:
    """What a workflow does with money, told as it happens."""

    def calls(token: str, tell: Tell) -> None:
        settle_open_calls(change, token)
        for number, stream in enumerate(run["calls"]):
            budget.check_budget(limits, change.id, change_spending(change))
            session, total = f"{mark}-{number}", 0
            tell([session, "began"])
            call = begin(change, token, session)
            try:
                for cents in stream:
                    total += cents
                    tell([session, "tries"])
                    call.update(TokenUsage(tokens_in=total), total / 100)
                    tell([session, "saw"])
                    budget.check_budget(limits, change.id, change_spending(change, but=call.id), call.cost)
            finally:
                tell([session, "ends"])
                call.finish(1, session)
                change.update(lambda old: done(old, mark), token)

    def work(tell: Tell) -> None:
        with change.running("agentd plan") as held:
            try:
                calls(held.token, tell)
            except OverBudget:
                tell(["", "over"])

    return work


@pytest.fixture
def pair(project: Scenario) -> tuple[Change, Change]:
    here = find_project()
    return lifecycle.create_change(here, "one", "words"), lifecycle.create_change(here, "two", "words")


def with_fresh_books(pair: tuple[Change, Change]) -> tuple[Change, Change]:
    for change in pair:
        settled(change)  # of an example that failed
        change.update(lambda old: replace(old, steps=(), llm_calls=()))
    for path in Path(pair[0].project.local_state_path("spend")).glob("*"):
        path.unlink()
    return pair


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(per_change=LIMIT, per_day=LIMIT, runs=st.lists(RUN, min_size=1, max_size=4))
@example(
    per_change=0,
    per_day=0,
    runs=[{"change": 0, "calls": [[7]], "dies": (0, "ends", operation)} for operation in range(8, 18)],
)
def test_crashes_never_corrupt_the_budget(
    project: Scenario, pair: tuple[Change, Change], per_change: int, per_day: int, runs: list[dict[str, Any]]
) -> None:
    changes = with_fresh_books(pair)
    limits = BudgetSettings(per_change / 100, per_day / 100, "allow")
    told = []
    for order, run in enumerate(runs):
        number, word, dies_at = run["dies"] or (0, None, None)
        work = a_run(changes[run["change"]], limits, run, f"r{order}")
        told.append(run_in_fork(work, project.root, dies_at, [f"r{order}-{number}", word])[1])
    as_left = [change_spending(change) for change in changes]
    for change in changes:
        settled(change)

    rows = [call for change in changes for call in change.read().llm_calls]
    final = {call.session: round((call.cost or 0) * 100) for call in rows}
    booked = {slip.call.session: slip.call for slip in call_costs.read_ledger(find_project(), today()).values()}
    assert len(rows) == len(final), "nothing is counted twice"
    assert booked == {call.session: call for call in rows if call.tokens_in is not None}
    by = {"day": 0, **{change.id: 0 for change in changes}}
    for order, (run, words) in enumerate(zip(runs, told, strict=True)):
        of_change = changes[run["change"]].id
        for number, stream in enumerate(run["calls"]):
            session = f"r{order}-{number}"
            if [session, "began"] not in words:
                continue
            sums = [sum(stream[:length]) for length in range(len(stream) + 1)]
            seen, tried = words.count([session, "saw"]), words.count([session, "tries"])
            cents = final.pop(session, 0)
            assert cents in (sums[seen], sums[tried]), "nothing that was seen is forgotten"
            for limit, before in ((per_change, by[of_change]), (per_day, by["day"])):
                assert not limit or before < limit, "a call began with nothing left"
                assert not limit or tried < 2 or before + sums[tried - 1] <= limit, "it went on past the limit"
            by[of_change] += cents
            by["day"] += cents
        if ["", "over"] in words:
            assert 0 < per_change <= by[of_change] or 0 < per_day <= by["day"], "it stopped too early"
    assert not final, "nothing is counted that was never called"
    figures = [Spending(by[change.id] / 100, by["day"] / 100) for change in changes]
    assert [change_spending(change) for change in changes] == as_left == figures


# ---- many at once -------------------------------------------------------------------------------

WORKER = """
import sys
from agentd.agents import TokenUsage
from agentd.change import open_change
from agentd.domain import OverBudget
from agentd.engine.calls.budget import check_budget
from agentd.engine.calls.call_costs import OpenCall, change_spending, settle_open_calls
from agentd.project import BudgetSettings, find_project

change = open_change(find_project(), sys.argv[1])
limits = BudgetSettings(0.0, float(sys.argv[2]), "allow")
with change.running("agentd plan") as held:
    settle_open_calls(change, held.token)
    for number in range(1000):
        try:
            check_budget(limits, change.id, change_spending(change))
        except OverBudget:
            break
        call = OpenCall.begin(change, held.token, step="challenge", round=1, number=number, attempt=1,
                              agent="codex", role="challenger", model="m", session=f"{change.id}-{number}")
        call.update(TokenUsage(tokens_in=1), 0.05)
        call.update(TokenUsage(tokens_in=2), 0.1)
        call.finish(1, None)
"""


def test_processes_on_different_changes_share_the_daily_budget(project: Scenario) -> None:
    here = find_project()
    changes = [lifecycle.create_change(here, f"change-{number}", "words") for number in range(4)]
    started = [
        subprocess.Popen([sys.executable, "-c", WORKER, change.id, "4.0"], cwd=project.root, env=project.env)
        for change in changes
    ]
    assert [process.wait(timeout=PATIENCE) for process in started] == [0] * 4
    rows = [call for change in changes for call in change.read().llm_calls]
    booked = call_costs.read_ledger(here, today())
    assert sorted(str(call.session) for call in rows) == sorted(str(slip.call.session) for slip in booked.values())
    cents = 10 * len(rows)
    assert 400 <= cents <= 400 + 4 * 10, "over by at most the calls in flight"
    assert day_spending(here, today()) == cents / 100
