"""The state machine as a picture and a table, from the one table that moves a change."""

import re

from agentd.domain.state_machine import DECISIONS, TRANSITIONS, TransitionEvent
from agentd.domain.terms import Phase
from reference.markdown import code, table

_BLOCK = re.compile(r"(?<=<!-- machine: made by `make docs` -->\n).*?(?=<!-- /machine -->)", re.DOTALL)


def into(text: str) -> str:
    """The page with the picture of today between its two marks."""
    made, count = _BLOCK.subn(lambda _: f"\n{picture()}\n{rows()}\n", text)
    assert count == 1, "the page has no pair of marks for the state machine"
    return made


def picture() -> str:
    """Events that lead the same way share an arrow; a drop is possible everywhere and left out."""
    arrows: dict[tuple[Phase, Phase], list[TransitionEvent]] = {}
    for phase, moves in TRANSITIONS.items():
        for event, to in moves.items():
            if event is not TransitionEvent.DROPPED:
                arrows.setdefault((phase, to), []).append(event)
    lines = [f"    {phase} --> {to}: {', '.join(events)}" for (phase, to), events in arrows.items()]
    first = f"    [*] --> {next(iter(TRANSITIONS))}"
    return "\n".join(["```mermaid", "stateDiagram-v2", first, *lines, f"    {Phase.ARCHIVED} --> [*]", "```", ""])


def rows() -> str:
    found = [
        [str(phase), code(event), "a person" if event in DECISIONS else "", str(to)]
        for phase, moves in TRANSITIONS.items()
        for event, to in moves.items()
    ]
    return table(("phase", "event", "decided by", "next phase"), found)
