"""Which open changes touch the same requirement: told early, so that nobody is surprised when the second is archived.

Names are those of the merge: `notes:R2` is a requirement, also where only a scenario of it is touched,
`notes:/Title` a scenario of the whole spec, `notes` a spec that is created.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from agentd.domain import Phase

NAMES_SHOWN = 3  # of many names the first ones


class OverlappingChange(NamedTuple):
    """Another open change, and what both touch."""

    id: str
    phase: Phase
    requirements: list[str]


class Overlap(NamedTuple):
    """Open changes that touch the same: told once, however many pairs they are."""

    changes: list[str]
    requirements: list[str]


class OverlapIndex:
    """Open changes by what they touch. Each is looked at once: those that meet are found by the name they share."""

    def __init__(self, changes: Iterable[tuple[str, Phase, Sequence[str]]]) -> None:
        self._holders: dict[str, list[str]] = {}
        self._phases: dict[str, Phase] = {}
        for change_id, phase, touches in changes:
            self._phases[change_id] = phase
            for name in touches:
                self._holders.setdefault(name, []).append(change_id)

    def rivals(self, change_id: str, touches: Sequence[str]) -> list[OverlappingChange]:
        """Whom a change meets that touches these."""
        shared: dict[str, list[str]] = {}
        for name in touches:
            for other in self._holders.get(name, ()):
                if other != change_id:
                    shared.setdefault(other, []).append(name)
        return [OverlappingChange(other, self._phases[other], _plain(shared[other])) for other in sorted(shared)]

    def meetings(self) -> list[Overlap]:
        """All of them, in time that grows with the changes and not with their pairs."""
        found: dict[tuple[str, ...], list[str]] = {}
        for name, holders in self._holders.items():
            if len(holders) > 1:
                found.setdefault(tuple(holders), []).append(name)
        meetings = (Overlap(sorted(holders), _plain(names)) for holders, names in found.items())
        return sorted(meetings, key=lambda one: one.requirements)


def _plain(names: Iterable[str]) -> list[str]:
    """Sorted; where a whole spec is named, its requirements need no word."""
    found = set(names)
    return sorted(name for name in found if ":" not in name or name.partition(":")[0] not in found)


def format_names(names: Sequence[str], besides: str = "") -> str:
    """One, two and three; or the first ones and how many more. `besides` is one of them that is not to be named."""
    first = [name for name in names[: NAMES_SHOWN + 1] if name != besides][:NAMES_SHOWN]
    left = len(names) - bool(besides) - len(first)
    if left:
        return f"{', '.join(first)} and {left} more"
    return f"{', '.join(first[:-1])} and {first[-1]}" if len(first) > 1 else first[0]


def touched_requirements(specs: Mapping[str, tuple[str, str | None]], pattern: re.Pattern[str]) -> list[str]:
    """What a change touches, by its specs: each with its text and that of its base, None for a new one.

    A spec that cannot be read touches nothing; validation tells about it.
    """
    from agentd.domain import FormatInvalid  # late: a listing with a warm index reads no spec
    from agentd.merge import UnitKind, touched_units

    found: set[str] = set()
    for spec, (yours, base) in specs.items():
        try:
            touches = touched_units(yours, base, spec, pattern)
        except FormatInvalid:
            continue
        found.update(_requirement(one.name) if one.kind is UnitKind.SCENARIO else one.name for one in touches)
        if base is None:
            found.add(spec)
    return sorted(found)


def _requirement(scenario: str) -> str:
    """Whose scenario it is; one of the whole spec stands for itself."""
    requirement = scenario.partition("/")[0]
    return scenario if requirement.endswith(":") else requirement


def read_touched(folder: str, pattern: re.Pattern[str] | None = None) -> list[str]:
    """What the change in that folder touches as it lies there; without a pattern by that of its project."""
    specs = {}
    for name in _spec_names(folder):
        base = f"{folder}/base/{name}"
        yours, before = _text(f"{folder}/specs/{name}"), _text(base)
        if yours is not None and (before is not None or not os.path.lexists(base)):
            specs[name.removesuffix(".md")] = (yours, before)
    return touched_requirements(specs, pattern or _pattern_near(folder)) if specs else []


def _spec_names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(f"{folder}/specs") if name.endswith(".md"))
    except OSError:
        return []


def _text(path: str) -> str | None:
    """None: there is no such file, or nothing that can be read as one."""
    from agentd.documents import InvalidDocument, decode_text

    if os.path.islink(path) or not os.path.isfile(path):
        return None  # opening a pipe would wait for ever
    try:
        with open(path, "rb") as file:
            return decode_text(file.read(), path)
    except (OSError, InvalidDocument):
        return None


def _pattern_near(folder: str) -> re.Pattern[str]:
    """What a heading of a requirement is in the project of a change's folder."""
    file = os.path.join(os.path.dirname(os.path.dirname(folder)), "config.toml")
    try:
        stamp = os.stat(file).st_mtime_ns
    except OSError:
        stamp = 0
    return _pattern(file, stamp)


@cache  # read once for all the changes of a tree; cheap beside their YAML, and else other patterns would see nothing
def _pattern(file: str, stamp: int) -> re.Pattern[str]:
    from pathlib import Path  # late: see above

    from agentd.documents import REQUIREMENT_PATTERN
    from agentd.domain import AgentdError
    from agentd.project import load_config

    try:
        return load_config(Path(file)).validation.requirement_pattern
    except AgentdError:
        return REQUIREMENT_PATTERN  # whoever works by the configuration is told what is wrong with it
