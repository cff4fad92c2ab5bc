"""`load`: layers -> one checked configuration, or one error with everything that is wrong."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentd.config import across, layers
from agentd.config.build import build
from agentd.config.layers import Fault, Layer, Rank
from agentd.config.merge import Merged, Reading, merge, read
from agentd.config.model import Config
from agentd.config.shapes import Problem
from agentd.config.template import default_tree
from agentd.config.writing import printable, show
from agentd.domain.errors import InvalidConfig


def load(
    project_file: Path | None,
    *,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Config:
    """Flag > environment > user file > project file > default. A file that is missing is an empty layer."""
    if environ is None:
        environ = os.environ
    default = Layer(Rank.DEFAULT, "default", default_tree())
    found = list(_layers(project_file, flags, environ, user_file or layers.user_file(environ), default))
    faults = [part for part in found if isinstance(part, Fault)]
    readings = [read(part) for part in found if isinstance(part, Layer)]
    faults += (_fault(reading.layer, problem) for reading in readings for problem in reading.problems)
    merged = merge(read(default), readings)
    # Without one of the files nothing can be said about the whole.
    if not any(isinstance(part, Fault) and part.rank in (Rank.PROJECT, Rank.USER) for part in found):
        faults += _across(merged, readings)
    if faults:
        raise InvalidConfig(
            "\n".join(str(fault) for fault in sorted(faults, key=lambda fault: (fault.rank, fault.line)))
        )
    return build(merged)


def _layers(
    project_file: Path | None,
    flags: Sequence[str],
    environ: Mapping[str, str],
    user_file: Path | None,
    default: Layer,
) -> Iterator[Layer | Fault]:
    """From the lowest to the highest, without the defaults."""
    files: list[Layer | Fault] = []
    if project_file:
        # Named from the project's root, wherever the command is run.
        label = printable("/".join(project_file.absolute().parts[-2:]))
        files.append(_known_version(layers.file_layer(Rank.PROJECT, label, project_file), default))
    if user_file:
        label = printable(layers.user_label(user_file, environ))
        files.append(_known_version(layers.file_layer(Rank.USER, label, user_file), default))
    from_flags = list(layers.flag_layers(flags))
    others = [part.tree for part in (default, *files, *from_flags) if isinstance(part, Layer)]
    yield from files
    yield from layers.environment_layers(environ, others)
    yield from from_flags


def _known_version(file: Layer | Fault, default: Layer) -> Layer | Fault:
    """A file of a newer agentd is not judged any further: its keys may mean something else."""
    key, known = "schema_version", default.tree["schema_version"]
    if isinstance(file, Fault) or not isinstance(file.tree.get(key), int) or file.tree[key] <= known:
        return file
    reason = f"schema_version is {show(file.tree[key])}: the file was written by a newer agentd"
    return Fault(file.rank, file.label, file.line((key,)), f"{reason}; this one reads {known}, update it")


def _across(merged: Merged, readings: Iterable[Reading]) -> Iterator[Fault]:
    broken = {problem.path for reading in readings for problem in reading.problems}
    for layer, problem in across.problems(merged, broken):
        yield _fault(layer, problem)


def _fault(layer: Layer, problem: Problem) -> Fault:
    return Fault(layer.rank, layer.label, layer.line(problem.path), problem.message)
