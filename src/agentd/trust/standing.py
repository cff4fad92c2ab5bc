"""How what a repository wants stands with this user: trusted, new, or changed since it was trusted."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agentd.config import Config
from agentd.config.writing import printable
from agentd.domain.errors import NotTrusted
from agentd.project import Project
from agentd.trust.items import Item, Kind, wanted
from agentd.trust.store import Trusted, has_home, trusted

_LISTED = 6  # in an error
_WIDTH = 100


class Status(StrEnum):
    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True)
class Standing:
    """`was`: what was trusted last under this name."""

    item: Item
    status: Status
    was: Trusted | None


def standings(project: Project, config: Config, environ: Mapping[str, str]) -> tuple[Standing, ...]:
    known = trusted(project, environ)
    return tuple(_standing(item, known.get(item.key, ())) for item in wanted(project, config))


def _standing(item: Item, known: Sequence[Trusted]) -> Standing:
    if any(one.hash == item.hash for one in known):
        return Standing(item, Status.TRUSTED, None)
    return Standing(item, Status.CHANGED, known[-1]) if known else Standing(item, Status.NEW, None)


def untrusted(project: Project, config: Config, environ: Mapping[str, str]) -> tuple[Standing, ...]:
    return tuple(one for one in standings(project, config, environ) if one.status is not Status.TRUSTED)


def is_trusted(project: Project, item: Item, environ: Mapping[str, str]) -> bool:
    """This exact text, at the moment of its use. What needs no trust is not asked about."""
    return any(one.hash == item.hash for one in trusted(project, environ).get(item.key, ()))


def ensure(project: Project, config: Config, environ: Mapping[str, str]) -> None:
    """Everything that this repository wants run is trusted, or NotTrusted is raised."""
    if left := untrusted(project, config, environ):
        raise refusal(project, left, environ)


def refusal(project: Project, left: Sequence[Standing], environ: Mapping[str, str]) -> NotTrusted:
    """What is not trusted, in a few lines; made of a repository's texts, so nothing in it can act on a terminal."""
    lines = ["you have not trusted what this repository wants to run:", *map(_line, left[:_LISTED])]
    if len(left) > _LISTED:
        lines.append(f"  and {len(left) - _LISTED} more")
    if has_home(environ):
        return NotTrusted("\n".join(lines), _hint(project))
    lines.append("This process has no home folder, and trust is kept there.")
    return NotTrusted("\n".join(lines), "set HOME (or XDG_CONFIG_HOME), then run agentd trust")


def _hint(project: Project) -> str | None:
    """A work tree has a configuration of its own, so it is there that it is looked at."""
    if os.path.realpath(project.tree) == os.path.realpath(project.repo.top):
        return None
    return f"(cd {shlex.quote(str(project.root))} && agentd trust)"


def _line(one: Standing) -> str:
    line = f"  {one.item.key} ({one.status})"
    if one.item.kind is not Kind.PROMPT:
        line += f": {one.item.text}"
    line = printable(line.replace("\n", " ⏎ "))
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
