"""A cache of one row per change folder, in local state.

It makes listing thousands of changes fast, and it includes changes whose branch is not checked out.
Every row is checked against its STATE.yaml. If the file is lost, the next listing rebuilds it.
"""

import contextlib
import json
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentd.domain import Phase

if TYPE_CHECKING:
    from agentd.change.state import ChangeState

FORMAT = 5
_TICK = 50_000_000  # ns; a file modified this recently may change again with the same timestamp


class ChangeSummary(NamedTuple):
    """A change in one row."""

    phase: Phase
    round: int
    verdict: str | None
    high: int
    medium: int
    low: int
    cost: float
    updated_at: str
    description: str
    setup: str
    branch: str | None
    tree: str
    target: str | None
    running: bool
    problem: str | None
    change_id: str  # from STATE.yaml; the name of an archive folder has a date too
    touches: Sequence[str]  # requirements as named in `overlaps`; empty for a change that is not open
    raised: float | None  # budget in USD set by a person instead of the configured one


_learned: dict[str, dict[str, list[Any]]] = {}  # by index file: rows that a server read and did not write
_PHASE = {str(phase): phase for phase in Phase}
_LENGTH = 3 + len(ChangeSummary._fields)


class ChangeIndex:
    """Rows by folder path relative to the main worktree: `./agentd/changes/add-oauth`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._changed: dict[str, list[Any] | None] = {}
        self._seen: set[str] = set()
        self._was_complete, self._rows = _load(path)
        learned = _learned.get(path, {})
        self._rows.update({key: row for key, row in learned.items() if row[0] >= self._rows.get(key, row)[0]})
        self.complete = self._was_complete
        """Whether every change of the project has a row; looking up a single change does not set it."""

    def summary(self, key: str, folder: str) -> ChangeSummary | None:
        """Return the folder's row, refreshed if its STATE.yaml changed; None if it has no STATE.yaml."""
        try:
            status = os.stat(f"{folder}/STATE.yaml")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return _UNREADABLE._replace(problem=f"{folder}: {error.strerror}")
        self._seen.add(key)
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        row = self._rows.get(key)
        if row is not None and (row[0], row[1], row[2]) == stamp:
            return _summary(row)
        summary = summarize(folder)
        # an unreadable change is not cached: the cause may be outside STATE.yaml
        if summary.problem is None and time.time_ns() - status.st_mtime_ns > _TICK:
            self._rows[key] = self._changed[key] = [*stamp, *summary]
        return summary

    def remember(self, key: str, folder: str) -> None:
        """Store the row of a new change; the next lookup reads it again."""
        self._put(key, summarize(folder))

    def keep(self, key: str, text: str) -> ChangeSummary:
        """Store a change known only from the STATE.yaml committed on its branch."""
        return self._put(key, summarize_text(text))

    def _put(self, key: str, summary: ChangeSummary) -> ChangeSummary:
        self._rows[key] = self._changed[key] = [0, 0, 0, *summary]
        return summary

    def known(self) -> list[str]:
        return list(self._rows)

    def unseen(self) -> list[str]:
        """Return the known folders that were not looked up."""
        return [key for key in self._rows if key not in self._seen]

    def last(self, key: str) -> ChangeSummary:
        """Return the stored row of a folder, whether the folder exists or not."""
        return _summary(self._rows[key])

    def forget(self, key: str) -> None:
        if self._rows.pop(key, None) is not None:
            self._changed[key] = None

    def save(self) -> None:
        """Merge the changed rows into the file; other processes may have written it since."""
        if not self._changed and self.complete == self._was_complete:
            return
        from agentd.domain import AgentdError  # deferred: most listings write nothing
        from agentd.storage import is_read_only

        if is_read_only():
            _learned.setdefault(self._path, {}).update({key: row for key, row in self._changed.items() if row})
            return
        # it is only a cache: listing works even if local state is not writable
        with contextlib.suppress(AgentdError, OSError):
            self._merge()
        self._changed.clear()

    def _merge(self) -> None:
        from pathlib import Path  # deferred: see above

        from agentd.storage import files, write_lock

        with write_lock(Path(self._path + ".lock")):
            complete, rows = _load(self._path)
            rows.update({key: row for key, row in self._changed.items() if row is not None})
            for key in [key for key, row in self._changed.items() if row is None]:
                rows.pop(key, None)
            files.write(
                Path(self._path),
                json.dumps({"format": FORMAT, "complete": complete or self.complete, "rows": rows}).encode(),
            )


def _load(path: str) -> tuple[bool, dict[str, list[Any]]]:
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
        rows = data["rows"]
        if data["format"] == FORMAT and all(len(row) == _LENGTH and row[3] in _PHASE for row in rows.values()):
            return data["complete"] is True, rows
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # missing, damaged or of another version: read the folders again
    return False, {}


def _summary(row: list[Any]) -> ChangeSummary:
    return ChangeSummary._make((_PHASE[row[3]], *row[4:]))


def summarize(path: str) -> ChangeSummary:
    """Read the folder. If it cannot be read, the row has a `problem`, so that a listing continues."""
    from pathlib import Path  # deferred: importing YAML takes longer than a cached listing

    from agentd.change import folder as folders
    from agentd.change import overlaps
    from agentd.documents import count_open, current_findings
    from agentd.domain import AgentdError

    folder = Path(path)
    try:
        state = folders.read_state(folder)
        counts = count_open((*current_findings(folders.read_records(folder, state.phase.judged_by)), *state.findings))
        return _row(state, tuple(counts.values()), overlaps.read_touched(path) if state.phase.is_open else [])
    except AgentdError as error:
        return _UNREADABLE._replace(problem=error.message)


def summarize_text(text: str) -> ChangeSummary:
    """Summarize from STATE.yaml alone; what the change touches is unknown until its branch is checked out."""
    from agentd.change import state  # deferred: see above
    from agentd.domain import AgentdError

    try:
        return _row(state.parse_state(text), (0, 0, 0), [])
    except AgentdError as error:
        return _UNREADABLE._replace(problem=error.message)


_UNREADABLE = ChangeSummary(
    Phase.DRAFTING, 0, None, 0, 0, 0, 0.0, "", "", "in-place", None, ".", None, False, "unreadable", "", [], None
)


def _row(state: "ChangeState", counts: tuple[int, ...], touches: Sequence[str]) -> ChangeSummary:
    high, medium, low = counts
    return ChangeSummary(
        state.phase,
        state.round,
        state.verdict,
        high,
        medium,
        low,
        state.total_cost,
        state.updated_at,
        state.description,
        str(state.git.setup),
        state.git.branch,
        state.git.tree,
        state.git.target,
        state.run is not None,
        None,
        state.change_id,
        touches,
        state.budget.per_change if state.budget else None,
    )
