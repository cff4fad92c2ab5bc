"""exit-codes.md: how a command can end, from the error tree."""

import inspect
from collections.abc import Iterator

from agentd.agents.failures import FailureCause
from agentd.domain import errors
from agentd.domain.errors import AgentdError, AgentFailed
from reference.markdown import code, plain, table

MEANINGS = {
    0: "yes: done, approved, valid",
    1: "the command ran, and the answer is no: a verdict, a wrong phase, an unanswered question",
    2: "the command was typed wrong",
    3: "something has to be set up first: no project, a bad configuration, an agent missing, nothing trusted",
    4: "an agent failed; the cause is told, and the same command goes on",
    5: "busy: another run has the change",
    6: "what is on disk cannot be trusted",
    7: "over budget, or a step has used up its calls",
    70: "a bug of agentd; a file with the details is named",
    130: "interrupted with Ctrl-C; the same command goes on",
}
_HEAD = """# Exit codes and errors

An error names the thing and what to type next. With `--json` it is in the result's `error`: `code`, `message` and
`hint`. A verdict is never an error: NEEDS_REVISION is exit code 1 with `error` null.

"""


def page() -> str:
    codes = table(("exit code", "meaning"), [[str(number), plain(words)] for number, words in MEANINGS.items()])
    return f"{_HEAD}## Exit codes\n\n{codes}\n## The tree\n\n```text\n{_drawing()}\n```\n\n{_classes()}\n{_causes()}"


def tree(top: type[AgentdError] = AgentdError) -> Iterator[type[AgentdError]]:
    """Only those of `errors`: which others there are depends on what is imported."""
    yield top
    for one in top.__subclasses__():
        if one.__module__ == errors.__name__:
            yield from tree(one)


def _drawing() -> str:
    """As the code draws it."""
    lines = inspect.cleandoc(errors.__doc__ or "").split("\n")
    return inspect.cleandoc("\n".join(line for line in lines if line.startswith("    ")))


def _classes() -> str:
    found = [one for one in tree() if one not in (AgentdError, AgentFailed)]
    rows = [[one.__name__, code(one("").code), str(one.exit_code), plain(one.hint)] for one in found]
    words = "The hint is the usual one; where more is known, the error says it better."
    return f"## Errors\n\n{words}\n\n{table(('error', 'code', 'exit code', 'usual hint'), rows)}"


def _causes() -> str:
    rows = [[code(one), "yes" if one.can_pass else ""] for one in FailureCause]
    words = "With exit code 4 the `code` is the cause. Where it may pass, agentd has tried again before it gives up."
    return f"## Why an agent failed\n\n{words}\n\n{table(('code', 'tried again'), rows)}"
