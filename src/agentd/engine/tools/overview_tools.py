"""The changes of a project, for a person's own session."""

from pathlib import Path
from typing import Any

from agentd.change import (
    ChangeLocator,
    LocatedChange,
    OverlapIndex,
    build_overlap_index,
    change_row,
    read_records,
    readable_documents,
    refresh_touched,
)
from agentd.documents import InvalidDocument, current_findings, decode_text, parse_tasks
from agentd.domain import AgentdError, TaskStatus
from agentd.engine.tools.tool_scope import ToolScope

MANY = 200
_ROW = ("change_id", "phase", "round", "verdict", "open", "cost", "running", "updated_at", "next", "overlaps")


def list_changes(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    places = ChangeLocator(binding.project)
    found = places.open() + (places.archived() if arguments.get("all") else [])
    found.sort(key=lambda one: one.summary.updated_at, reverse=True)
    among = build_overlap_index(found)
    return {"changes": [_row(binding, one, among) for one in found[:MANY]]}


def get_change(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    places = ChangeLocator(binding.project)
    found = refresh_touched(places.find(change.id))
    row = change_row(binding.project, found, build_overlap_index(places.open() if found.summary.touches else ()))
    folder = Path(found.folder or "")
    return {
        **{name: row[name] for name in (*_ROW, "description", "git")},
        "files": [f"agentd/changes/{change.id}/{name}" for name in readable_documents(folder)],
        "findings": _findings(folder),
        "tasks": _tasks(folder),
    }


def _row(binding: ToolScope, found: LocatedChange, among: OverlapIndex) -> dict[str, Any]:
    row = change_row(binding.project, found, among)
    return {name: row[name] for name in _ROW}


def _findings(folder: Path) -> list[dict[str, Any]]:
    try:
        found = current_findings(read_records(folder))
    except AgentdError:
        return []  # status tells about a broken record
    return [
        {
            "id": one.id,
            "severity": str(one.severity),
            "title": one.title,
            "where": one.where,
            "requirement": one.requirement,
            "state": str(one.state),
        }
        for one in found
        if one.state.is_open
    ]


def _tasks(folder: Path) -> dict[str, int]:
    path = folder / "tasks.md"
    try:
        found = parse_tasks(decode_text(path.read_bytes(), "tasks.md")).tasks if path.is_file() else ()
    except (OSError, InvalidDocument):
        found = ()  # validation tells about it
    done, waived = (sum(one.status is status for one in found) for status in (TaskStatus.DONE, TaskStatus.WAIVED))
    return {"done": done, "waived": waived, "total": len(found)}
