"""tasks.md: parse the task list in either notation, and set the status of a task.

Faults in the content are returned as data. Only text that is not a document raises an error.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentd.documents import frontmatter, task_parser
from agentd.documents import text as base
from agentd.documents.frontmatter import Frontmatter
from agentd.documents.order import DocumentFault
from agentd.documents.prose import embed_text, heading_text, one_line
from agentd.documents.task import Task, TaskFile, TaskValueReader, canonical_task_id, layer_number, task_layer
from agentd.documents.text import BOM, Document, Fence, InvalidDocument, Section, Span
from agentd.domain import Layer, TaskAction, TaskStatus, yaml12

TASKS_FILE = "tasks.md"

_TITLE = re.compile(r"tasks\s*+:\s*+", re.IGNORECASE)
_STATUS = re.compile(
    r"([ \t]*+(?:[-*+][ \t]++)?[*_]{0,3}[\"']?status[\"']?[*_]{0,3}[ \t]*+:[*_]{0,3}[ \t]*+)"
    r"([\"'`]?)([A-Za-z_-]*+)([\"'`]?)([ \t]*+(?:(?<=[ \t])#.*)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TaskList:
    change_id: str
    tasks: tuple[Task, ...]
    version: int | None = 1
    faults: tuple[DocumentFault, ...] = field(default=(), compare=False)
    front: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def get(self, id_: str) -> Task | None:
        """Return a task by its id, `1.1` or `data.1`."""
        wanted = canonical_task_id(id_)
        return next((task for task in self.tasks if task.id == wanted), None)


def parse_tasks(text: str, name: str = TASKS_FILE) -> TaskList:
    document = base.parse_document(text, name)
    try:
        return read_tasks(document, frontmatter.read_frontmatter(document))
    except InvalidDocument as error:
        fault = DocumentFault(error.line, "frontmatter", error.problem)
        return read_tasks(document, Frontmatter(name), (fault,))


def read_tasks(document: Document, front: Frontmatter, earlier: tuple[DocumentFault, ...] = ()) -> TaskList:
    """Parse the tasks. `earlier` are faults that were already found."""
    faults = list(earlier)
    version: int | None = None
    change_id = ""
    try:
        change_id = front.string("id")
        version = front.number("version")
    except InvalidDocument as error:
        faults.append(DocumentFault(error.line, "frontmatter", error.problem))
    tasks = _read_all(document, faults)
    faults += _find_duplicates(tasks)
    if not tasks and not faults:
        faults.append(
            DocumentFault(1, "task-missing", "no task found; write `### Task 1.1: Title` followed by a YAML block")
        )
    return TaskList(
        change_id=change_id or _title(document),
        tasks=tuple(tasks),
        version=version,
        faults=tuple(sorted(faults, key=lambda fault: fault.line)),
        front=front.values,
    )


def _title(document: Document) -> str:
    """Return the id in `# Tasks: add-oauth`, for a document without frontmatter."""
    for heading in document.headings:
        if heading.level == 1 and (match := _TITLE.match(heading.title)):
            return heading.title[match.end() :].strip("` ")
    return ""


def _read_all(document: Document, faults: list[DocumentFault]) -> list[Task]:
    starts = [fence.span.start for fence in document.fences]
    tasks: list[Task] = []
    headed: list[Span] = []
    layers: list[tuple[int, Layer | None]] = []
    layer: Layer | None = None
    for section, end in _section_ends(document):
        found = _read_heading(document, starts, section, end, layer, faults)
        if found is None:
            layer = task_parser.layer_in_title(section.heading.key)
            layers.append((section.heading.line, layer))
            continue
        headed.append(Span(section.heading.line, end))
        tasks += found
    boxed, checklist_faults = _read_checkboxes(document, headed, layers, faults)
    tasks += boxed
    faults += _drop_checklist_faults(checklist_faults, tasks, [line for line, _ in layers])
    return sorted(tasks, key=lambda task: task.line)


def _drop_checklist_faults(
    checklist_faults: list[DocumentFault], tasks: list[Task], headings: list[int]
) -> list[DocumentFault]:
    """Ignore `- [ ] all tests pass` under a heading such as Testing if the tasks are elsewhere."""
    with_tasks = {bisect_left(headings, task.line) for task in tasks}
    return [one for one in checklist_faults if not tasks or bisect_left(headings, one.line) in with_tasks]


def _section_ends(document: Document) -> list[tuple[Section, int]]:
    """Return each section with its last line, or the line before the next task if that comes first."""
    found: list[tuple[Section, int]] = []
    limit = len(document.lines)
    for section in reversed(document.sections):
        found.append((section, min(section.span.end, limit)))
        named = task_parser.parse_task_name(section.heading.title)
        if named.called and (named.id or named.colon):
            limit = section.heading.line - 1
    return found[::-1]


def _read_heading(
    document: Document,
    starts: list[int],
    section: Section,
    end: int,
    layer: Layer | None,
    faults: list[DocumentFault],
) -> list[Task] | None:
    """Return the task of a heading if it is valid; None if the heading does not start a task."""
    heading = section.heading
    if heading.level < 2:
        return None
    named = task_parser.parse_task_name(heading.title)
    fence = task_parser.find_task_block(document, starts, section, named)
    if not _is_task(document, named, fence, section.own):
        return None
    task, wrong = task_parser.parse_heading_task(document, named, Span(heading.line, end), fence, layer)
    faults += wrong
    return [task] if task else []


def _is_task(document: Document, named: task_parser.TaskName, fence: Fence | None, own: Span) -> bool:
    """Return whether a heading starts a task: `Task 1.1` and `Task:` do; others need an id, and a block or bullets."""
    if named.called and (named.id or named.colon):
        return True
    if fence is not None:
        return bool(named.id or task_parser.block_has_id(document, fence))
    if not named.id or task_parser.has_checkbox_task(document, own):
        return False
    return task_parser.has_bullets(document, own, nested=False)


def _read_checkboxes(
    document: Document, headed: list[Span], layers: list[tuple[int, Layer | None]], faults: list[DocumentFault]
) -> tuple[list[Task], list[DocumentFault]]:
    """Return the tasks, and the faults of checkboxes under Testing that may not be tasks at all."""
    tasks: list[Task] = []
    checklist_faults: list[DocumentFault] = []
    waiting = layers[::-1]
    layer: Layer | None = None
    for span in task_parser.checkbox_spans(document, headed):
        while waiting and waiting[-1][0] < span.start:
            layer = waiting.pop()[1]
        task, wrong = task_parser.parse_checkbox_task(document, span, layer)
        if task is None and layer is Layer.TESTING and not task_parser.has_bullets(document, span, nested=True):
            checklist_faults += wrong
        elif task or layer:  # a checklist elsewhere is not a task list
            faults += wrong
        tasks += [task] if task else []
    return tasks, checklist_faults


def _find_duplicates(tasks: list[Task]) -> list[DocumentFault]:
    first: dict[str, int] = {}
    faults: list[DocumentFault] = []
    for task in tasks:
        line = first.setdefault(task.id, task.line)
        if line != task.line:
            faults.append(
                DocumentFault(task.line, "task-duplicate", f"task {task.id} appears twice, first on line {line}")
            )
    return faults


# ---- editing


def set_task_status(text: str, id_: str, status: TaskStatus, name: str = TASKS_FILE) -> str:
    """Set the status of one task, leaving every other byte unchanged."""
    document = base.parse_document(text, name)
    tasks = parse_tasks(text, name).tasks
    wanted = canonical_task_id(id_)
    matches = [task for task in tasks if task.id == wanted]
    if len(matches) != 1:
        known = ", ".join(task.id for task in tasks[:20]) or "none"
        problem = f"task {id_} appears twice" if matches else f"there is no task {id_}; the tasks are {known}"
        raise InvalidDocument(name, matches[1].line if matches else 1, problem)
    task = matches[0]
    if task.status is status and (task.block is None or "status" in task.lines):
        return text
    edited = _with_status(document, task, status)
    expected = tuple(replace(one, status=status) if one is task else one for one in tasks)
    if edited is None or parse_tasks(edited, name).tasks != expected:
        problem = f"the status of task {task.id} cannot be set; write `status: pending` on a line of its own"
        raise InvalidDocument(name, task.line, problem)
    return edited


def _with_status(document: Document, task: Task, status: TaskStatus) -> str | None:
    line = task.lines.get("status")
    if line is None:
        return _add_status_line(document, task.block, status) if task.block else None
    content = document.content(line)
    box = task_parser.CHECKBOX.match(content) if line == task.line else None
    if box:
        new = content[: box.start(2)] + task_parser.CHECKBOX_STATUS[status] + content[box.end(2) :]
    else:
        match = _STATUS.fullmatch(content)
        if match is None or match[2] != match[4]:
            return None
        gap = "" if match[1][-1] in " \t" or match[2] else " "
        new = f"{match[1]}{gap}{match[2]}{status}{match[4]}{match[5]}"
    return document.replace(Span(line, line), document.lines[line - 1].replace(content, new, 1))


def _add_status_line(document: Document, block: Span, status: TaskStatus) -> str:
    """Add a status line after the last non-blank line of the block."""
    last = block.end
    while last >= block.start and not document.content(last).strip():
        last -= 1
    first = document.content(block.start) if last >= block.start else ""
    margin = first[: len(first) - len(first.lstrip())]
    return document.insert(last + 1, f"{margin}status: {status}{document.newline}")


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
    """Replace the task list, keeping other frontmatter and the status of tasks that remain."""
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
    """Return whether the path, written on one line, parses back unchanged."""
    return TaskValueReader("").files(file.path, 0, literal=True) == [TaskFile(file.path, None)]


def _spec_refs(task: Task) -> list[str]:
    if len(task.spec_refs) > 1:
        return [yaml12.dump({"spec_refs": yaml12.FlowList(task.spec_refs)})]
    return [yaml12.dump({"spec_ref": one}) for one in task.spec_refs]
