"""How the last run of a change ended: its result, kept in the local room for whoever asks later."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentd.change.folder import Change
from agentd.storage import files


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """`pid` is the process that ran; `updated_at` is STATE.yaml's, to tell whether anything happened since."""

    pid: int
    updated_at: str
    result: dict[str, Any]


def save_outcome(change: Change, pid: int, result: dict[str, Any]) -> None:
    """Told to the person already: where it cannot be kept, nothing is lost."""
    data = {"pid": pid, "updated_at": change.read().updated_at, "result": result}
    with suppress(OSError, files.CannotWrite):
        files.write(_file(change), json.dumps(data, ensure_ascii=False).encode())


def last_outcome(change: Change) -> RunOutcome | None:
    return read_outcome(_file(change))


def read_outcome(path: Path) -> RunOutcome | None:
    """None: there is none, or it says nothing."""
    try:
        data = json.loads(path.read_bytes())
        return RunOutcome(int(data["pid"]), str(data["updated_at"]), dict(data["result"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _file(change: Change) -> Path:
    return Path(change.project.in_room("outcomes", f"{change.id}.json"))
