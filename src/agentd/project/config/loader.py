"""Load all layers into one checked configuration, or raise one error that lists everything that is wrong."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.agents import ADAPTERS, AgentSettings, ModelSettings, PriceSettings
from agentd.domain import (
    BadConfig,
    Complexity,
    GitSetup,
    KeyPath,
    ListOf,
    MapOf,
    Role,
    Severity,
    ShapeProblem,
    Table,
    dotted_key,
    join_choices,
    nearest_word,
    printable,
    quote_toml,
    show_value,
)
from agentd.project.config import layers
from agentd.project.config.config_schema import ASK, OFF, PRICE, shape_at
from agentd.project.config.layer_merge import AGENTS, LayerReading, MergedConfig, merge_layers, read_layer
from agentd.project.config.layers import ConfigFault, ConfigLayer, LayerRank
from agentd.project.config.settings import (
    BudgetSettings,
    CheckSettings,
    Config,
    GitSettings,
    LimitSettings,
    ValidationSettings,
    WorkflowSettings,
)
from agentd.project.config.template import check_defaults, default_tree
from agentd.storage import read_once

# Keys that only some kinds of agents support.
_ONLY = {
    key: tuple(kind for kind, adapter in ADAPTERS.items() if key in adapter.config_keys)
    for key in ("resume", "playbook", "command", "reasoning")
}
_NEEDED = {"command": "name the program to run", "playbook": "name the file to play"}

LocatedProblem = Iterator[tuple[ConfigLayer, ShapeProblem]]


def cross_problems(merged: MergedConfig, broken: Collection[KeyPath]) -> LocatedProblem:
    """Yield problems across keys, except those that follow from `broken`, the paths with problems of their own."""
    for path, layer in merged.names.items():
        if path[0] == AGENTS:
            yield from _check_agent(merged, path, layer, broken)
        else:
            yield from _check_price(merged, path, layer, broken)
    if (AGENTS,) not in broken:
        yield from _check_roles(merged, broken)


def _check_roles(merged: MergedConfig, broken: Collection[KeyPath]) -> LocatedProblem:
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
        yield (
            layer,
            ShapeProblem(path, message=f"{dotted_key(path)} names {quote_toml(name)}, which is no agent; {advice}"),
        )


def _check_agent(
    merged: MergedConfig, path: KeyPath, layer: ConfigLayer, broken: Collection[KeyPath]
) -> LocatedProblem:
    if (*path, "kind") in broken:
        return
    kind = merged.leaves[(*path, "kind")].value
    if kind not in ADAPTERS:
        yield (
            layer,
            ShapeProblem(path, message=f"{dotted_key(path)} has no kind; set kind = {join_choices(_ONLY['command'])}"),
        )
        return
    for key, kinds in _ONLY.items():
        leaf = merged.leaves.get((*path, key))
        if leaf and kind not in kinds:
            yield leaf.layer, _misplaced((*path, key), kind, kinds)
        elif not leaf and kind in kinds and key in _NEEDED and (*path, key) not in broken:
            yield layer, ShapeProblem(path, message=f"{dotted_key(path)} has no {key}; {_NEEDED[key]}")
    models = merged.leaves[(*path, "models")]
    for index, model in enumerate(models.value):
        if "reasoning" in model and kind not in _ONLY["reasoning"]:
            yield models.layer, _misplaced((*path, "models", index, "reasoning"), kind, _ONLY["reasoning"])


def _misplaced(path: KeyPath, kind: str, kinds: tuple[str, ...]) -> ShapeProblem:
    return ShapeProblem(
        path,
        message=f"{dotted_key(path)} is only for agents of kind {join_choices(kinds)}; this one is {quote_toml(kind)}",
    )


def _check_price(
    merged: MergedConfig, path: KeyPath, layer: ConfigLayer, broken: Collection[KeyPath]
) -> LocatedProblem:
    given = {str(leaf[-1]): True for leaf in merged.leaves if leaf[:-1] == path}
    for problem in PRICE.missing(given, path):
        if not any(place[: len(path)] == path for place in broken):
            yield layer, problem


def build_config(merged: MergedConfig) -> Config:
    tree = merged.tree()
    git, limits = tree["git"], tree["limits"]
    return Config(
        project_name=tree["project_name"],
        workflow=WorkflowSettings(**tree["workflow"]),
        git=GitSettings(**git | {"setup": None if git["setup"] == ASK else GitSetup(git["setup"])}),
        roles=_roles(tree["roles"]),
        agents={name: _build_agent(name, **agent) for name, agent in tree["agents"].items()},
        limits=LimitSettings(
            **limits | {"wall_secs": _roles(limits["wall_secs"]), "idle_secs": _roles(limits["idle_secs"])}
        ),
        budget=BudgetSettings(**tree["budget"]),
        prices={model: PriceSettings(**price) for model, price in tree["prices"].items()},
        checks=tuple(CheckSettings(**check_defaults() | check) for check in tree["checks"]),
        validation=_validation(tree["validation"]),
        leaves=merged.leaves,
    )


def _roles(table: dict[str, Any]) -> dict[Role, Any]:
    return {Role(role): value for role, value in table.items()}


def _build_agent(
    name: str,
    *,
    kind: Any,
    args: list[str],
    shell: list[str],
    env: list[str],
    models: list[dict[str, Any]],
    command: str = "",
    playbook: str = "",
    resume: Any = None,
) -> AgentSettings:
    chosen = tuple(
        ModelSettings(**model | {"complexity": tuple(map(Complexity, model["complexity"]))}) for model in models
    )
    return AgentSettings(name, kind, command, playbook, tuple(args), tuple(shell), tuple(env), resume, chosen)


def _validation(table: dict[str, Any]) -> ValidationSettings:
    severity = table["severity"].items()
    return ValidationSettings(
        requirement_pattern=re.compile(table["requirement_pattern"]),
        scenario_pattern=re.compile(table["scenario_pattern"]),
        scenario_min_count=table["scenario_min_count"],
        required_headings={kind: tuple(headings) for kind, headings in table["required_headings"].items()},
        max_lines=table["max_lines"],
        severity={rule: None if word == OFF else Severity(word) for rule, word in severity},
    )


def load_config(
    project_file: Path | None,
    *,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Config:
    """Load flag > environment > user file > project file > default. A missing file is an empty layer."""
    return _load(project_file, tuple(flags), tuple((os.environ if environ is None else environ).items()), user_file)


@read_once
def _load(
    project_file: Path | None, flags: tuple[str, ...], variables: tuple[tuple[str, str], ...], user_file: Path | None
) -> Config:
    environ = dict(variables)
    default = ConfigLayer(LayerRank.DEFAULT, "default", default_tree())
    found = list(_layers(project_file, flags, environ, user_file or layers.user_config_file(environ), default))
    faults = [part for part in found if isinstance(part, ConfigFault)]
    readings = [read_layer(part) for part in found if isinstance(part, ConfigLayer)]
    faults += (_fault(reading.layer, problem) for reading in readings for problem in reading.problems)
    merged = merge_layers(read_layer(default), readings)
    # If one of the files could not be read, problems across layers cannot be determined.
    if not any(isinstance(part, ConfigFault) and part.rank in (LayerRank.PROJECT, LayerRank.USER) for part in found):
        faults += _across(merged, readings)
    if faults:
        raise BadConfig("\n".join(str(fault) for fault in sorted(faults, key=lambda fault: (fault.rank, fault.line))))
    return build_config(merged)


def _layers(
    project_file: Path | None,
    flags: Sequence[str],
    environ: Mapping[str, str],
    user_file: Path | None,
    default: ConfigLayer,
) -> Iterator[ConfigLayer | ConfigFault]:
    """Yield the layers from lowest to highest, without the defaults."""
    files: list[ConfigLayer | ConfigFault] = []
    if project_file:
        # Relative to the project's root, wherever the command is run.
        label = printable("/".join(project_file.absolute().parts[-2:]))
        files.append(_known_version(layers.file_layer(LayerRank.PROJECT, label, project_file), default))
    if user_file:
        label = printable(layers.user_config_label(user_file, environ))
        files.append(_known_version(layers.file_layer(LayerRank.USER, label, user_file), default))
    from_flags = list(layers.flag_layers(flags))
    others = [part.tree for part in (default, *files, *from_flags) if isinstance(part, ConfigLayer)]
    yield from files
    yield from layers.environment_layers(environ, others)
    yield from from_flags


def _known_version(file: ConfigLayer | ConfigFault, default: ConfigLayer) -> ConfigLayer | ConfigFault:
    """Reject a file written by a newer agentd without checking its keys: they may have a different meaning."""
    key, known = "schema_version", default.tree["schema_version"]
    if isinstance(file, ConfigFault) or not isinstance(file.tree.get(key), int) or file.tree[key] <= known:
        return file
    reason = f"schema_version is {show_value(file.tree[key])}: the file was written by a newer agentd"
    return ConfigFault(file.rank, file.label, file.line((key,)), f"{reason}; this one reads {known}, update it")


def _across(merged: MergedConfig, readings: Iterable[LayerReading]) -> Iterator[ConfigFault]:
    broken = {problem.path for reading in readings for problem in reading.problems}
    for layer, problem in cross_problems(merged, broken):
        yield _fault(layer, problem)


def _fault(layer: ConfigLayer, problem: ShapeProblem) -> ConfigFault:
    message, shape, key = str(problem), shape_at(problem.path), dotted_key(problem.path)
    if isinstance(shape, Table | MapOf) and not problem.message:
        message += f"; write it below [{key}]"
    elif isinstance(shape, ListOf) and isinstance(shape.item, Table) and not problem.message:
        message += f"; write each item below [[{key}]]"
    return ConfigFault(layer.rank, layer.label, layer.line(problem.path), message)
