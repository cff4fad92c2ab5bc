"""Backups of the plan's documents before a call, kept in the run's folder.

After an interrupted step, what its agent wrote is restored; what a person wrote meanwhile stays.
"""

import base64
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from agentd.change import Change, plan_files
from agentd.domain import StepStatus
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_scope import WRITTEN_FILE
from agentd.guard import plan_write_rule
from agentd.storage import files

BEFORE = "before.json"


def back_up_documents(change: Change, folder: Path, work: CallRequest, attempt: int) -> None:
    """Back up the documents before a planner call."""
    (folder / WRITTEN_FILE).unlink(missing_ok=True)
    (folder / BEFORE).unlink(missing_ok=True)
    if work.stage is Stage.PLAN:
        texts = {name: base64.b64encode(data).decode() for name, data in _documents(change)}
        files.write(folder / BEFORE, json.dumps({"step": [*work.key, attempt], "texts": texts}).encode())


def restore_documents(change: Change, folder: Path, token: str) -> None:
    """Restore the documents after a failed call, including one of a killed run."""
    kept = _read(folder)
    if kept is None:
        return
    key, before = kept
    if any(step.key == key and step.status is StepStatus.DONE for step in change.read().steps):
        return  # killed just after the step was finished
    is_of_plan = plan_write_rule(change.id)
    with change.writing(token):
        for name, digest in written_hashes(folder):
            path = change.folder / name
            if not is_of_plan(f"agentd/changes/{change.id}/{name}") or not path.is_file():
                continue
            if files.hash_bytes(path.read_bytes()) != digest:
                continue  # edited since
            if name in before:
                files.write(path, before[name])
            else:
                path.unlink()
        for name, data in before.items():
            if is_of_plan(f"agentd/changes/{change.id}/{name}") and not os.path.lexists(change.folder / name):
                files.write(change.folder / name, data)  # the tools delete nothing, so the agent deleted it
    (folder / BEFORE).unlink(missing_ok=True)


def written_hashes(folder: Path) -> list[tuple[str, str]]:
    """Return name and hash of every text the agent wrote through its tools in this call."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return [
            (str(name), digest) for name, digest in map(json.loads, (folder / WRITTEN_FILE).read_text().splitlines())
        ]
    return []


def record_written(folder: Path, name: str, data: bytes) -> None:
    """Record a text that agentd derived from the agent's as the agent's."""
    with open(folder / WRITTEN_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps([name, files.hash_bytes(data)]) + "\n")


def was_changed(change: Change, folder: Path, name: str) -> bool:
    """Whether the document exists and was written or changed since the call began."""
    path = change.folder / name
    if not path.is_file():
        return False
    kept = _read(folder)
    is_written = any(name == one for one, _ in written_hashes(folder))
    return is_written or kept is None or kept[1].get(name) != path.read_bytes()


def _documents(change: Change) -> Iterator[tuple[str, bytes]]:
    for path in plan_files(change.folder):
        yield path.relative_to(change.folder).as_posix(), files.read(path)


def _read(folder: Path) -> tuple[tuple[str, int, int, int], dict[str, bytes]] | None:
    """Return the step's key and the texts before it; None if there is no valid backup."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        data = json.loads((folder / BEFORE).read_bytes())
        name, round_, number, attempt = data["step"]
        texts = {name: base64.b64decode(text) for name, text in data["texts"].items()}
        return (name, round_, number, attempt), texts
    return None
