"""What a stream adds up to."""

import pytest

from agentd.agents.failures import FailureCause
from agentd.agents.protocol import (
    AgentAction,
    AgentEnded,
    AgentEvent,
    AgentText,
    SessionStarted,
    TokenUsage,
    UsageUpdate,
)
from agentd.engine.calls import stream_accumulator
from agentd.engine.calls.stream_accumulator import StreamAccumulator


class Ears:
    """Everything a listener tells, for a stream whose lines are the events themselves."""

    def __init__(self, *heard: AgentEvent) -> None:
        self.did: list[tuple[str, str, bool | None]] = []
        self.sessions: list[str] = []
        self.used: list[TokenUsage] = []
        script = list(heard)
        self.listener = StreamAccumulator(
            lambda line: [script[int(line)]],
            lambda *one: self.did.append(one),
            self.sessions.append,
            self.used.append,
        )
        for number in range(len(script)):
            self.listener.add(str(number).encode())


def usage(tokens: int, cost: float | None = None) -> TokenUsage:
    return TokenUsage(tokens_in=tokens, tokens_out=1, tokens_cached=tokens // 2, cost=cost)


def test_usage_parts_are_summed_and_a_repeated_part_replaces_itself() -> None:
    ears = Ears(UsageUpdate(usage(100), "m1"), UsageUpdate(usage(10), "m2"), UsageUpdate(usage(120), "m1"))
    assert ears.listener.usage == TokenUsage(tokens_in=130, tokens_out=2, tokens_cached=65)
    assert [one.tokens_in for one in ears.used] == [100, 110, 130]


def test_final_usage_replaces_all_parts() -> None:
    ears = Ears(UsageUpdate(usage(100, 0.5), "m1"), UsageUpdate(usage(10), "m2"), AgentEnded(usage=usage(21016, 0.75)))
    assert ears.listener.usage == TokenUsage(tokens_in=21016, tokens_out=1, tokens_cached=10508, cost=0.75)
    assert ears.used[-1].cost == 0.75


@pytest.mark.parametrize(("costs", "total"), [((0.5, 0.25), 0.75), ((0.5, None), None), ((), None)])
def test_total_cost_is_known_only_if_every_part_is_known(costs: tuple[float | None, ...], total: float | None) -> None:
    ears = Ears(*(UsageUpdate(usage(1, cost), str(number)) for number, cost in enumerate(costs)))
    assert ears.listener.usage.cost == total


def test_session_ids_and_the_end_event_are_reported() -> None:
    ended = AgentEnded(cause=FailureCause.RATE_LIMITED, message="429", wait_secs=7)
    ears = Ears(SessionStarted("one"), SessionStarted("two"), ended)
    assert ears.sessions == ["one", "two"]
    assert ears.listener.ended is ended
    assert ears.listener.is_understood


def test_text_is_reported_before_the_following_action() -> None:
    ears = Ears(AgentText("first "), AgentText("second "), AgentText("third"), AgentAction("tool", "read_file", True))
    assert ears.did == [("text", "first", None), ("text", "second third", None), ("tool", "read_file", True)]
    assert ears.listener.text == "first second third"


def test_beginning_and_end_of_a_long_text_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_accumulator, "TEXT_SIZE", 20)
    ears = Ears(*(AgentText(f"{number:03} ") for number in range(100)))
    text = ears.listener.text
    assert text.startswith("000 001 00")
    assert text.endswith(" 098 099 ")
    assert "characters left out" in text
    assert len(text) < 100


def test_number_of_reported_activities_is_limited() -> None:
    ears = Ears(*[AgentAction("tool", "x" * 1000, True)] * (stream_accumulator.ACTIVITIES + 10))
    assert len(ears.did) == stream_accumulator.ACTIVITIES
    assert len(ears.did[0][1]) <= 200


def test_lone_surrogates_are_replaced() -> None:
    ears = Ears(AgentText("a\ud800"), AgentAction("tool", "b\udfff", True))
    assert ears.listener.text == "a?"
    assert [text for _, text, _ in ears.did] == ["a?", "b?"]


def test_session_id_is_reported_once_and_only_if_valid() -> None:
    ears = Ears(
        SessionStarted("one"),
        SessionStarted("one"),
        SessionStarted("two\nlines"),
        SessionStarted("x" * 300),
        SessionStarted(""),
    )
    assert ears.sessions == ["one"]


def test_collapsing_thousands_of_usage_parts_keeps_tokens_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_accumulator, "_PARTS", 10)
    cheap = [UsageUpdate(TokenUsage(tokens_in=1, model="cheap"), f"c{number}") for number in range(50)]
    dear = [UsageUpdate(TokenUsage(tokens_in=2, model="dear", cost=0.5), f"d{number}") for number in range(50)]
    ears = Ears(*cheap, *dear)
    assert ears.listener.usage.tokens_in == 150
    assert len(ears.listener.parts) <= 12
    known = [(part.model, part.cost) for part in ears.listener.parts if part.cost]
    assert sum(cost for model, cost in known if model == "dear") == 25


def test_frequent_usage_updates_are_throttled_and_the_last_is_reported() -> None:
    ears = Ears(*(UsageUpdate(usage(1), str(number % 5)) for number in range(2000)), UsageUpdate(usage(100), "last"))
    assert len(ears.used) < 200
    ears.listener.finish()
    assert ears.used[-1].tokens_in == 105
