"""What a planned call will cost: by this repository's own calls where there are enough, else by typical figures."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

from agent_calls import planner_request, play
from agentd.agents.protocol import AgentSettings, TokenUsage
from agentd.change.state import CallRecord
from agentd.domain import clock
from agentd.domain.terms import STEPS
from agentd.engine.calls import call_costs, retries
from agentd.engine.calls.call_costs import LedgerEntry, OpenCall
from agentd.engine.workflows.cost_forecast import CostEstimate, estimate_cost
from agentd.project.config.loader import load_config
from agentd.project.config.settings import Config
from agentd.project.layout import Project, find_project
from playbooks import propose, usage
from scenario import Scenario, open_run

GPT = "gpt-5.2-codex"  # 1.75 USD per 1M tokens in, 0.175 from the cache, 14 out
PLAN = [
    *(step for step in STEPS if step not in ("implement", "checks", "review", "resolve", "archive")),
    "spec-gen-auth-flow",
    "spec-review-auth-flow",
]

_ids = iter(range(10**6))


@pytest.fixture
def here(project: Scenario) -> Project:
    return find_project()


def settings(here: Project, *flags: str) -> Config:
    return load_config(here.config_file, flags=flags)


def agent(here: Project, name: str = "codex") -> AgentSettings:
    return settings(here).agents[name]


def estimate(here: Project, step: str = "challenge", name: str = "codex", model: str | None = GPT) -> CostEstimate:
    return estimate_cost(here, settings(here), step, agent(here, name), model)


def ended(
    here: Project,
    tokens_in: int,
    tokens_out: int = 1000,
    *,
    cost: float | None = None,
    step: str = "challenge",
    name: str = "codex",
    model: str | None = GPT,
    cached: int = 0,
    days_ago: int = 0,
) -> None:
    """A call as the ledger keeps it."""
    began = f"{clock.utc_now() - timedelta(days=days_ago):%Y-%m-%dT%H:%M:%SZ}"
    call = CallRecord(step, name, "challenger", model, tokens_in, tokens_out, cached, 1000, cost, began, None)
    slip = LedgerEntry(
        id=f"call-{next(_ids)}",
        change_id="add-oauth",
        began=began,
        round=1,
        number=1,
        attempt=1,
        reported=True,
        before=0,
        call=call,
    )
    call_costs.append_entry(here, slip)


def test_estimate_without_earlier_calls_uses_typical_figures(here: Project) -> None:
    assert estimate(here) == CostEstimate(25_000, 2_000, 0.07175, 0)


@pytest.mark.parametrize("step", PLAN)
def test_every_plan_step_has_typical_figures(here: Project, step: str) -> None:
    found = estimate(here, step)
    assert found.tokens_in > found.tokens_out > 0 and found.cost and found.measured == 0


def test_step_without_typical_figures_has_no_estimate(here: Project) -> None:
    assert estimate(here, "implement-auth-flow") == CostEstimate(0, 0, None, 0)


def test_unknown_price_gives_no_cost(here: Project) -> None:
    assert estimate(here, model="gpt-99") == CostEstimate(25_000, 2_000, None, 0)
    assert estimate(here, model=None) == CostEstimate(25_000, 2_000, None, 0)


def test_configured_price_takes_precedence_over_the_table(here: Project) -> None:
    mine = settings(here, f'prices."{GPT}".input=4', f'prices."{GPT}".output=100')
    assert estimate_cost(here, mine, "challenge", agent(here), GPT).cost == 0.3


def test_three_earlier_calls_replace_typical_figures(here: Project) -> None:
    ended(here, 90_000, 3_000, cost=0.5)
    ended(here, 10_000, 9_000, cost=0.1)
    assert estimate(here).measured == 0
    ended(here, 40_000, 1_000, cost=0.2)
    assert estimate(here) == CostEstimate(40_000, 3_000, 0.2, 3)
    ended(here, 50_001, 4_000, cost=0.3)
    assert estimate(here) == CostEstimate(45_000, 3_500, 0.25, 4)


def test_spec_steps_of_all_changes_are_pooled(here: Project) -> None:
    for spec in ("auth-flow", "user-model", "sessions"):
        ended(here, 30_000, step=f"spec-gen-{spec}", cost=0.1)
    assert estimate(here, "spec-gen-tokens").measured == 3
    assert estimate(here, "spec-review-tokens").measured == 0
    assert estimate(here, "proposal-gen").measured == 0


def test_calls_of_another_agent_are_ignored(here: Project) -> None:
    for _ in range(3):
        ended(here, 30_000, name="gemini", cost=0.1)
    assert estimate(here).measured == 0
    assert estimate(here, name="gemini").measured == 3


def test_calls_of_the_last_thirty_days_count(here: Project) -> None:
    for days in (0, 15, 29):
        ended(here, 30_000, days_ago=days, cost=0.1)
    ended(here, 90_000, days_ago=31, cost=9.0)
    assert estimate(here) == CostEstimate(30_000, 1_000, 0.1, 3)


def test_tokens_are_repriced_for_another_model(here: Project) -> None:
    for _ in range(3):
        ended(here, 100_000, 10_000, cached=40_000, model="gpt-5.1", cost=9.0)
    assert estimate(here).cost == 0.252  # 60,000 x 1.75, 40,000 x 0.175 and 10,000 x 14 per 1M
    assert estimate(here, model=None).cost == 9.0, "the CLI's default is what it used"
    assert estimate(here, model="gpt-99").cost is None


def test_alias_is_priced_by_the_model_the_agent_reported(here: Project) -> None:
    for _ in range(3):
        ended(here, 30_000, name="claude", model="claude-sonnet-4-5", cost=0.4)
    assert estimate(here, name="claude", model="sonnet").cost == 0.4
    assert estimate(here, name="claude", model="opus").cost is None


def test_calls_without_a_price_do_not_hide_known_costs(here: Project) -> None:
    for cost in (None, None, 0.4):
        ended(here, 30_000, model=None, cost=cost)
    assert estimate(here, model=None) == CostEstimate(30_000, 1_000, 0.4, 3)


def test_interrupted_call_is_ignored(project: Scenario) -> None:
    change = play(project)
    for _ in range(3):
        with change.running("agentd plan") as held:
            names = {"step": "challenge", "round": 1, "number": 1, "attempt": 1, "agent": "codex"}
            call = OpenCall.begin(change, held.token, **names, role="challenger", model=GPT, session=None)  # type: ignore[arg-type]
            call.update(TokenUsage(tokens_in=7), 0.1)
        with change.running("agentd plan") as held:
            assert call_costs.settle_open_calls(change, held.token)
    assert estimate(change.project).measured == 0


def test_estimate_uses_recorded_calls_and_writes_nothing(project: Scenario) -> None:
    change = play(project, proposal_gen=[propose(), usage(0.25, tokens=4321)])
    with open_run(change) as run:
        for number in (1, 2, 3):
            retries.perform_call(run, planner_request(run, number=number))
    before = dict(_all_files(project))
    found = estimate(change.project, "proposal-gen", "play", None)
    assert found == CostEstimate(4321, 10, 0.25, 3)
    assert dict(_all_files(project)) == before


def _all_files(box: Scenario) -> Iterator[tuple[str, tuple[int, int]]]:
    for folder, _, names in os.walk(box.root):
        for name in names:
            path = os.path.join(folder, name)
            yield path, (os.stat(path).st_mtime_ns, os.stat(path).st_size)
