"""Register agentd's MCP server for a person's own sessions, in each CLI's project file, and undo it."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agentd.agents import json_entry, toml_entry
from agentd.agents.protocol import ServerFile
from agentd.agents.registry import CLIS
from agentd.agents.server_entry import ENTRY, NAME, find_insertion, remove_at
from agentd.domain import Refusal, SetupError
from agentd.storage import files


class RegistrationResult(NamedTuple):
    """The result for a file: written, kept, removed (the entry), deleted (the file), absent, or refused and why."""

    word: str
    why: str = ""
    entry: str = ""  # if refused: the entry that a person can add by hand


class RegistrationRecord(NamedTuple):
    """What was inserted where. Only the inserted text is stored, because the rest of the file may contain secrets."""

    created: bool  # the file did not exist
    folder: bool  # nor did its folder
    at: int
    piece: str
    after: str  # hash of the file as written


def register_server(repo_main: str, repo_common: str, root: Path) -> dict[str, RegistrationResult]:
    """Add agentd's entry to each CLI's file. If a file cannot be edited, refuse it and continue with the others."""
    results = _each(repo_main, repo_common, root, _add_entry)
    samples = {file.path: _with_entry(file, "") for file in _server_files()}
    return {path: result._replace(entry=samples[path] if result.why else "") for path, result in results.items()}


def unregister_server(repo_main: str, repo_common: str, root: Path) -> dict[str, RegistrationResult]:
    """Remove agentd's entry. Restore unchanged files to their former bytes, and delete files that agentd created."""
    return _each(repo_main, repo_common, root, _remove_entry)


def _server_files() -> list[ServerFile]:
    return [cli.server_file for cli in CLIS.values() if cli.server_file]


def _with_entry(file: ServerFile, text: str) -> str:
    if file.format == "toml":
        return toml_entry.add_toml_entry(text)
    return json_entry.add_json_entry(text, {**file.extra, **ENTRY})


def _each(
    repo_main: str, repo_common: str, root: Path, act: Callable[[ServerFile, Path, Path], str]
) -> dict[str, RegistrationResult]:
    # The records are in local state, which all worktrees share.
    key = files.hash_bytes(os.fsencode(os.path.relpath(root, repo_main))).removeprefix("sha256:")[:16]
    records = Path(repo_common, "agentd", "registered", key)
    results = {}
    for file in _server_files():
        try:
            word = act(file, root, records / (quote(file.path, safe="") + ".json"))
            results[file.path] = RegistrationResult(word)
        except (Refusal, SetupError) as error:
            results[file.path] = RegistrationResult("refused", error.message)
        except OSError as error:
            results[file.path] = RegistrationResult("refused", error.strerror or str(error))
    return results


def _add_entry(file: ServerFile, root: Path, record_file: Path) -> str:
    path = root / file.path
    _check_no_links(root, path)
    data = _read(path)
    old = _text(data or b"")
    new = _with_entry(file, old)
    if new == old:
        return "kept"
    put = find_insertion(old, new)
    assert put, "an entry changes one place"
    record = RegistrationRecord(data is None, not path.parent.exists(), *put, files.hash_bytes(new.encode()))
    # Write the record first: it does no harm without the entry, but an entry without a record is hard to remove
    # exactly.
    files.write(record_file, json.dumps({"file": file.path, **record._asdict()}, indent=2).encode())
    files.write(path, new.encode())
    return "written"


def _remove_entry(file: ServerFile, root: Path, record_file: Path) -> str:
    path = root / file.path
    record = _load(record_file)
    data = _read(path)
    word = "absent"
    if data is not None and NAME.encode() in data:
        old = _text(data)
        rest = _without_entry(file, old, record, data)
        if rest != old:
            _check_no_links(root, path)
            word = _restore(path, rest, record)
    # Without a record, remove the folder only if it is empty now; git would not keep it either.
    if path.parent != root and (record.folder if record else word == "deleted"):
        _remove_if_empty(path.parent)
    _forget(record_file)
    return word


def _without_entry(file: ServerFile, text: str, record: RegistrationRecord | None, data: bytes) -> str:
    if record and record.after == files.hash_bytes(data):
        return remove_at(text, record.at, record.piece)
    if not record and text == _with_entry(file, ""):
        return ""
    remove = toml_entry.remove_toml_entry if file.format == "toml" else json_entry.remove_json_entry
    return remove(text, record.piece if record else "")


def _restore(path: Path, rest: str, record: RegistrationRecord | None) -> str:
    """Write the rest, or delete the file if it is empty and agentd created it."""
    nothing_left = "".join(rest.split()) in ("", "{}") if record else not rest
    if not nothing_left or (record and not record.created):
        files.write(path, rest.encode())
        return "removed"
    path.unlink()
    files.sync_folder(path.parent)
    return "deleted"


# ---- the files


def _check_no_links(root: Path, path: Path) -> None:
    """Refuse links. They may lead outside the project, and an atomic write would replace a link with a file."""
    for part in (path.parent, path):
        if part != root and part.is_symlink():
            raise Refusal(f"{part.relative_to(root)} is a symbolic link, and agentd does not write through links")
    if path.parent.exists() and not path.parent.is_dir():
        raise Refusal(f"{path.parent.relative_to(root)} is not a folder")
    if path.exists() and not path.is_file():
        raise Refusal("it is not a file")


def _read(path: Path) -> bytes | None:
    return files.read(path) if path.is_file() else None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refusal("it is not valid UTF-8") from None


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not empty, missing, or a link
        folder.rmdir()


def _load(path: Path) -> RegistrationRecord | None:
    """Return the record, or None if it is missing or invalid; the entry is then searched for in the text."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    fields = RegistrationRecord.__annotations__
    if not isinstance(data, Mapping) or any(type(data.get(name)) is not kind for name, kind in fields.items()):
        return None
    return RegistrationRecord(**{name: data[name] for name in fields})


def _forget(path: Path) -> None:
    path.unlink(missing_ok=True)
    _remove_if_empty(path.parent)
