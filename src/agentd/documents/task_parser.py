"""Parse one task: the name in its heading or checkbox, and its YAML block or bullets."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agentd.documents.order import DocumentFault
from agentd.documents.prose import read_fields
from agentd.documents.task import ACTIONS, TASK_ID, Task, TaskFile, TaskValueReader, canonical_task_id, task_layer
from agentd.documents.text import Document, Fence, LineKind, Section, Span, trim_lines
from agentd.domain import Layer, TaskStatus, yaml12

_KEYS = {
    "id": "id",
    "title": "title",
    "file": "file",
    "files": "file",
    "path": "file",
    "action": "action",
    "spec": "spec_ref",
    "specs": "spec_ref",
    "spec ref": "spec_ref",
    "spec refs": "spec_ref",
    "spec reference": "spec_ref",
    "requirement": "spec_ref",
    "requirements": "spec_ref",
    "depends": "depends_on",
    "depends on": "depends_on",
    "dependencies": "depends_on",
    "status": "status",
    "description": "description",
}
_TASK_LABELS = frozenset({"file", "files", "spec", "spec ref", "depends", "depends on"})
_KEY = re.compile(r"([ \t]*+)[\"']?([A-Za-z][A-Za-z_ -]*+)[\"']?[ \t]*+:(?=\s|$)")
# Quoted text and comments match first, so only bare numbers are replaced.
_BARE = re.compile(r"\"[^\"]*+\"|'[^']*+'|#.*|(?<![^\s,\[])[0-9]++(?:\.[0-9]++)++(?=[\s,\]]|$)")
_TASK = re.compile(r"[*_`\[(]*+(task(?![a-z])\s*+(:?)[\s*_`\[(#]*+)?", re.IGNORECASE)
_AFTER_ID = re.compile(r"[*_`\])]*+\s*+(?:[:.)\-–—][*_]*+)?\s*+")
_NUMBER = re.compile(r"[0-9]{1,4}(?![\w.])")
_LAYER = re.compile(
    r"(?:(?:layer|phase|part)\s*+)?(?:[0-9]++\s*+[.:)–—-]*+\s*+)?(data|logic|integration|test)(?:ing|s)?(?:\s+layer)?"
)


@dataclass(frozen=True, slots=True)
class TaskName:
    """The id and title in a heading or checkbox. `called` is True for `Task …`."""

    id: str
    title: str
    called: bool
    colon: bool = False


@dataclass(slots=True)
class RawTaskValues:
    """The unparsed values of a task by canonical key, each with its line."""

    values: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)

    def add(self, word: str, line: int, value: Any) -> None:
        key_name = _canonical_key(word)
        if key_name:
            self.values.setdefault(key_name, []).append((line, value))

    def last(self, key: str, line: int) -> tuple[int, Any]:
        return self.values.get(key, [(line, None)])[-1]

    def texts(self, key: str) -> list[str]:
        return [str(value) for _, value in self.values.get(key, ()) if value is not None]


@lru_cache(1000)
def _canonical_key(word: str) -> str | None:
    return _KEYS.get(word.strip().lower().replace("_", " ").replace("-", " "))


def parse_task_name(text: str) -> TaskName:
    """Parse a task's name: `Task 1.1: Title`, `1.1 Title`, `**data.1** Title`."""
    start = _TASK.match(text)
    rest = text[start.end() :] if start else text
    called = bool(start and start[1])
    match = TASK_ID.match(rest) or (_NUMBER.match(rest) if called else None)
    if match is None:
        return TaskName("", _strip_bold(rest if called else text), called, bool(start and start[2]))
    after = _AFTER_ID.match(rest, match.end())
    return TaskName(canonical_task_id(match[0]), _strip_bold(rest[after.end() if after else match.end() :]), called)


def _strip_bold(title: str) -> str:
    """Strip bold markers around the title, and a lone one left over from the id."""
    title = title.strip()
    if title.endswith("**") and title.count("**") == (2 if title.startswith("**") else 1):
        title = title.strip("*").strip()
    return title


def layer_in_title(title: str) -> Layer | None:
    """Return the layer named by a heading such as `1. Data Layer`."""
    match = _LAYER.fullmatch(title) if len(title) < 60 else None
    return Layer({"test": "testing"}.get(match[1], match[1])) if match else None


# ---- a heading with a YAML block


def find_task_block(document: Document, starts: list[int], section: Section, named: TaskName) -> Fence | None:
    """Return the task's YAML block: the first one that has a task key or directly follows the heading.

    Under a task heading, a fence without a language is accepted if it looks like such a block.
    """
    bare: Fence | None = None
    first = next((n for n in line_numbers(section.own) if document.content(n).strip()), 0)
    for number in range(bisect_left(starts, section.own.start), len(starts)):
        fence = document.fences[number]
        if fence.span.start > section.own.end:
            break
        yaml = fence.info.lower().split(maxsplit=1)[:1] in (["yaml"], ["yml"])
        if yaml and (fence.span.start == first or any(_key_lines(document, fence.inner))):
            return fence
        if bare is None and not fence.info and (named.id or named.called) and _looks_like_block(document, fence):
            bare = fence
    return bare


