"""Checkbox lists of other tools as tasks.md. What such a list does not say stays unsaid, and validation asks for it."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentd.documents import (
    CHECKBOX,
    Document,
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
# With a folder; a name with a dot in front; in backticks also a bare name, if it ends as files do.
_PATH = re.compile(
    r"(?<![\w./`-])`?((?:[\w@.-]+/)+[\w@.-]+\.\w+|\.[a-z][\w-]*(?:\.[a-z]\w*|rc|ignore|config|attributes))`?(?![\w/])"
    r"|`([\w@-][\w@.-]*\.(?:py|[jt]sx?|[cm]js|vue|json|toml|ya?ml|md|txt|sql|s?css|html|sh|go|rs|java|kt|rb|php|c|h|cpp|cs))`"
)
_TESTS = re.compile(r"(?:(?:phase|part)\s*)?(?:\d+\s*[.:)–—-]*\s*)?test(?:s|ing)?\b")
_TITLE = 200  # characters; what is longer goes on in the description


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One box: its number in the other tool, its words, its marks such as P and US1, and the heading above it."""

    number: str
    words: str
    marks: tuple[str, ...]
    heading: str
    is_ticked: bool
    below: str
    line: int


def read_boxes(text: str, name: str) -> list[ListedTask]:
    """Text that is no document at all raises BadDocument."""
    document = parse_document(text, name)
    return list(_boxes(document))


def _boxes(document: Document) -> Iterator[ListedTask]:
    lines = [heading.line for heading in document.headings]
    for span in checkbox_spans(document, []):
        match = CHECKBOX.match(document.content(span.start))
        assert match, "a box was found there"
        numbered = _NUMBER.match(match[3] or "")
        number, words = (numbered[1], numbered[2]) if numbered else ("", match[3] or "")
        marks = []
        while mark := _MARK.match(words):
            marks.append(mark[1])
            words = words[mark.end() :]
        at = bisect_left(lines, span.start)
        heading = document.headings[at - 1].title if at else ""
        below = document.trimmed_text(Span(span.start + 1, span.end))
        yield ListedTask(
            number, one_line(words), tuple(marks), heading, match[2] in "xX" and match[2] != "", below, span.start
        )


def tasks_document(
    listed: list[ListedTask],
    tool: str,
    change_id: str,
    depends: Callable[[int], list[int]],
    is_file: Callable[[str], bool],
) -> str:
    """The list as tasks.md, by layer where a heading names one, else as logic. `depends` gives places in the list.

    A file that `is_file` knows is to be modified, another one to be created.
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
            title=_short(one.words),
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
    """File paths that a task names."""
    found = ((match[1] or match[2]).removeprefix("./") for match in _PATH.finditer(words))
    return list(dict.fromkeys(path for path in found if ".." not in path.split("/")))


def task_notes(listed: list[ListedTask], source: str) -> list[ImportNote]:
    if not listed:
        return [ImportNote(source, 0, "has no checkbox, so there is no tasks.md")]
    notes = [ImportNote(source, listed[0].line, "no task says for which requirement it is")]
    if bare := [one for one in listed if not paths_in(one.words)]:
        count = f"{len(bare)} of {pluralize(len(listed), 'task')} {'names' if len(bare) == 1 else 'name'} no file"
        notes.append(ImportNote(source, bare[0].line, f"{count}, which validation asks for", "tasks name no file"))
    if ticked := [one for one in listed if one.is_ticked]:
        count = f"{len(ticked)} of {pluralize(len(listed), 'task')} {'is' if len(ticked) == 1 else 'are'} ticked"
        rest = "here all are pending until a review has seen their code"
        notes.append(ImportNote(source, ticked[0].line, f"{count}; {rest}", f"tasks are ticked; {rest}"))
    return notes + [ImportNote(source, one.line, "a task without words") for one in listed if not one.words]


def _layer(one: ListedTask) -> Layer:
    heading = Heading(2, one.heading, 0).key
    return layer_in_title(heading) or (Layer.TESTING if _TESTS.match(heading) else Layer.LOGIC)


def _short(words: str) -> str:
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 2].rstrip()} …"


def _described(one: ListedTask, tool: str) -> str:
    origin = f"Task {one.number} of the {tool} list" if one.number else f"From the {tool} list"
    where = f", under '{one_line(one.heading)}'" if one.heading else ""
    marks = f", marked {' '.join(one.marks)}" if one.marks else ""
    said = f"{origin}{where}{marks}.{' It is ticked there.' if one.is_ticked else ''}"
    full = one.words if len(one.words) > _TITLE else ""
    return "\n\n".join(part for part in (said, full, one.below) if part)
