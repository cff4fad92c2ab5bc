"""What only shows when all layers are together: do roles, agents, kinds and prices fit each other?"""

from collections.abc import Collection, Iterator

from agentd.config.layers import Layer
from agentd.config.merge import AGENTS, Leaf, Merged
from agentd.config.schema import KINDS, PRICE
from agentd.config.shapes import Problem
from agentd.config.writing import KeyPath, dotted, either, nearest, quote
from agentd.domain.terms import Role

# Keys that only some kinds of agent understand.
_ONLY = {
    "resume": ("gemini",),
    "playbook": ("scripted",),
    "command": ("gemini", "codex", "claude", "command"),
}
_NEEDED = {"command": "name the program to run", "playbook": "name the file to play"}

Found = Iterator[tuple[Layer, Problem]]


def problems(merged: Merged, broken: Collection[KeyPath]) -> Found:
    """`broken` are places with problems of their own: what follows from those is not said again."""
    for path, layer in merged.names.items():
        if path[0] == AGENTS:
            yield from _agent(merged, path, layer, broken)
        else:
            yield from _price(merged, path, layer, broken)
    if (AGENTS,) not in broken:
        yield from _roles(merged, broken)


def _roles(merged: Merged, broken: Collection[KeyPath]) -> Found:
    agents = [str(name) for table, name in merged.names if table == AGENTS]
    for role in Role:
        path = ("roles", str(role))
        name, layer = merged.leaves[path]
        if name in agents or (AGENTS, name) in broken:
            continue
        likely = nearest(name, agents)
        advice = (
            f"did you mean {quote(likely)}?" if likely else f"add [agents.{dotted((name,))}], or take {either(agents)}"
        )
        yield layer, Problem(path, f"{dotted(path)} names {quote(name)}, which is no agent; {advice}")


def _agent(merged: Merged, path: KeyPath, layer: Layer, broken: Collection[KeyPath]) -> Found:
    if (*path, "kind") in broken:
        return
    kind = merged.leaves[(*path, "kind")].value
    if kind not in KINDS:
        yield layer, Problem(path, f"{dotted(path)} has no kind; set kind = {either(KINDS[:-1])}")
        return
    for key, kinds in _ONLY.items():
        leaf = merged.leaves.get((*path, key))
        if leaf and kind not in kinds:
            yield leaf.layer, _misplaced((*path, key), kind, kinds)
        elif not leaf and kind in kinds and key in _NEEDED and (*path, key) not in broken:
            yield layer, Problem(path, f"{dotted(path)} has no {key}; {_NEEDED[key]}")
    if kind != "codex":
        yield from _reasoning(merged.leaves[(*path, "models")], path, kind)


def _reasoning(models: Leaf, path: KeyPath, kind: str) -> Found:
    for index, model in enumerate(models.value):
        if "reasoning" in model:
            yield models.layer, _misplaced((*path, "models", index, "reasoning"), kind, ("codex",))


def _misplaced(path: KeyPath, kind: str, kinds: tuple[str, ...]) -> Problem:
    return Problem(path, f"{dotted(path)} is only for agents of kind {either(kinds)}; this one is {quote(kind)}")


def _price(merged: Merged, path: KeyPath, layer: Layer, broken: Collection[KeyPath]) -> Found:
    given = {str(leaf[-1]): None for leaf in merged.leaves if leaf[:-1] == path}
    for problem in PRICE.missing(given, path):
        if not any(place[: len(path)] == path for place in broken):
            yield layer, problem
