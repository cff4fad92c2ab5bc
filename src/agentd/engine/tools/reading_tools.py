"""Tools that read the project: files, folders, validation results, and what an implementation changed."""

import os
import re
from pathlib import Path
from typing import Any

from agentd.change import (
    Change,
    ChangeLocator,
    LocatedChange,
    OverlapIndex,
    build_overlap_index,
    change_row,
    read_records,
    readable_documents,
    refresh_touched,
)
from agentd.documents import (
    PROPOSAL_FILE,
    InvalidDocument,
    current_findings,
    decode_text,
    parse_tasks,
    text_before_blocks,
)
from agentd.domain import AgentdError, Flag, TaskStatus
from agentd.engine.tools.project_files import ReadFile
from agentd.engine.tools.tool import (
    CHANGE,
    NAMED,
    PATH,
    RANGE,
    RANGE_ABOUT,
    Stage,
    ToolRefusal,
    fields,
    nearest_names,
    tool,
)
from agentd.engine.tools.tool_scope import ToolScope
from agentd.engine.tools.tree_diff import changed_files, tree_diff
from agentd.storage import files

MANY = 200
_ROW = ("change_id", "phase", "round", "verdict", "open", "cost", "running", "updated_at", "next", "overlaps")


@tool(
    (Stage.UNBOUND,),
    "List the changes of this project with phase, open findings, cost and the next command.",
    fields({"all?": Flag()}, {"all": "archived and dropped ones too"}),
)
def list_changes(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    places = ChangeLocator(binding.project)
    found = places.open() + (places.archived() if arguments.get("all") else [])
    found.sort(key=lambda one: one.summary.updated_at, reverse=True)
    among = build_overlap_index(found)
    return {"changes": [_row(binding, one, among) for one in found[:MANY]]}


@tool(
    (Stage.UNBOUND,),
    "Show one change: phase, documents, open findings, tasks and the next command.",
    fields(NAMED),
)
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
        return []  # `status` reports a broken record
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
        found = ()  # validation reports it
    done, waived = (sum(one.status is status for one in found) for status in (TaskStatus.DONE, TaskStatus.WAIVED))
    return {"done": done, "waived": waived, "total": len(found)}


LINES = 2000
CHARACTERS = 100_000


def text_piece(text: str, offset: int, limit: int) -> str:
    """Return unmodified lines from `offset` on; if there are more, a last line says where to continue."""
    lines = text.split("\n")
    ended = lines[-1] == ""
    total = len(lines) - ended
    first = offset - 1
    chosen: list[str] = []
    room = CHARACTERS
    for line in lines[first : min(first + limit, total)]:
        if len(line) + 1 > room:
            if not chosen:
                chosen.append(line[:CHARACTERS] + f" [line {offset} has {len(line)} characters; the rest is cut]")
            break
        chosen.append(line)
        room -= len(line) + 1
    last = first + len(chosen)
    if last >= total:
        return "\n".join(chosen) + ("\n" if ended and chosen else "")
    return "\n".join([*chosen, f"[lines {offset}-{last} of {total}; go on with offset {last + 1}]"])


_DOCUMENT = re.compile(r"agentd/changes/([^/]+)/((?:proposal|tasks|clarifications|specs/[^/]+)\.md)")


@tool(
    tuple(Stage),
    "Read a text file of the project. Paths are relative to the project root; the change's own documents also by "
    "short name, such as proposal.md or specs/auth-flow.md.",
    fields(CHANGE | {"path": PATH} | RANGE, RANGE_ABOUT),
)
def read_file(binding: ToolScope, arguments: dict[str, Any]) -> str:
    file = binding.ground(_maybe_change(binding, arguments)).read(arguments["path"])
    if document := _DOCUMENT.fullmatch(file.place):
        binding.seen[document[1], document[2]] = files.hash_bytes(file.data)
    return text_piece(_text(file), arguments.get("offset", 1), arguments.get("limit", LINES))


def _text(file: ReadFile) -> str:
    """Return the file's text. Review blocks of a proposal are removed, even behind a link: they are not for agents."""
    try:
        text = decode_text(file.data, file.path)
        if PROPOSAL_FILE in map(os.path.basename, (file.path, file.place)) and "<review" in text:
            text = text_before_blocks(text)
        return text
    except InvalidDocument as error:
        raise ToolRefusal("binary", error.message, "read another file") from None


@tool(
    tuple(Stage),
    "List a folder of the project; without a path, the project root.",
    fields(CHANGE | {"path?": PATH}),
)
def list_directory(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    found = binding.ground(_maybe_change(binding, arguments)).entries(arguments.get("path", "."))
    entries = [{"name": one.name, "kind": one.kind, "size": one.size} for one in found.entries]
    return {"path": found.path, "entries": entries, "left_off": found.left_off}


@tool(
    (Stage.PLAN, Stage.IMPLEMENT, Stage.UNBOUND),
    "Check the documents of the change against the rules: format, references, dependencies. Changes nothing.",
    fields(CHANGE | {"strict?": Flag()}),
)
def validate_change(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    from agentd.engine.tools.document_store import (
        check_documents,
        check_whole_plan,
        summarize_findings,  # deferred: reading files needs no rules
    )

    change = binding.change_of(arguments)
    if binding.change:
        findings = check_documents(binding, change)
    else:
        from agentd.change import ChangeLocator

        findings = check_whole_plan(binding, ChangeLocator(binding.project).find(change.id))
    return summarize_findings(findings, arguments.get("strict", False))


@tool(
    (Stage.REVIEW,),
    "What the implementation changed, as a unified diff; with a path only that file, without one a list of all "
    "changed files first.",
    fields(CHANGE | {"path?": PATH} | RANGE, RANGE_ABOUT),
)
def get_diff(binding: ToolScope, arguments: dict[str, Any]) -> str:
    """Return the diff between the run's base tree and the tree under review."""
    change = binding.change_of(arguments)
    run = binding.run_data("run.json") or {}
    base, tree = run.get("base"), run.get("tree")
    if not base or not tree:
        raise ToolRefusal("failed", "this run has nothing to compare", "tell the person")
    path = arguments.get("path")
    changed = changed_files(change, base, tree)
    if path is not None:
        if path not in changed:
            near = nearest_names(path, changed) or list(changed)[:10]
            raise ToolRefusal("not-in-diff", f"{path[:200]} did not change", f"these did: {', '.join(near) or 'none'}")
        text = tree_diff(change, base, tree, path)
    else:
        rows = [one.row(name) for name, one in changed.items()]
        text = "\n".join([f"{len(rows)} files changed", *rows, "", tree_diff(change, base, tree)])
    return text_piece(text, arguments.get("offset", 1), arguments.get("limit", LINES))


def _maybe_change(binding: ToolScope, arguments: dict[str, Any]) -> Change | None:
    if binding.change or arguments.get("change_id"):
        return binding.change_of(arguments)
    return None


def short_name(path: str, change: Change | None) -> str | None:
    """Return the short name of a document of the change, or None for any other file."""
    if change is None:
        return None
    name = path.removeprefix(f"agentd/changes/{change.id}/")
    is_ours = name in ("proposal.md", "tasks.md", "clarifications.md") or name.startswith("specs/")
    return name if is_ours and name.endswith(".md") else None
