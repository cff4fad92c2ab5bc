"""Reading takes time in proportion to size, whatever the text is made of."""

import contextlib
from collections.abc import Callable

import pytest

from agentd.documents import clarifications, proposal, spec
from agentd.domain.errors import AgentdError
from assertions import TIMES, assert_linear

READERS: tuple[Callable[[str], object], ...] = (
    proposal.parse_proposal,
    lambda text: spec.parse_spec(text, "x.md"),
    clarifications.parse_clarifications,
)
EVERYWHERE = (
    "## Impact\n\n{0}\n\n## Affected Specs\n\n{0}\n\n## Removed\n\n{0}\n\n## Renamed\n\n{0}\n\n"
    "## Requirements\n\n### R1: a\n\n{0}\n\n## Acceptance Criteria\n\n### Scenario: x\n\n{0}\n\n## Q1: x\n\n{0}\n"
)
LINES = {
    "fences": "```\nx\n```\n",
    "open fences": "```a\n",
    "comments": "<!-- x\n-->\n",
    "headings": "# a\n## b\n### R1: c\n#### d\n",
    "scenarios": "### Scenario: x\n- WHEN a\n- THEN b\n",
    "nested scenarios": "### R1: x\n#### Scenario: y\n- WHEN a THEN b\n#### z\n",
    "steps": "- **WHEN** x\n",
    "further lines": "  x\n",
    "items": "- a\n  - b\n",
    "fields": "- Affected specs: a\n- **Requirement**: R1\n",
    "blocks": '<review a="b">\nx\n</review>\n',
    "open blocks": '<review a="b">\n',
    "questions": "## Q1: x\n- **Answer**: x\n",
    "blank lines": "\n",
}
STARTS = ("### ", "### R1", "- ", "- Affected specs: ", "- **WHEN** ", "WHEN ", "<review", "- R3: ", "### Scenario")
CHARACTERS = (
    "#",
    " ",
    "`",
    "~",
    "<",
    "*",
    "_",
    "(",
    "[",
    "](",
    "a, ",
    "R1: a -> ",
    "&amp;",
    ' a="b"',
    "WHEN THEN ",
    "1",
    "A",
)


def read_all(text: str) -> None:
    for read in READERS:
        with contextlib.suppress(AgentdError):
            read(text)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("start", ["", "---\nid: x\n---\n## Requirements\n### R1: x\n"])
def test_parsing_many_lines_takes_linear_time(name: str, start: str) -> None:
    lines = LINES[name] * 300
    assert_linear(read_all, start + lines, start + lines * TIMES)


@pytest.mark.parametrize("characters", CHARACTERS)
def test_parsing_long_lines_takes_linear_time(characters: str) -> None:
    short, long = characters * 500, characters * 500 * TIMES
    assert_linear(read_all, short, long)
    # Not bare as well: a row of fence marks would hide all that follows.
    small, large = ("\n\n".join(start + line for start in STARTS) for line in (short, long))
    assert_linear(read_all, EVERYWHERE.format(small), EVERYWHERE.format(large))


@pytest.mark.parametrize("lines", ["key{}: v\n", "# comment {}\n", "key{}: |\n  text\n\n"])
def test_parsing_long_frontmatter_takes_linear_time(lines: str) -> None:
    small, large = ("".join(lines.format(number) for number in range(size)) for size in (300, 300 * TIMES))
    assert_linear(read_all, f"---\n{small}---\n", f"---\n{large}---\n")
