"""Decisions for a run that waits for one, in local state. The first decision counts; later ones are refused.

`asked.json` is the open question. Each decision is a file next to it, and each decision's reply is another one.
"""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentd.change.folder import Change
from agentd.storage import files

_ASKED = "asked.json"
_REPLY = ".reply"


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to a question. `hashes` are those of the documents the person saw, by name."""

    question: str
    answer: str
    reason: str
    by: str
    hashes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class InboxReply:
    taken: bool
    why: str


class Inbox:
    def __init__(self, change: Change) -> None:
        self._folder = Path(change.project.local_state_path("inbox", change.id))

    # ---- for the waiting run

    def open(self, question: Mapping[str, Any]) -> None:
        """Ask a question. Decisions already in the inbox belong to an earlier one and are refused."""
        self._refuse("this question has already been answered")
        files.write(self._folder / _ASKED, json.dumps(question, ensure_ascii=False).encode())

    def take(self) -> tuple[str, Decision] | None:
        """Return the name and content of the oldest decision without a reply."""
        for name in self._waiting():
            if decision := self._read(name):
                return name, decision
            self.reply(name, False, "this is not a valid decision")
        return None

    def reply(self, name: str, taken: bool, why: str) -> None:
        files.write(self._folder / f"{name}{_REPLY}", json.dumps({"taken": taken, "why": why}).encode())

    def close(self, why: str) -> None:
        """Close the question, and refuse decisions that came too late."""
        (self._folder / _ASKED).unlink(missing_ok=True)
        self._refuse(why)

    # ---- for the person or tool that decides

    def asked(self) -> dict[str, Any] | None:
        data = _load(self._folder / _ASKED)
        return data if isinstance(data, dict) else None

    def post(self, decision: Decision) -> str:
        """Send a decision, and return its name for `reply_to`."""
        name = f"{time.time_ns()}-{os.urandom(4).hex()}"
        files.write(self._folder / f"{name}.json", json.dumps(asdict(decision), ensure_ascii=False).encode())
        return name

    def has_reply(self, name: str) -> bool:
        return (self._folder / f"{name}{_REPLY}").is_file()

    def reply_to(self, name: str) -> InboxReply | None:
        """Return the reply and delete it, or return None if there is none yet."""
        path = self._folder / f"{name}{_REPLY}"
        data = _load(path)
        if not isinstance(data, dict):
            return None
        for file in (path, self._folder / f"{name}.json"):
            file.unlink(missing_ok=True)
        return InboxReply(bool(data.get("taken")), str(data.get("why", "")))

    def withdraw(self, name: str) -> None:
        (self._folder / f"{name}.json").unlink(missing_ok=True)

    def _waiting(self) -> list[str]:
        names = set(os.listdir(self._folder)) if self._folder.is_dir() else set()
        waiting = [name.removesuffix(".json") for name in names if name.endswith(".json") and name != _ASKED]
        return sorted(name for name in waiting if f"{name}{_REPLY}" not in names and not name.startswith("."))

    def _refuse(self, why: str) -> None:
        for name in self._waiting():
            self.reply(name, False, why)

    def _read(self, name: str) -> Decision | None:
        data = _load(self._folder / f"{name}.json")
        with contextlib.suppress(TypeError, KeyError, AttributeError):
            texts = {key: str(data[key]) for key in ("question", "answer", "reason", "by")}
            return Decision(**texts, hashes={str(key): str(value) for key, value in data["hashes"].items()})
        return None


def _load(path: Path) -> Any:
    """Return the parsed JSON, or None if it is invalid or not a file (opening a pipe would block)."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return json.loads(path.read_bytes()) if path.is_file() else None
    return None
