"""Tasks as checkboxes, `- [ ] 1.1 Title`, with bullets below them."""

import re
from collections.abc import Iterator

from agentd.documents import task_parser
from agentd.documents.order import DocumentFault
from agentd.documents.task import Task
from agentd.documents.task_values import TaskValueReader
from agentd.documents.text import Document, LineKind, Span
from agentd.domain import Layer, TaskStatus

CHECKBOX = re.compile(r"([ \t]*+)[-*+][ \t]++\[([ xX~-]?)\](?:[ \t]++(.*)|[ \t]*+$)")
_ANY = re.compile(r"[-*+][ \t]\s*+\[[ xX~-]?\]")
CHECKBOX_STATUS = {TaskStatus.PENDING: " ", TaskStatus.DONE: "x", TaskStatus.WAIVED: "-"}


def parse_checkbox_task(document: Document, span: Span, layer: Layer | None) -> tuple[Task | None, list[DocumentFault]]:
    match = CHECKBOX.match(document.content(span.start))
    assert match is not None
    named = task_parser.parse_task_name(match[3] or "")
    reader = TaskValueReader(named.id)
    raw, rest = task_parser.read_bullets(document, Span(span.start + 1, span.end))
    mark = match[2].lower() or " "
    status = TaskStatus.DONE if mark == "x" else TaskStatus.PENDING if mark == " " else TaskStatus.WAIVED
    raw.values["status"] = [(span.start, str(status))]
    return task_parser.build_task(reader, named, raw, span, layer, description=rest, literal=False)


def checkbox_spans(document: Document, taken: list[Span]) -> Iterator[Span]:
    """Each checkbox that opens a task, with the lines below that belong to it; `taken` spans are left out."""
    if not _ANY.search(document.text):
        return
    open_line, indent, last, blank = 0, 0, 0, False
    hidden = iter([*taken, Span(len(document.lines) + 1, len(document.lines) + 1)])
    skip = next(hidden)
    ends = {heading.line for heading in document.headings}
    for line in range(1, len(document.lines) + 1):
        while line > skip.end:
            skip = next(hidden)
        content = document.content(line)
        if document.mark(line) is not LineKind.TEXT and line not in skip:
            last = line if document.mark(line) is LineKind.FENCE else last
            continue
        margin = len(content) - len(content.lstrip())
        box = None if line in skip else CHECKBOX.match(content)
        opens = box is not None and (
            not open_line or margin <= indent or task_parser.parse_task_name(box[3] or "").id != ""
        )
        ended = line in skip or line in ends or (content.strip() and margin <= indent and (blank or _is_item(content)))
        if open_line and (opens or ended):
            yield Span(open_line, last)
            open_line = 0
        if opens:
            open_line, indent = line, margin
        if content.strip():
            last, blank = line, False
        else:
            blank = True
    if open_line:
        yield Span(open_line, last)


def has_checkbox_task(document: Document, span: Span) -> bool:
    """Whether a checkbox in these lines has the id of a task."""
    boxes = (CHECKBOX.match(content) for _, content in document.plain(span))
    return any(task_parser.parse_task_name(box[3] or "").id for box in boxes if box)


def _is_item(content: str) -> bool:
    return content.lstrip()[:2] in ("- ", "* ", "+ ")
