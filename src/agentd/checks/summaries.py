"""What test runners say at their end: how many tests passed, which failed (pure).

A runner is recognized by its output, whatever command has called it: `npm test` and `make test` call all of them.
"""

from collections.abc import Callable, Sequence

from agentd.checks.found import NOTHING, Found, Summary, together
from agentd.checks.runners import cargo, go, jest, node, pytest, unittest, vitest

_LONGEST = 4000  # characters of a line that are looked at; what runners say is shorter
_READERS: tuple[Callable[[Sequence[str]], Found | None], ...] = (
    pytest.read,
    unittest.read,
    node.read,
    cargo.read,
    go.read,
    jest.read,
    vitest.read,
)


def read(output: str, exit_code: int | None) -> Summary:
    """`exit_code` None: it was ended, and what it had said by then is no summary."""
    if exit_code is None:
        return NOTHING
    lines = [line[:_LONGEST].rstrip() for line in output.split("\n")]
    found = [one for reader in _READERS if (one := reader(lines))]
    return together(found)
