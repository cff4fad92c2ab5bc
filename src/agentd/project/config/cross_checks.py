"""What only shows when all layers are together: do roles, agents, kinds and prices fit each other?"""

from collections.abc import Collection, Iterator

from agentd.domain import Role
from agentd.project.config.display import KeyPath, dotted_key, join_choices, nearest_word, quote_toml
from agentd.project.config.layer_merge import AGENTS, ConfigLeaf, MergedConfig
from agentd.project.config.layers import ConfigLayer
from agentd.project.config.schema import KINDS, PRICE
from agentd.project.config.shapes import ShapeProblem

# Keys that only some kinds of agent understand.
_ONLY = {
    "resume": ("gemini",),
    "playbook": ("scripted",),
    "command": ("gemini", "codex", "claude", "command"),
}
_NEEDED = {"command": "name the program to run", "playbook": "name the file to play"}

LocatedProblem = Iterator[tuple[ConfigLayer, ShapeProblem]]


def cross_problems(merged: MergedConfig, broken: Collection[KeyPath]) -> LocatedProblem:
    """`broken` are places with problems of their own: what follows from those is not said again."""
    for path, layer in merged.names.items():
        if path[0] == AGENTS:
            yield from _agent(merged, path, layer, broken)
        else:
            yield from _price(merged, path, layer, broken)
    if (AGENTS,) not in broken:
        yield from _roles(merged, broken)


def _roles(merged: MergedConfig, broken: Collection[KeyPath]) -> LocatedProblem:
    agents = [str(name) for table, name in merged.names if table == AGENTS]
    for role in Role:
        path = ("roles", str(role))
        name, layer = merged.leaves[path]
        if name in agents or (AGENTS, name) in broken:
            continue
        likely = nearest_word(name, agents)
        advice = (
            f"did you mean {quote_toml(likely)}?"
            if likely
            else f"add [agents.{dotted_key((name,))}], or take {join_choices(agents)}"
        )
        yield layer, ShapeProblem(path, f"{dotted_key(path)} names {quote_toml(name)}, which is no agent; {advice}")


def _agent(merged: MergedConfig, path: KeyPath, layer: ConfigLayer, broken: Collection[KeyPath]) -> LocatedProblem:
    if (*path, "kind") in broken:
        return
    kind = merged.leaves[(*path, "kind")].value
    if kind not in KINDS:
        yield layer, ShapeProblem(path, f"{dotted_key(path)} has no kind; set kind = {join_choices(KINDS[:-1])}")
        return
    for key, kinds in _ONLY.items():
        leaf = merged.leaves.get((*path, key))
        if leaf and kind not in kinds:
            yield leaf.layer, _misplaced((*path, key), kind, kinds)
        elif not leaf and kind in kinds and key in _NEEDED and (*path, key) not in broken:
            yield layer, ShapeProblem(path, f"{dotted_key(path)} has no {key}; {_NEEDED[key]}")
    if kind != "codex":
        yield from _reasoning(merged.leaves[(*path, "models")], path, kind)


def _reasoning(models: ConfigLeaf, path: KeyPath, kind: str) -> LocatedProblem:
    for index, model in enumerate(models.value):
        if "reasoning" in model:
            yield models.layer, _misplaced((*path, "models", index, "reasoning"), kind, ("codex",))


def _misplaced(path: KeyPath, kind: str, kinds: tuple[str, ...]) -> ShapeProblem:
    return ShapeProblem(
        path, f"{dotted_key(path)} is only for agents of kind {join_choices(kinds)}; this one is {quote_toml(kind)}"
    )


def _price(merged: MergedConfig, path: KeyPath, layer: ConfigLayer, broken: Collection[KeyPath]) -> LocatedProblem:
    given = {str(leaf[-1]): None for leaf in merged.leaves if leaf[:-1] == path}
    for problem in PRICE.missing(given, path):
        if not any(place[: len(path)] == path for place in broken):
            yield layer, problem