def _looks_like_block(document: Document, fence: Fence) -> bool:
    first = next((document.content(n) for n in line_numbers(fence.inner) if document.content(n).strip()), "")
    key = _KEY.match(first)
    keys = {_canonical_key(word) for word, _ in _key_lines(document, fence.inner)}
    return bool(key and _canonical_key(key[2]) and keys & {"id", "file"})


def parse_heading_task(
    document: Document, named: TaskName, span: Span, fence: Fence | None, layer: Layer | None
) -> tuple[Task | None, list[DocumentFault]]:
    """Parse the task under a heading. Without a YAML block, read its bullets."""
    line = span.start
    reader = TaskValueReader(named.id)
    if fence is None:
        raw, rest = read_bullets(document, Span(line + 1, span.end))
        if not raw.values:
            reader.fault(line, "task-yaml", "the YAML block below the heading is missing")
        return build_task(reader, named, raw, span, layer, description=rest, literal=False)
    raw = _parse_block(document, fence, reader)
    around = (Span(line + 1, fence.span.start - 1), Span(fence.span.end + 1, span.end))
    rest = "\n\n".join(text for text in map(document.trimmed_text, around) if text)
    return build_task(reader, named, raw, span, layer, description=rest, literal=True, block=fence.inner)


def _parse_block(document: Document, fence: Fence, reader: TaskValueReader) -> RawTaskValues:
    start = fence.span.start
    raw = RawTaskValues()
    if not fence.closed:
        reader.fault(start, "task-yaml", "the YAML block is not closed, so everything below it is ignored")
        return raw
    try:
        data = yaml12.load("\n".join(_with_quoted_ids(document, fence.inner)))
    except yaml12.InvalidYaml as error:
        line = min(start + error.line, max(start, fence.inner.end))
        reader.fault(line, "task-yaml", f"the block is not valid YAML: {error.message}")
        return raw
    if not isinstance(data, dict):
        reader.fault(start, "task-yaml", 'the block must contain keys with values, such as `id: "1.1"`')
        return raw
    lines = dict(_key_lines(document, fence.inner))
    for key, value in data.items():
        raw.add(str(key), lines.get(str(key), start), value)
    return raw


def _with_quoted_ids(document: Document, span: Span) -> Iterator[str]:
    """Quote bare ids: 1.10 would be parsed as the number 1.1."""
    key_name: str | None = None
    for line in line_numbers(span):
        content = document.content(line)
        key = _KEY.match(content)
        key_name = _canonical_key(key[2]) if key else key_name
        yield _BARE.sub(_quote_id, content) if key_name in ("id", "depends_on") else content


def _quote_id(match: re.Match[str]) -> str:
    return f'"{match[0]}"' if match[0][0] in "0123456789" else match[0]


def _key_lines(document: Document, span: Span) -> Iterator[tuple[str, int]]:
    """Yield the top-level task keys of a block with their lines."""
    margin: str | None = None
    for line in line_numbers(span):
        key = _KEY.match(document.content(line))
        if key and (margin is None or key[1] == margin):
            margin = key[1]
            if _canonical_key(key[2]):
                yield key[2].strip(), line


def block_has_id(document: Document, fence: Fence) -> bool:
    return any(_canonical_key(word) == "id" for word, _ in _key_lines(document, fence.inner))


# ---- bullets


def has_bullets(document: Document, span: Span, *, nested: bool) -> bool:
    """Return whether the lines have task fields. Below a heading, indented ones belong to a list item."""
    found = read_fields(document, span, _TASK_LABELS)
    return bool(found) and (nested or not document.content(found[0].span.start)[:2].isspace())


def read_bullets(document: Document, span: Span) -> tuple[RawTaskValues, str]:
    """Return the labelled values and the remaining text."""
    raw = RawTaskValues()
    taken: set[int] = set()
    for found in read_fields(document, span, _KEYS):
        whole = not found.value or found.value.endswith((",", ";")) or found.label == "description"
        text = found.full if whole else found.value
        if found.label in ("file", "files") and not found.value:
            text = re.sub(r"^[ \t]*+[-*+][ \t]++", "", text, flags=re.MULTILINE).replace("\n", ", ")
        elif found.label in ("depends", "depends on", "dependencies", "spec", "specs"):
            text = text.replace("\n", " ").replace("- ", " ")
        raw.add(found.label, found.span.start, text)
        taken.update(line_numbers(found.span) if whole else (found.span.start,))
    rest = [document.content(line) for line in line_numbers(span) if line not in taken]
    margin = min((len(one) - len(one.lstrip()) for one in rest if one.strip()), default=0)
    return raw, trim_lines([one[margin:] for one in rest])


# ---- both forms


