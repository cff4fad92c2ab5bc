"""The scope of a page request: nothing is written, and data that several parts of the page need is read once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from agentd.domain import AgentdError

_results: ContextVar[dict[Any, Any] | None] = ContextVar("results", default=None)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@contextmanager
def read_only() -> Iterator[None]:
    """Inside this block, caches are not written, and a `read_once` function is called once for the same arguments."""
    outer = _results.get()
    token = _results.set({} if outer is None else outer)
    try:
        yield
    finally:
        _results.reset(token)


def is_read_only() -> bool:
    return _results.get() is not None


def read_once(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Within `read_only`, reuse the first result or error; elsewhere, call the function every time."""

    @wraps(function)
    def read(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        results = _results.get()
        if results is None:
            return function(*args, **kwargs)
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in results:
            try:
                results[key] = function(*args, **kwargs)
            except AgentdError as error:
                results[key] = error
        found: Result | AgentdError = results[key]
        if isinstance(found, AgentdError):
            raise found
        return found

    return read
