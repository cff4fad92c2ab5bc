"""What comes before what: a stable topological order. Faults are data, for a rule or a tool to report."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentFault:
    """Where it is, which kind it is, and in a sentence what is wrong and what would be right."""

    line: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class DependencyOrder:
    """All ids, dependencies first; those in or behind a circle come last, as they were given."""

    ids: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    """(id, the dependency that nobody knows)"""
    cycle: tuple[str, ...] = ()
    """One circle, its first id repeated at the end: a, b, a; empty when there is none."""


def dependency_order(depends: Mapping[str, Sequence[str]], known: Collection[str] = ()) -> DependencyOrder:
    """The order of the keys, as given wherever dependencies allow; `known` ones are settled elsewhere."""
    ids = list(depends)
    place = {one: number for number, one in enumerate(ids)}
    waits = {one: {other for other in others if other in place} for one, others in depends.items()}
    unknown = [
        (one, other)
        for one, others in depends.items()
        for other in dict.fromkeys(others)
        if other not in place and other not in known
    ]
    followers: dict[str, list[str]] = {one: [] for one in ids}
    for one, others in waits.items():
        for other in others:
            followers[other].append(one)
    left = {one: len(others) for one, others in waits.items()}
    ready = [place[one] for one in ids if not left[one]]
    done: list[str] = []
    while ready:
        one = ids[heapq.heappop(ready)]
        done.append(one)
        for follower in followers[one]:
            left[follower] -= 1
            if not left[follower]:
                heapq.heappush(ready, place[follower])
    stuck = [one for one in ids if left[one]]
    return DependencyOrder((*done, *stuck), tuple(unknown), _find_cycle(stuck, depends))


def _find_cycle(stuck: Sequence[str], depends: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Each stuck id waits for another stuck one, so following the first such leads into a circle."""
    if not stuck:
        return ()
    members = set(stuck)
    path: dict[str, None] = {}
    one = stuck[0]
    while one not in path:
        path[one] = None
        one = next(other for other in depends[one] if other in members)
    trail = list(path)
    return (*trail[trail.index(one) :], one)
