"""agentd's MCP server for a person's own sessions: an entry in each CLI's project file, and its way back."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agentd.agents.registration import json_entry, toml_entry
from agentd.agents.registration.server_entry import ENTRY, NAME, find_insertion, remove_at
from agentd.domain import Refusal, SetupError
from agentd.project import git
from agentd.storage import files


class ClientFile(NamedTuple):
    """A project file that a CLI reads its servers from, and how text gets and loses our entry there."""

    name: str
    with_entry: Callable[[str], str]
    without_entry: Callable[[str, str], str]


KINDS = (
    ClientFile(
        ".mcp.json",
        partial(json_entry.add_json_entry, entry={"type": "stdio", **ENTRY}),
        json_entry.remove_json_entry,
    ),
    ClientFile(
        ".gemini/settings.json",
        partial(json_entry.add_json_entry, entry=ENTRY),
        json_entry.remove_json_entry,
    ),
    ClientFile(".codex/config.toml", toml_entry.add_toml_entry, toml_entry.remove_toml_entry),
)


class RegistrationResult(NamedTuple):
    """What became of one file: written or kept; removed (the entry), deleted (the file) or absent; refused, and why."""

    word: str
    why: str = ""
    entry: str = ""  # for a file that did not take it: what a person can add by hand


class RegistrationRecord(NamedTuple):
    """What was put where. It holds the inserted piece only: the file may have secrets, which are not ours to copy."""

    created: bool  # the file was not there
    folder: bool  # nor was its folder
    at: int
    piece: str
    after: str  # digest of the file as we left it


def register_server(repo: git.Repository, root: Path) -> dict[str, RegistrationResult]:
    """Put our entry into each file; a file that cannot take it is refused and the others are done."""
    answers = _each(repo, root, _add)
    samples = {kind.name: kind.with_entry("") for kind in KINDS}
    return {name: one._replace(entry=samples[name] if one.why else "") for name, one in answers.items()}


def unregister_server(repo: git.Repository, root: Path) -> dict[str, RegistrationResult]:
    """Take our entry out again. Untouched since, a file gets its former bytes and what we made is gone."""
    return _each(repo, root, _take_back)


def _each(
    repo: git.Repository, root: Path, act: Callable[[ClientFile, Path, Path], str]
) -> dict[str, RegistrationResult]:
    answers = {}
    for kind in KINDS:
        try:
            answers[kind.name] = RegistrationResult(act(kind, root, _record_file(repo, root, kind)))
        except (Refusal, SetupError) as error:
            answers[kind.name] = RegistrationResult("refused", error.message)
        except OSError as error:
            answers[kind.name] = RegistrationResult("refused", error.strerror or str(error))
    return answers


def _add(kind: ClientFile, root: Path, record_file: Path) -> str:
    path = root / kind.name
    _check_real(root, path)
    data = _read(path)
    old = _text(data or b"")
    new = kind.with_entry(old)
    if new == old:
        return "kept"
    put = find_insertion(old, new)
    assert put, "with_entry changes one place"
    record = RegistrationRecord(data is None, not path.parent.exists(), *put, files.hash_bytes(new.encode()))
    # first the record: without the entry it does no harm, while an entry without it is hard to take out exactly
    files.write(record_file, json.dumps({"file": kind.name, **record._asdict()}, indent=2).encode())
    files.write(path, new.encode())
    return "written"


def _take_back(kind: ClientFile, root: Path, record_file: Path) -> str:
    path = root / kind.name
    record = _load(record_file)
    data = _read(path)
    word = "absent"
    if data is not None and NAME.encode() in data:
        old = _text(data)
        rest = _former(kind, old, record, data)
        if rest != old:
            _check_real(root, path)
            word = _put_back(path, rest, record)
    # without a record: an empty folder is nothing that git would keep either
    if path.parent != root and (record.folder if record else word == "deleted"):
        _remove_if_empty(path.parent)
    _forget(record_file)
    return word


def _former(kind: ClientFile, text: str, record: RegistrationRecord | None, data: bytes) -> str:
    if record and record.after == files.hash_bytes(data):
        return remove_at(text, record.at, record.piece)
    if not record and text == kind.with_entry(""):
        return ""
    return kind.without_entry(text, record.piece if record else "")


def _put_back(path: Path, rest: str, record: RegistrationRecord | None) -> str:
    """Write what is left, or delete the file if that is nothing and nobody else made it."""
    nothing_left = "".join(rest.split()) in ("", "{}") if record else not rest
    if not nothing_left or (record and not record.created):
        files.write(path, rest.encode())
        return "removed"
    path.unlink()
    files.sync_folder(path.parent)
    return "deleted"


# the files


def _check_real(root: Path, path: Path) -> None:
    """A link may lead out of the project, and a whole write would replace it by a file: neither is wanted."""
    for one in (path.parent, path):
        if one != root and one.is_symlink():
            raise Refusal(f"{one.relative_to(root)} is a symbolic link, and agentd does not write through one")
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
        raise Refusal("it is not UTF-8 text") from None


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it holds something, is gone, or is a link
        folder.rmdir()


# the records, in the local room that all work trees share


def _record_file(repo: git.Repository, root: Path, kind: ClientFile) -> Path:
    place = os.path.relpath(root, repo.main)
    key = files.hash_bytes(os.fsencode(place)).removeprefix("sha256:")[:16]
    return Path(repo.common, "agentd", "registered", key, quote(kind.name, safe="") + ".json")


def _load(path: Path) -> RegistrationRecord | None:
    """None if it is lost or cannot be read: then the entry is taken out as well as the text tells."""
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
