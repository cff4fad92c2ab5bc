"""Stable topological order of dependencies, and document faults as data."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentFault:
    """A problem in a document: its line, the rule it violates, and a message that says how to fix it."""

    line: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class DependencyOrder:
    """All ids, dependencies first. Ids in or behind a cycle come last, in the given order."""

    ids: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    """(id, its unknown dependency)"""
    cycle: tuple[str, ...] = ()
    """One cycle, its first id repeated at the end: a, b, a; empty if there is none."""


def dependency_order(depends: Mapping[str, Sequence[str]], known: Collection[str] = ()) -> DependencyOrder:
    """Order the keys, keeping the given order where dependencies allow. `known` ids exist elsewhere."""
    ids = list(depends)
    position = {id_: number for number, id_ in enumerate(ids)}
    pending = {id_: {other for other in others if other in position} for id_, others in depends.items()}
    unknown = [
        (id_, other)
        for id_, others in depends.items()
        for other in dict.fromkeys(others)
        if other not in position and other not in known
    ]
    followers: dict[str, list[str]] = {id_: [] for id_ in ids}
    for id_, others in pending.items():
        for other in others:
            followers[other].append(id_)
    left = {id_: len(others) for id_, others in pending.items()}
    ready = [position[id_] for id_ in ids if not left[id_]]
    done: list[str] = []
    while ready:
        id_ = ids[heapq.heappop(ready)]
        done.append(id_)
        for follower in followers[id_]:
            left[follower] -= 1
            if not left[follower]:
                heapq.heappush(ready, position[follower])
    stuck = [id_ for id_ in ids if left[id_]]
    return DependencyOrder((*done, *stuck), tuple(unknown), _find_cycle(stuck, depends))


def _find_cycle(stuck: Sequence[str], depends: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return a cycle. Each stuck id depends on another stuck id, so following them leads into one."""
    if not stuck:
        return ()
    members = set(stuck)
    path: dict[str, None] = {}
    id_ = stuck[0]
    while id_ not in path:
        path[id_] = None
        id_ = next(other for other in depends[id_] if other in members)
    trail = list(path)
    return (*trail[trail.index(id_) :], id_)
