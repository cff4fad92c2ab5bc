"""Merge all layers into one set of values: tables key by key, lists whole, higher layers win."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentd.domain import KeyPath, ListOf, MapOf, Shape, ShapeProblem, Table
from agentd.project.config.config_schema import SCHEMA
from agentd.project.config.layers import ConfigLayer, LayerRank

AGENTS = "agents"


class ConfigLeaf(NamedTuple):
    value: Any
    layer: ConfigLayer


class LayerReading(NamedTuple):
    """A layer checked against the schema: its valid values, and its problems."""

    layer: ConfigLayer
    leaves: Mapping[KeyPath, Any]
    names: tuple[KeyPath, ...]
    problems: tuple[ShapeProblem, ...]


class MergedConfig(NamedTuple):
    """The effective values in schema order, and the layer that first names each agent and each price."""

    leaves: Mapping[KeyPath, ConfigLeaf]
    names: Mapping[KeyPath, ConfigLayer]

    def tree(self) -> dict[str, Any]:
        root: dict[str, Any] = {key: {} for key, shape in SCHEMA.keys.items() if isinstance(shape, Table | MapOf)}
        for path, leaf in self.leaves.items():
            table = root
            for part in path[:-1]:
                table = table.setdefault(str(part), {})
            table[str(path[-1])] = leaf.value
        return root


def read_layer(layer: ConfigLayer) -> LayerReading:
    problems = tuple(SCHEMA.problems(layer.tree, ()))
    broken = [problem.path for problem in problems]
    names = tuple(path for path in _names(layer.tree) if path not in broken)
    leaves = {path: value for path, value in _leaves(SCHEMA, layer.tree, ()) if not _touches(path, broken)}
    return LayerReading(layer, leaves, names, problems)


def _touches(path: KeyPath, broken: Sequence[KeyPath]) -> bool:
    """Return whether a problem is in the value, inside it or around it."""
    return any(path[: len(other)] == other[: len(path)] for other in broken)


def _names(tree: Mapping[str, Any]) -> Iterator[KeyPath]:
    for key, shape in SCHEMA.keys.items():
        table = tree.get(key)
        if isinstance(shape, MapOf) and isinstance(table, dict):
            yield from ((key, name) for name, item in table.items() if isinstance(item, dict))


def _leaves(shape: Shape, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not isinstance(shape, Table | MapOf):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            inner = shape.item if isinstance(shape, MapOf) else shape.keys.get(key)
            if inner:
                yield from _leaves(inner, item, (*path, key))


def merge_layers(default: LayerReading, readings: Sequence[LayerReading]) -> MergedConfig:
    """Merge `readings`, ordered from the lowest layer to the highest, without the defaults."""
    names: dict[KeyPath, ConfigLayer] = {}
    for reading in (default, *readings):
        for path in reading.names:
            names.setdefault(path, reading.layer)
    kinds = _kinds(names, readings)
    found = dict(_defaults(default, kinds))
    for reading in readings:
        for path, value in reading.leaves.items():
            if path[0] != AGENTS or reading.layer.rank >= kinds[path[1]].since:
                found[path] = ConfigLeaf(value, reading.layer)
    return MergedConfig(dict(_in_order(SCHEMA, (), found, names, default.layer)), names)


class _KindChange(NamedTuple):
    """An agent's kind and the layer that set it. Lower layers are ignored: their values are for another program."""

    kind: str
    since: LayerRank


def _kinds(names: Mapping[KeyPath, ConfigLayer], readings: Sequence[LayerReading]) -> dict[str | int, _KindChange]:
    kinds = {path[1]: _KindChange(str(path[1]), LayerRank.DEFAULT) for path in names if path[0] == AGENTS}
    for reading in readings:
        for name, (kind, _) in kinds.items():
            wanted = reading.leaves.get((AGENTS, name, "kind"), kind)
            if wanted != kind:
                kinds[name] = _KindChange(wanted, reading.layer.rank)
    return kinds


def _defaults(default: LayerReading, kinds: Mapping[str | int, _KindChange]) -> Iterator[tuple[KeyPath, ConfigLeaf]]:
    """Yield the defaults. Those of an agent are the defaults of its kind, whatever its name."""
    for path, value in default.leaves.items():
        if path[0] != AGENTS:
            yield path, ConfigLeaf(value, default.layer)
    for name, (kind, _) in kinds.items():
        yield (AGENTS, name, "kind"), ConfigLeaf(str(name), default.layer)
        for path, value in default.leaves.items():
            if path[:2] == (AGENTS, kind):
                yield (AGENTS, name, *path[2:]), ConfigLeaf(value, default.layer)


def _in_order(
    shape: Shape,
    path: KeyPath,
    found: Mapping[KeyPath, ConfigLeaf],
    names: Mapping[KeyPath, ConfigLayer],
    default: ConfigLayer,
) -> Iterator[tuple[KeyPath, ConfigLeaf]]:
    if isinstance(shape, Table):
        for key, inner in shape.keys.items():
            yield from _in_order(inner, (*path, str(key)), found, names, default)
    elif isinstance(shape, MapOf):
        for name in names:
            if name[:-1] == path:
                yield from _in_order(shape.item, name, found, names, default)
    elif path in found:
        yield path, found[path]
    elif isinstance(shape, ListOf):
        yield path, ConfigLeaf([], default)
