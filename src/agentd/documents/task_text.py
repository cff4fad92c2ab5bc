"""Render tasks.md in the form that agentd writes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentd.documents import frontmatter
from agentd.documents import text as base
from agentd.documents.prose import embed_text, heading_text, one_line
from agentd.documents.task import Task, TaskFile, canonical_task_id, layer_number, task_layer
from agentd.documents.task_values import TaskValueReader
from agentd.documents.tasks import TASKS_FILE, TaskList, parse_tasks
from agentd.documents.text import BOM
from agentd.domain import Layer, TaskAction, yaml12

_NUMBER = re.compile(r"([0-9]+)|([a-z])")


def tasks_from_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Task, ...]:
    """Build tasks from the validated arguments of a `create_tasks` call."""
    return tuple(_from_row(row) for row in rows)


def _from_row(row: Mapping[str, Any]) -> Task:
    layer = Layer(row["layer"])
    file = row["file"]
    depends = [*(row.get("depends") or ()), *(row.get("depends_on") or ())]
    return Task(
        id=f"{layer_number(layer)}.{row['number']}",
        title=one_line(row["title"]),
        layer=layer,
        files=(TaskFile(file["path"], TaskAction(file["action"])),),
        spec_refs=(row["spec_ref"],) if row.get("spec_ref") else (),
        depends_on=tuple(dict.fromkeys(canonical_task_id(one) for one in depends)),
        description=row["description"],
    )


def render_tasks(tasks: TaskList) -> str:
    return frontmatter.render_frontmatter(_front(tasks)) + "\n" + _body(tasks)


def revise_tasks(old_text: str, new: TaskList, name: str = TASKS_FILE) -> str:
    """Replace the task list; keep other frontmatter and the status of tasks that remain."""
    document = base.parse_document(old_text, name)
    old = {(task.id, task.title): task.status for task in parse_tasks(old_text, name).tasks}
    tasks = tuple(replace(task, status=old.get((task.id, one_line(task.title)), task.status)) for task in new.tasks)
    try:
        head = frontmatter.revise_frontmatter(document, _front(new), keep=("version",))
    except frontmatter.InvalidFrontmatter:
        # Unreadable frontmatter cannot be kept, and must not prevent writing the new list.
        mark = BOM if old_text.startswith(BOM) else ""
        head = mark + document.native(frontmatter.render_frontmatter(_front(new)))
    return head + document.native("\n" + _body(replace(new, tasks=tasks)))


def _front(tasks: TaskList) -> dict[str, Any]:
    return {"id": tasks.change_id, "type": "tasks", "version": tasks.version or 1}


def _body(tasks: TaskList) -> str:
    """Render tasks sorted by layer, then by number."""
    parts = [f"# Tasks: {one_line(tasks.change_id)}"]
    heading = ""
    for task in sorted(tasks.tasks, key=lambda task: _sort_key(task.id)):
        if _heading(task) != heading:
            heading = _heading(task)
            parts.append(heading)
        parts += _task(task)
    return "\n\n".join(part for part in parts if part) + "\n"


def _sort_key(id_: str) -> list[tuple[int, str]]:
    return [(int(number or 0), letter) for number, letter in _NUMBER.findall(id_)]


def _heading(task: Task) -> str:
    layer = task_layer(task.id)
    return f"## {task.id.partition('.')[0]}. {f'{layer.title()} Layer' if layer else 'Other'}"


def _task(task: Task) -> list[str]:
    lines = [
        f'id: "{task.id}"\n',
        *_files(task),
        *_spec_refs(task),
        "depends_on: [{}]\n".format(", ".join(f'"{one}"' for one in task.depends_on)),
        f"status: {task.status}\n",
    ]
    # Escape headings in the description: they would end the task.
    return [
        f"### Task {task.id}: {heading_text(task.title)}",
        f"```yaml\n{''.join(lines)}```",
        embed_text(task.description, 6),
    ]


def _files(task: Task) -> list[str]:
    if len(task.files) == 1 and _fits_one_line(task.files[0]):
        file = task.files[0]
        action = [f"action: {file.action}\n"] if file.action else []
        return [yaml12.dump({"file": file.path}), *action]
    rows = [{"path": file.path, "action": file.action and str(file.action)} for file in task.files]
    return [yaml12.dump({"files": rows})] if rows else []


def _fits_one_line(file: TaskFile) -> bool:
    """Whether the path, written on one line, is read back unchanged."""
    return TaskValueReader("").files(file.path, 0, literal=True) == [TaskFile(file.path, None)]


def _spec_refs(task: Task) -> list[str]:
    if len(task.spec_refs) > 1:
        return [yaml12.dump({"spec_refs": yaml12.FlowList(task.spec_refs)})]
    return [yaml12.dump({"spec_ref": one}) for one in task.spec_refs]
