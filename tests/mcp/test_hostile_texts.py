"""Texts that pretend to be YAML or Markdown, in every field of every tool that writes: each stays in its field."""

from collections.abc import Callable, Iterator

import pytest
from hostile_session import HostileSession, sessions
from hostile_texts import CARRIERS, LINES, PAYLOADS, Marked

from agentd.engine.tools.tool import Stage

WRITING = [name for name, carrier in CARRIERS.items() if carrier.tool.startswith("create_")]
REPORTING = [name for name in CARRIERS if name not in WRITING]


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Stage, str], HostileSession]]:
    with sessions(tmp_path_factory.mktemp("texts")) as of:
        yield of


def transport(name: str) -> str:
    """Half of the rows through a process, always the same ones."""
    return ("memory", "stdio")[len(name) % 2]


def strike(siege: HostileSession, name: str, marked: Marked) -> None:
    carrier = CARRIERS[name]
    sent = carrier.arguments(marked)
    answer = siege.strike(carrier.tool, sent)
    assert not answer.is_error, answer.text
    carrier.verify(siege, sent, marked)


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("name", WRITING)
def test_hostile_text_stays_in_its_field(
    siege: Callable[[Stage, str], HostileSession], name: str, payload: str
) -> None:
    text = PAYLOADS[payload]
    line = " ".join(text.split())
    on = siege(CARRIERS[name].stage, transport(payload))
    strike(on, name, Marked(text, line if len(line) < 60 else "plain"))


@pytest.mark.parametrize("alone", [False, True], ids=["with a mark", "alone"])
@pytest.mark.parametrize("payload", LINES)
@pytest.mark.parametrize("name", WRITING)
def test_hostile_line_stays_in_its_field(
    siege: Callable[[Stage, str], HostileSession], name: str, payload: str, alone: bool
) -> None:
    on = siege(CARRIERS[name].stage, transport(payload))
    strike(on, name, Marked("Plain words.", LINES[payload], alone))


@pytest.mark.parametrize("name", REPORTING)
def test_reports_keep_every_text_unchanged(siege: Callable[[Stage, str], HostileSession], name: str) -> None:
    on = siege(CARRIERS[name].stage, "stdio")
    for text in PAYLOADS.values():
        strike(on, name, Marked(text, "plain"))
    for line in LINES.values():
        strike(on, name, Marked("Plain words.", line))


@pytest.mark.parametrize("name", [name for name in CARRIERS if name != "answer_finding"])
def test_line_break_in_a_single_line_field_is_refused(siege: Callable[[Stage, str], HostileSession], name: str) -> None:
    on = siege(CARRIERS[name].stage, "memory")
    for line_break in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        sent = CARRIERS[name].arguments(Marked("Plain words.", f"a{line_break}## Removed"))
        assert on.strike(CARRIERS[name].tool, sent).code == "bad-argument"
