"""Differences that are not violations because of their content.

In a file with a check definition, only the defining section counts. In `.git/config`, only settings that can make git
run or redirect something count: `git push -u` is legitimate. In trust.json, only this repository's part counts: the
user may trust another repository during the call.
"""

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from typing import Any

from agentd.guard import scan
from agentd.guard.check_definitions import defining_section
from agentd.guard.protected_paths import GIT, TREE, USER, ProtectedPaths
from agentd.guard.snapshot import FileDifference, Snapshot
from agentd.project import git

TRUST = "trust.json"

_SAFE_SECTIONS = {"branch", "user", "color", "gui", "advice", "maintenance", "push", "pull", "rerere", "column"}
_SAFE_KEYS = {"init.defaultbranch", "fetch.prune", "fetch.prunetags", "gc.auto", "lfs.repositoryformatversion"}
_UNSAFE_KEYS = {"push.pushoption", "push.gpgsign", "push.recursesubmodules", "pull.octopus", "pull.twohead"}
_UNSAFE_NAMES = {"mergeoptions"}
# settings allowed for a remote that existed before the call, and for a new one
_REMOTE_OLD = {"fetch", "prune", "prunetags", "tagopt", "skipdefaultupdate", "skipfetchall"}
_REMOTE_NEW = {*_REMOTE_OLD, "url", "pushurl", "mirror"}
_HELPER = re.compile(r"[\w+.-]*::|-")  # `ext::command`: git runs a program for such a URL

_Pair = tuple[str, str]
_Both = tuple[bytes | None, bytes | None]  # before and now; None: the file did not exist


def is_allowed(mirror: Snapshot, root: str, one: FileDifference, what: ProtectedPaths, common: str) -> bool:
    """Return whether a difference is harmless. `common` is this repository's git directory."""
    compare = _comparison(one, what, common)
    if compare is None or one.is_folder or one.was_folder or (one.after and not stat.S_ISREG(one.after.mode)):
        return False
    both = _both(mirror, root, one)
    return both is not None and compare(*both)


def repaired_trust(mirror: Snapshot, root: str, one: FileDifference, common: str) -> bytes | None:
    """Return the current trust.json with this repository's part as before the call, or None if that is not possible."""
    if not _is_trust(one) or not one.before or not one.after or one.before.seen.mode != one.after.mode:
        return None
    both = _both(mirror, root, one)
    before, now = map(_trust, both) if both else (None, None)
    if before is None or now is None or before["version"] != now["version"]:
        return None
    others = {folder: part for folder, part in now["repositories"].items() if folder != common}
    part = _part(before, common)
    whole = {**now, "repositories": others | ({} if part is None else {common: part})}
    return json.dumps(whole, indent=2).encode() + b"\n"


def _comparison(
    one: FileDifference, what: ProtectedPaths, common: str
) -> Callable[[bytes | None, bytes | None], bool] | None:
    """Return how to compare the two versions, or None if every difference counts."""
    if one.area == TREE and (name := what.sections.get(one.path)):
        return lambda before, now: defining_section(name, one.path, before) == defining_section(name, one.path, now)
    if one.after is None or (one.before and one.before.seen.mode != one.after.mode):
        return None
    if one.area == GIT and os.path.basename(one.path) in ("config", "config.worktree"):
        return _same_settings
    if _is_trust(one):
        return lambda before, now: _same_trust(before, now, common)
    return None


def _both(mirror: Snapshot, root: str, one: FileDifference) -> _Both | None:
    """Return the content before and now, or None if either cannot be read."""
    try:
        before = b"".join(mirror.pieces(one.before)) if one.before else None
        return before, scan.read_path(root, one.path) if one.after else None
    except OSError:
        return None


def _is_trust(one: FileDifference) -> bool:
    return one.area == USER and os.path.basename(one.path) == TRUST


def _same_trust(before: bytes | None, now: bytes | None, common: str) -> bool:
    old, new = _trust(before), _trust(now)
    return old is not None and new is not None and _part(old, common) == _part(new, common)


def _trust(data: bytes | None) -> dict[str, Any] | None:
    """Parse a trust file, or return None if it is malformed. A missing file trusts nothing."""
    if data is None:
        return {"version": 1, "repositories": {}}
    try:
        found = json.loads(data)
        is_good = all(isinstance(part, dict) for part in found["repositories"].values()) and "version" in found
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return found if is_good else None


def _part(trust: dict[str, Any], common: str) -> object:
    return trust["repositories"].get(common) or None


def _same_settings(before: bytes | None, now: bytes | None) -> bool:
    old, new = _settings(before or b""), _settings(now or b"")
    if old is None or new is None:
        return False
    there = {_owner(key) for key, _ in old}
    return _counting(old, there) == _counting(new, there)


def _settings(data: bytes) -> list[_Pair] | None:
    """Return the settings as git parses them, without following includes, or None if git cannot parse them."""
    command = ["git", "config", "--file", "-", "--no-includes", "--list", "-z"]
    done = subprocess.run(command, input=data, capture_output=True, env=git.environment(), cwd="/", check=False)
    if done.returncode:
        return None
    rows = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [(key, value) for key, _, value in (row.partition("\n") for row in rows if row)]


def _counting(pairs: list[_Pair], there: set[str]) -> list[_Pair]:
    """Return the settings that can make git run or redirect something, in file order."""
    return [(key, value) for key, value in pairs if not _is_safe(key, value, there)]


def _is_safe(key: str, value: str, there: set[str]) -> bool:
    """Return whether a setting is harmless.

    `there` are the remotes and branches that had settings before; where those lead must not change.
    """
    owner, name = _owner(key), key.rpartition(".")[2]
    kind = key.partition(".")[0]
    if kind == "remote":
        known = _REMOTE_OLD if owner in there else _REMOTE_NEW
        return name in known and not ("url" in name and _HELPER.match(value))
    if kind == "branch" and name in ("remote", "pushremote"):
        return value == "." or f"remote.{value}" in there or (owner not in there and not re.search(r"[:/]", value))
    return key in _SAFE_KEYS or (kind in _SAFE_SECTIONS and name not in _UNSAFE_NAMES and key not in _UNSAFE_KEYS)


def _owner(key: str) -> str:
    """Return `remote.origin` for `remote.origin.url`."""
    return key.rpartition(".")[0]
