"""Open changes that touch the same requirement, reported before the second one is archived.

Names are the same as in the merge: `notes:R2` is a requirement (also if only one of its scenarios is touched),
`notes:/Title` a scenario of the whole spec, `notes` a new spec.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from agentd.domain import Phase

NAMES_SHOWN = 3  # names listed before "and N more"


class OverlappingChange(NamedTuple):
    """Another open change, and the requirements both touch."""

    id: str
    phase: Phase
    requirements: list[str]


class Overlap(NamedTuple):
    """A group of open changes that touch the same requirements."""

    changes: list[str]
    requirements: list[str]


class OverlapIndex:
    """Open changes by the requirements they touch."""

    def __init__(self, changes: Iterable[tuple[str, Phase, Sequence[str]]]) -> None:
        self._holders: dict[str, list[str]] = {}
        self._phases: dict[str, Phase] = {}
        for change_id, phase, touches in changes:
            self._phases[change_id] = phase
            for name in touches:
                self._holders.setdefault(name, []).append(change_id)

    def find_overlapping(self, change_id: str, touches: Sequence[str]) -> list[OverlappingChange]:
        """Return the other changes that touch these requirements."""
        shared: dict[str, list[str]] = {}
        for name in touches:
            for other in self._holders.get(name, ()):
                if other != change_id:
                    shared.setdefault(other, []).append(name)
        return [OverlappingChange(other, self._phases[other], _condense(shared[other])) for other in sorted(shared)]

    def all_overlaps(self) -> list[Overlap]:
        """Return all overlaps, in time linear in the number of changes."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, holders in self._holders.items():
            if len(holders) > 1:
                groups.setdefault(tuple(holders), []).append(name)
        overlaps = (Overlap(sorted(holders), _condense(names)) for holders, names in groups.items())
        return sorted(overlaps, key=lambda overlap: overlap.requirements)


def _condense(names: Iterable[str]) -> list[str]:
    """Sort the names, and leave out the requirements of specs that are named themselves."""
    unique = set(names)
    return sorted(name for name in unique if ":" not in name or name.partition(":")[0] not in unique)


def format_names(names: Sequence[str], besides: str = "") -> str:
    """Return `a, b and c`, or the first names and how many more there are. `besides` is a name to leave out."""
    first = [name for name in names[: NAMES_SHOWN + 1] if name != besides][:NAMES_SHOWN]
    left = len(names) - bool(besides) - len(first)
    if left:
        return f"{', '.join(first)} and {left} more"
    return f"{', '.join(first[:-1])} and {first[-1]}" if len(first) > 1 else first[0]


def touched_requirements(specs: Mapping[str, tuple[str, str | None]], pattern: re.Pattern[str]) -> list[str]:
    """Return what a change touches. `specs` has the text of each spec and of its base, which is None for a new spec.

    An unreadable spec touches nothing; validation reports it.
    """
    from agentd.domain import FormatInvalid  # deferred: a listing from the index reads no specs
    from agentd.merge import UnitKind, touched_units

    names: set[str] = set()
    for spec, (yours, base) in specs.items():
        try:
            touches = touched_units(yours, base, spec, pattern)
        except FormatInvalid:
            continue
        names.update(_requirement(unit.name) if unit.kind is UnitKind.SCENARIO else unit.name for unit in touches)
        if base is None:
            names.add(spec)
    return sorted(names)


def _requirement(scenario: str) -> str:
    """Return the requirement of a scenario; a scenario of the whole spec is returned unchanged."""
    requirement = scenario.partition("/")[0]
    return scenario if requirement.endswith(":") else requirement


def read_touched(folder: str, pattern: re.Pattern[str] | None = None) -> list[str]:
    """Return what the change in a folder touches. The default pattern is that of its project."""
    specs = {}
    for name in _spec_names(folder):
        base = f"{folder}/base/{name}"
        yours, before = _text(f"{folder}/specs/{name}"), _text(base)
        if yours is not None and (before is not None or not os.path.lexists(base)):
            specs[name.removesuffix(".md")] = (yours, before)
    return touched_requirements(specs, pattern or _project_pattern(folder)) if specs else []


def _spec_names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(f"{folder}/specs") if name.endswith(".md"))
    except OSError:
        return []


def _text(path: str) -> str | None:
    """Return the text of a file, or None if it is missing or unreadable."""
    from agentd.documents import InvalidDocument, decode_text

    if os.path.islink(path) or not os.path.isfile(path):
        return None  # opening a pipe would block
    try:
        with open(path, "rb") as file:
            return decode_text(file.read(), path)
    except (OSError, InvalidDocument):
        return None


def _project_pattern(folder: str) -> re.Pattern[str]:
    """Return the pattern of requirement headings in the project of a change's folder."""
    file = os.path.join(os.path.dirname(os.path.dirname(folder)), "config.toml")
    try:
        stamp = os.stat(file).st_mtime_ns
    except OSError:
        stamp = 0
    return _load_pattern(file, stamp)


@cache  # read once for all changes of a worktree
def _load_pattern(file: str, stamp: int) -> re.Pattern[str]:
    from pathlib import Path  # deferred: see above

    from agentd.documents import REQUIREMENT_PATTERN
    from agentd.domain import AgentdError
    from agentd.project import load_config

    try:
        return load_config(Path(file)).validation.requirement_pattern
    except AgentdError:
        return REQUIREMENT_PATTERN  # commands that need the configuration report what is wrong with it
