"""The tabs of a change: each `*_view` module declares its own in `TABS`."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import agentd.web
from agentd.change import Change, ChangeState
from agentd.web.site import Site

Query = Mapping[str, str]


def _is_always_shown(documents: Sequence[str], state: ChangeState | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ChangeTab:
    """A tab at /changes/<id>/<name>, rendered by the template <name>.html with what `values` returns.

    `position` orders the tabs. `is_shown` gets the document names, and the state if it can be read.
    """

    name: str
    position: int
    values: Callable[[Site, Change, Query], dict[str, Any]]
    is_shown: Callable[[Sequence[str], ChangeState | None], bool] = _is_always_shown


@cache
def change_tabs() -> tuple[ChangeTab, ...]:
    names = [module.name for module in pkgutil.iter_modules(agentd.web.__path__) if module.name.endswith("_view")]
    modules = [import_module(f"agentd.web.{name}") for name in names]
    tabs = [tab for module in modules for tab in getattr(module, "TABS", ())]
    return tuple(sorted(tabs, key=lambda tab: tab.position))
