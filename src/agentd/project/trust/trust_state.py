"""How what a repository wants stands with this user: trusted, new, or changed since it was trusted."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agentd.domain import NotTrusted
from agentd.project.config.display import printable
from agentd.project.config.settings import Config
from agentd.project.layout import Project
from agentd.project.trust.items import TrustItem, TrustKind, trust_items
from agentd.project.trust.store import TrustedHash, has_home, read_trusted

_LISTED = 6  # in an error
_WIDTH = 100


class TrustStatus(StrEnum):
    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True)
class TrustState:
    """`was`: what was trusted last under this name."""

    item: TrustItem
    status: TrustStatus
    was: TrustedHash | None


def trust_states(project: Project, config: Config, environ: Mapping[str, str]) -> tuple[TrustState, ...]:
    known = read_trusted(project, environ)
    return tuple(_standing(item, known.get(item.key, ())) for item in trust_items(project, config))


def _standing(item: TrustItem, known: Sequence[TrustedHash]) -> TrustState:
    if any(one.hash == item.hash for one in known):
        return TrustState(item, TrustStatus.TRUSTED, None)
    return TrustState(item, TrustStatus.CHANGED, known[-1]) if known else TrustState(item, TrustStatus.NEW, None)


def untrusted_items(project: Project, config: Config, environ: Mapping[str, str]) -> tuple[TrustState, ...]:
    return tuple(one for one in trust_states(project, config, environ) if one.status is not TrustStatus.TRUSTED)


def is_trusted(project: Project, item: TrustItem, environ: Mapping[str, str]) -> bool:
    """This exact text, at the moment of its use. What needs no trust is not asked about."""
    return any(one.hash == item.hash for one in read_trusted(project, environ).get(item.key, ()))


def ensure_trusted(project: Project, config: Config, environ: Mapping[str, str]) -> None:
    """Everything that this repository wants run is trusted, or NotTrusted is raised."""
    if left := untrusted_items(project, config, environ):
        raise trust_refusal(project, left, environ)


def trust_refusal(project: Project, left: Sequence[TrustState], environ: Mapping[str, str]) -> NotTrusted:
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


def _line(one: TrustState) -> str:
    line = f"  {one.item.key} ({one.status})"
    if one.item.kind is not TrustKind.PROMPT:
        line += f": {one.item.text}"
    line = printable(line.replace("\n", " ⏎ "))
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
