"""The error tree: every class has its exit code, and the drawing in the docstring is the tree."""

import inspect

import pytest

from agentd.domain import errors
from agentd.domain.errors import AgentdError

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AgentdError) and kind is not AgentdError
]

EXIT_CODES = {
    "Refusal": 1,
    "UsageError": 2,
    "SetupError": 3,
    "AgentFailed": 4,
    "Busy": 5,
    "StateError": 6,
    "OverBudget": 7,
    "Bug": 70,
    "Interrupted": 130,
}


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_the_exit_code_of_its_branch(kind: type[AgentdError]) -> None:
    branch = next(parent for parent in kind.__mro__ if parent.__name__ in EXIT_CODES)
    assert kind("x").exit_code == EXIT_CODES[branch.__name__]


@pytest.mark.parametrize("kind", CLASSES)
def test_error_tree_in_the_docstring_names_every_error(kind: type[AgentdError]) -> None:
    assert errors.__doc__ and kind.__name__ in errors.__doc__


def test_error_codes_are_stable() -> None:
    assert errors.ChangeNotFound("x").code == "change-not-found"
    assert errors.Busy("x").code == "busy"


def test_explicit_hint_overrides_the_class_hint() -> None:
    assert errors.NoGit("x").hint == "git init"
    assert errors.NoGit("x", "git worktree repair").hint == "git worktree repair"
