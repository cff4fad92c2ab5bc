"""What this user has trusted, in `trust.json` next to the user's config.toml: by repository, project and item.

Each item keeps the last few trusted hashes, so switching between branches with different versions does not ask again.
"""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentd.domain import NotTrusted, SetupError, clock, printable
from agentd.project.config.layers import user_config_file
from agentd.project.config.settings import Config
from agentd.project.layout import Project
from agentd.project.trust.items import TrustItem, TrustKind, trust_items
from agentd.storage import files, write_lock

_VERSION = 1
_KEPT = 20  # hashes per item
_SHORT = 4000  # characters; of longer texts only the hash is stored

_Items = dict[str, tuple["TrustedHash", ...]]
_Book = dict[str, dict[str, _Items]]  # git directory -> the project's folder in it -> item


class NoHomeFolder(SetupError):
    hint = "set HOME (or XDG_CONFIG_HOME), then run agentd trust"


class InvalidTrustFile(SetupError):
    hint = "mend that file, or remove it to begin anew with agentd trust"


@dataclass(frozen=True)
class TrustedHash:
    """A trusted hash, when it was trusted, and the text if it was short."""

    hash: str
    at: str
    text: str | None


def has_home(environ: Mapping[str, str]) -> bool:
    return user_config_file(environ) is not None


def read_trusted(project: Project, environ: Mapping[str, str]) -> Mapping[str, tuple[TrustedHash, ...]]:
    """Return the trusted hashes by item, newest last. Without a home folder, nothing is trusted."""
    if not has_home(environ):
        return {}
    folder, prefix = _place(project)
    return _read(_file(environ)).get(folder, {}).get(prefix, {})


def grant_trust(project: Project, items: Iterable[TrustItem], environ: Mapping[str, str]) -> None:
    """Trust exactly these items, as they were shown; files are not read again."""
    now = clock.now()

    def add(kept: _Items) -> None:
        for item in items:
            text = item.text if len(item.text) <= _SHORT else None
            others = [one for one in kept.get(item.key, ()) if one.hash != item.hash]
            kept[item.key] = (*others, TrustedHash(item.hash, now, text))[-_KEPT:]

    _change(project, environ, add)


def revoke_trust(project: Project, environ: Mapping[str, str]) -> int:
    """Revoke all trust in this project, and return how many items were trusted."""
    if not read_trusted(project, environ):
        return 0
    counts: list[int] = []

    def empty(kept: _Items) -> None:
        counts.append(len(kept))
        kept.clear()

    _change(project, environ, empty)
    return sum(counts)


def _change(project: Project, environ: Mapping[str, str], step: Callable[[_Items], None]) -> None:
    """Read, change and write the file under a lock. An unreadable file is left unchanged."""
    file = _file(environ)
    folder, prefix = _place(project)
    with write_lock(file.with_name("trust.lock")):
        book = _read(file)
        step(book.setdefault(folder, {}).setdefault(prefix, {}))
        files.remove_leftovers(file)
        files.write(file, _text(book).encode(), mode=0o600)


def _place(project: Project) -> tuple[str, str]:
    return os.path.realpath(project.repo.common), project.prefix


def _file(environ: Mapping[str, str]) -> Path:
    config = user_config_file(environ)
    if not config:
        raise NoHomeFolder("this process has no home folder, so trust cannot be kept")
    # Follow a link instead of replacing it: some people keep such files elsewhere.
    return Path(os.path.realpath(config.with_name("trust.json")))


def _read(file: Path) -> _Book:
    try:
        data = json.loads(files.read(file))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise InvalidTrustFile(f"{file} is not JSON, so nothing can be said about what is trusted") from None
    try:
        if data["version"] != _VERSION:
            raise InvalidTrustFile(f"{file} was written by another version of agentd", "update agentd")
        return {
            folder: {prefix: _items(items) for prefix, items in projects.items()}
            for folder, projects in data["repositories"].items()
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InvalidTrustFile(f"{file} does not have the form of a trust file") from None


def _items(data: Mapping[str, Any]) -> _Items:
    return {key: tuple(_trusted(**one) for one in entries) for key, entries in data.items()}


def _trusted(*, hash: str, at: str, text: str | None = None) -> TrustedHash:  # noqa: A002
    if not (isinstance(hash, str) and isinstance(at, str) and isinstance(text, str | None)):
        raise TypeError
    return TrustedHash(hash, at, text)


def _text(book: _Book) -> str:
    kept = {
        folder: {
            prefix: {key: [asdict(one) for one in entries] for key, entries in items.items()}
            for prefix, items in projects.items()
            if items
        }
        for folder, projects in book.items()
    }
    data = {"version": _VERSION, "repositories": {folder: projects for folder, projects in kept.items() if projects}}
    return json.dumps(data, indent=2) + "\n"


_LISTED = 6  # items in an error
_WIDTH = 100


class TrustStatus(StrEnum):
    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True)
class TrustState:
    """The trust in one item. `was` is the version of it that was trusted last, if it has changed."""

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
    """Return whether this exact text is trusted now. Do not call it for items that need no trust."""
    return any(one.hash == item.hash for one in read_trusted(project, environ).get(item.key, ()))


def ensure_trusted(project: Project, config: Config, environ: Mapping[str, str]) -> None:
    """Raise NotTrusted unless everything that this repository wants to run is trusted."""
    if left := untrusted_items(project, config, environ):
        raise trust_refusal(project, left, environ)


def trust_refusal(project: Project, left: Sequence[TrustState], environ: Mapping[str, str]) -> NotTrusted:
    """Return the error listing what is not trusted. Repository texts are escaped, so they cannot control a terminal."""
    lines = ["you have not trusted what this repository wants to run:", *map(_line, left[:_LISTED])]
    if len(left) > _LISTED:
        lines.append(f"  and {len(left) - _LISTED} more")
    if has_home(environ):
        return NotTrusted("\n".join(lines), _hint(project))
    lines.append("This process has no home folder, and trust is kept there.")
    return NotTrusted("\n".join(lines), "set HOME (or XDG_CONFIG_HOME), then run agentd trust")


def _hint(project: Project) -> str | None:
    """Return the command for the project's worktree, which has its own configuration; None if it is the current one."""
    if os.path.realpath(project.tree) == os.path.realpath(project.repo.top):
        return None
    return f"(cd {shlex.quote(str(project.root))} && agentd trust)"


def _line(one: TrustState) -> str:
    line = f"  {one.item.key} ({one.status})"
    if one.item.kind is not TrustKind.PROMPT:
        line += f": {one.item.text}"
    line = printable(line.replace("\n", " ⏎ "))
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