def build_task(
    reader: TaskValueReader,
    named: TaskName,
    raw: RawTaskValues,
    span: Span,
    layer: Layer | None,
    *,
    description: str,
    literal: bool,
    block: Span | None = None,
) -> tuple[Task | None, list[DocumentFault]]:
    id_ = _id(reader, named, raw, span.start)
    if not id_:
        return None, reader.faults
    reader.id = id_
    written = raw.last("title", span.start)[1]
    title = named.title or (str(written).strip() if isinstance(written, str | int | float) else "")
    if not title:
        reader.fault(span.start, "task-title", "the title is missing after the id")
    own = task_layer(id_)
    if own and layer and own is not layer:
        reader.fault(span.start, "task-layer", f"it belongs to the {own} layer but is listed under {layer}")
    return Task(
        id=id_,
        title=title,
        layer=own or layer,
        files=_files(reader, raw, span.start, literal),
        spec_refs=_unique(
            one for line, value in raw.values.get("spec_ref", ()) for one in reader.references(value, line)
        ),
        depends_on=_unique(one for line, value in raw.values.get("depends_on", ()) for one in reader.ids(value, line)),
        status=reader.status(*raw.last("status", span.start)[::-1]),
        description="\n\n".join(text for text in (*map(str.strip, raw.texts("description")), description) if text),
        span=span,
        block=block,
        lines={key: values[0][0] for key, values in raw.values.items()},
    ), reader.faults


def _id(reader: TaskValueReader, named: TaskName, raw: RawTaskValues, line: int) -> str:
    at, value = raw.last("id", line)
    written = canonical_task_id(str(value).strip()) if isinstance(value, str | int | float) else ""
    if named.id and written and named.id != written:
        reader.fault(at, "task-id", f"the block has id {written[:60]}; heading and block must have the same id")
    id_ = named.id or written
    if not id_:
        reader.fault(line, "task-id", "this task has no id; write one such as 1.1 before the title")
    elif not TASK_ID.fullmatch(id_):
        reader.id = ""
        reader.fault(line, "task-id", f"'{id_[:60]}' is not a task id; write <layer>.<number>, such as 1.1")
    return id_


def _files(reader: TaskValueReader, raw: RawTaskValues, line: int, literal: bool) -> tuple[TaskFile, ...]:
    default = reader.action(*raw.last("action", line)[::-1])
    files: list[TaskFile] = []
    for at, value in raw.values.get("file", ()):
        for one in reader.files(value, at, literal=literal):
            files.append(TaskFile(one.path, one.action or default, at))
    named = {fault.rule for fault in reader.faults}
    if not files and not named & {"task-file", "task-yaml"}:
        reader.fault(line, "task-file", f"no file is given; write a path and {ACTIONS}")
    for file in files:
        if file.action is None and "task-action" not in named:
            reader.fault(file.line, "task-action", f"{file.path[:60]} has no action; write {ACTIONS}")
    return tuple(files)


def _unique(words: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def line_numbers(span: Span) -> range:
    return range(span.start, span.end + 1)


CHECKBOX = re.compile(r"([ \t]*+)[-*+][ \t]++\[([ xX~-]?)\](?:[ \t]++(.*)|[ \t]*+$)")
_ANY_CHECKBOX = re.compile(r"[-*+][ \t]\s*+\[[ xX~-]?\]")
CHECKBOX_STATUS = {TaskStatus.PENDING: " ", TaskStatus.DONE: "x", TaskStatus.WAIVED: "-"}


def parse_checkbox_task(document: Document, span: Span, layer: Layer | None) -> tuple[Task | None, list[DocumentFault]]:
    match = CHECKBOX.match(document.content(span.start))
    assert match is not None
    named = parse_task_name(match[3] or "")
    reader = TaskValueReader(named.id)
    raw, rest = read_bullets(document, Span(span.start + 1, span.end))
    mark = match[2].lower() or " "
    status = TaskStatus.DONE if mark == "x" else TaskStatus.PENDING if mark == " " else TaskStatus.WAIVED
    raw.values["status"] = [(span.start, str(status))]
    return build_task(reader, named, raw, span, layer, description=rest, literal=False)


def checkbox_spans(document: Document, taken: list[Span]) -> Iterator[Span]:
    """Yield the span of each checkbox that starts a task, with the lines that belong to it. Skip `taken` spans."""
    if not _ANY_CHECKBOX.search(document.text):
        return
    open_line, indent, last, blank = 0, 0, 0, False
    hidden = iter([*taken, Span(len(document.lines) + 1, len(document.lines) + 1)])
    skip = next(hidden)
    ends = {heading.line for heading in document.headings}
    for line in range(1, len(document.lines) + 1):
        while line > skip.end:
            skip = next(hidden)
        content = document.content(line)
        if document.kind(line) is not LineKind.TEXT and line not in skip:
            last = line if document.kind(line) is LineKind.FENCE else last
            continue
        margin = len(content) - len(content.lstrip())
        box = None if line in skip else CHECKBOX.match(content)
        opens = box is not None and (not open_line or margin <= indent or parse_task_name(box[3] or "").id != "")
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
    """Return whether a checkbox in these lines has a task id."""
    boxes = (CHECKBOX.match(content) for _, content in document.plain_lines(span))
    return any(parse_task_name(box[3] or "").id for box in boxes if box)


def _is_item(content: str) -> bool:
    return content.lstrip()[:2] in ("- ", "* ", "+ ")
