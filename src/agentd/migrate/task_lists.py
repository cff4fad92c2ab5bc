"""Convert the checkbox lists of other tools to tasks.md. Validation reports what a list does not say."""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from agentd.documents import (
    CHECKBOX,
    Heading,
    Span,
    Task,
    TaskFile,
    TaskList,
    checkbox_spans,
    layer_in_title,
    layer_number,
    one_line,
    parse_document,
    render_tasks,
)
from agentd.domain import Layer, TaskAction, pluralize
from agentd.migrate.import_model import ImportNote

_NUMBER = re.compile(r"((?:\d+(?:\.\d+)*[.)]?|T\d+)(?=\s))\s+(.*)")
_MARK = re.compile(r"\[(P|US\d+)\]\s*")
# A path with a folder, a dotfile, or in backticks also a bare name with a known extension.
_PATH = re.compile(
    r"(?<![\w./`-])`?((?:[\w@.-]+/)+[\w@.-]+\.\w+|\.[a-z][\w-]*(?:\.[a-z]\w*|rc|ignore|config|attributes))`?(?![\w/])"
    r"|`([\w@-][\w@.-]*\.(?:py|[jt]sx?|[cm]js|vue|json|toml|ya?ml|md|txt|sql|s?css|html|sh|go|rs|java|kt|rb|php|c|h|cpp|cs))`"
)
_TESTS = re.compile(r"(?:(?:phase|part)\s*)?(?:\d+\s*[.:)–—-]*\s*)?test(?:s|ing)?\b")
_TITLE = 200  # characters; the full text of a longer one is in the description


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One checkbox: its number in the other tool, its text, marks such as P and US1, and the heading above it."""

    number: str
    words: str
    marks: tuple[str, ...]
    heading: str
    is_ticked: bool
    below: str
    line: int


def read_boxes(text: str, name: str) -> list[ListedTask]:
    """Read the checkboxes; raise InvalidDocument for text that is not a document."""
    document = parse_document(text, name)
    lines = [heading.line for heading in document.headings]
    listed = []
    for span in checkbox_spans(document, []):
        match = CHECKBOX.match(document.content(span.start))
        assert match, "checkbox_spans found it"
        numbered = _NUMBER.match(match[3] or "")
        number, words = (numbered[1], numbered[2]) if numbered else ("", match[3] or "")
        marks = []
        while mark := _MARK.match(words):
            marks.append(mark[1])
            words = words[mark.end() :]
        at = bisect_left(lines, span.start)
        heading = document.headings[at - 1].title if at else ""
        below = document.trimmed_text(Span(span.start + 1, span.end))
        ticked = match[2] in ("x", "X")
        listed.append(ListedTask(number, one_line(words), tuple(marks), heading, ticked, below, span.start))
    return listed


def tasks_document(
    listed: list[ListedTask],
    tool: str,
    change_id: str,
    depends: Callable[[int], list[int]],
    is_file: Callable[[str], bool],
) -> str:
    """Render the list as tasks.md, in the layer that a heading names, else in logic. `depends` returns list indexes.

    A file that exists is to be modified, any other to be created.
    """
    ids: list[str] = []
    counts = dict.fromkeys(Layer, 0)
    for one in listed:
        layer = _layer(one)
        counts[layer] += 1
        ids.append(f"{layer_number(layer)}.{counts[layer]}")
    tasks = [
        Task(
            id=ids[place],
            title=one.words if len(one.words) <= _TITLE else f"{one.words[: _TITLE - 2].rstrip()} …",
            layer=_layer(one),
            files=tuple(
                TaskFile(path, TaskAction.MODIFY if is_file(path) else TaskAction.CREATE)
                for path in paths_in(one.words)
            ),
            depends_on=tuple(ids[other] for other in depends(place)),
            description=_described(one, tool),
        )
        for place, one in enumerate(listed)
    ]
    return render_tasks(TaskList(change_id, tuple(tasks)))


def paths_in(words: str) -> list[str]:
    """Return the file paths that a task names."""
    found = ((match[1] or match[2]).removeprefix("./") for match in _PATH.finditer(words))
    return list(dict.fromkeys(path for path in found if ".." not in path.split("/")))


def task_notes(listed: list[ListedTask], source: str) -> list[ImportNote]:
    if not listed:
        return [ImportNote(source, 0, "has no checkbox, so there is no tasks.md")]
    notes = [ImportNote(source, listed[0].line, "tasks name no requirement")]
    if bare := [one for one in listed if not paths_in(one.words)]:
        count = f"{len(bare)} of {pluralize(len(listed), 'task')} {'names' if len(bare) == 1 else 'name'} no file"
        notes.append(ImportNote(source, bare[0].line, f"{count}, which validation asks for", "tasks name no file"))
    if ticked := [one for one in listed if one.is_ticked]:
        count = f"{len(ticked)} of {pluralize(len(listed), 'task')} {'is' if len(ticked) == 1 else 'are'} ticked"
        rest = "here all are pending until a review approves their code"
        notes.append(ImportNote(source, ticked[0].line, f"{count}; {rest}", f"tasks are ticked; {rest}"))
    return notes + [ImportNote(source, one.line, "a task without text") for one in listed if not one.words]


def _layer(one: ListedTask) -> Layer:
    heading = Heading(2, one.heading, 0).key
    return layer_in_title(heading) or (Layer.TESTING if _TESTS.match(heading) else Layer.LOGIC)


def _described(one: ListedTask, tool: str) -> str:
    origin = f"Task {one.number} of the {tool} list" if one.number else f"From the {tool} list"
    where = f", under '{one_line(one.heading)}'" if one.heading else ""
    marks = f", marked {' '.join(one.marks)}" if one.marks else ""
    said = f"{origin}{where}{marks}.{' It is ticked there.' if one.is_ticked else ''}"
    full = one.words if len(one.words) > _TITLE else ""
    return "\n\n".join(part for part in (said, full, one.below) if part)
