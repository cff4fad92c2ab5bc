"""Read a whole Spec Kit project: one change per feature folder."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentd.change import suggest_change_id, unique_id
from agentd.documents import (
    Document,
    InvalidDocument,
    Section,
    Span,
    decode_text,
    embed_text,
    one_line,
    parse_document,
    render_frontmatter,
    trim_lines,
)
from agentd.domain import CHANGE_ID, Phase, yaml12
from agentd.merge import touched_units
from agentd.migrate import task_lists
from agentd.migrate.import_model import KEPT, ImportedChange, ImportedProject, ImportNote, SourceTree
from agentd.migrate.task_lists import ListedTask

_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,4}[.)])[ \t]+")
_REQUIREMENT = re.compile(r"[ \t]*[-*+][ \t]+\*\*((?:[A-Z]+-)*FR-?\d+[a-z]?):?\*\*:?[ \t]*(.*)")
_GIVEN = re.compile(r"[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\*\*(?:Given|When)\*\*", re.IGNORECASE)
_WORD = re.compile(r"\*\*(Given|When|Then|And|But)\*\*:?[ \t]*", re.IGNORECASE)
_PRIORITY = re.compile(r"\s*\((?:Priority|Prio):?[^()]*\).*$", re.IGNORECASE)
_TITLE = re.compile(r"feature(?: specification)?\s*:\s*", re.IGNORECASE)
_INPUT = re.compile(r"\*\*Input\*\*:[ \t]*(?:User description:[ \t]*)?(.*)")
_ASK = "[NEEDS CLARIFICATION"
_SENTENCE = re.compile(r"[.;:!?](?=\s|$)")
_LABEL = re.compile(r"[ \t]*\*\*Acceptance (?:Scenarios?|Criteria)\*\*:?[ \t]*", re.IGNORECASE)
_LONGEST = 72  # characters of a requirement's title


@dataclass(frozen=True, slots=True)
class SpecKitFeature:
    title: str
    request: str
    """The user's description, as the document quotes it."""
    text: str
    notes: tuple[ImportNote, ...]


@dataclass(frozen=True, slots=True)
class _MappedItem:
    """A list item that becomes a requirement or scenario: its lines, its name and the new text."""

    span: Span
    name: str
    lines: tuple[str, ...]
    title: str = ""


def read_feature(document: Document, id_: str) -> SpecKitFeature:
    required, shown = list(_requirements(document)), list(_scenarios(document))
    title = next((_TITLE.sub("", one.title, count=1) for one in document.headings if one.level == 1), "") or id_
    first = next((one.line for one in document.headings if one.level == 2), len(document.lines) + 1)
    start = next((one.line for one in document.headings if one.level == 1), 0)
    preamble = document.trimmed_text(
        Span(max(start, document.frontmatter.end if document.frontmatter else 0) + 1, first - 1)
    )
    front = render_frontmatter({"id": id_, "type": "spec", "title": title, "version": 1})
    parts = [front.rstrip("\n"), f"# Spec: {title}"]
    parts += ["## Overview", preamble] if preamble else []
    parts += ["## Requirements"] if required else []
    for number, one in enumerate(required, 1):
        parts.append("\n".join((f"### R{number}: {one.title or one.name}", "", *one.lines)))
    parts += ["## Acceptance Criteria"] if shown else []
    parts += ["\n".join((f"### Scenario: {one.name}", "", *one.lines)) for one in shown]
    parts += _rest(document, [one.span for one in (*required, *shown)])
    request = _INPUT.search(preamble)
    return SpecKitFeature(
        title=title,
        request=request[1].strip().strip('"') if request else "",
        text="\n\n".join(parts) + "\n",
        notes=tuple(_notes(document, required, shown)),
    )


def _items(document: Document) -> Iterator[tuple[Span, str]]:
    """Yield each list item as a span, with the heading above it."""
    ends = {heading.line for heading in document.headings}
    heading, start, indent = "", 0, 0
    titles = {one.line: one.title for one in document.headings}
    lines = list(document.plain_lines(document.span))
    for line, content in [*lines, (len(document.lines) + 1, "")]:
        match = _ITEM.match(content)
        deeper = content.startswith(" " * (indent + 2)) and content.strip()
        if start and (line in ends or not content.strip() or (match and not deeper)):
            yield Span(start, line - 1), heading
            start = 0
        heading = titles.get(line, heading)
        if match and not start:
            start, indent = line, len(match[1])


def _requirements(document: Document) -> Iterator[_MappedItem]:
    for span, _ in _items(document):
        match = _REQUIREMENT.match(document.content(span.start))
        if match:
            more = [document.content(line) for line in range(span.start + 1, span.end + 1)]
            yield _MappedItem(
                span, match[1], (f"**{match[1]}**: {match[2]}".rstrip(), *more), _titled([match[2], *more])
            )


def _titled(lines: list[str]) -> str:
    """Return the first sentence of a requirement, shortened to fit a title."""
    words = one_line(" ".join(lines)).partition(_ASK)[0].strip()
    sentence = _SENTENCE.split(words, maxsplit=1)[0].strip()
    if len(sentence) <= _LONGEST:
        return sentence
    return sentence[: _LONGEST - 1].rpartition(" ")[0].rstrip(" ,") + " …"


def _scenarios(document: Document) -> Iterator[_MappedItem]:
    counts: dict[str, int] = {}
    for span, heading in _items(document):
        if _GIVEN.match(document.content(span.start)):
            words = trim_lines([document.content(line).strip() for line in range(span.start, span.end + 1)])
            steps = _steps(words)
            if {"WHEN", "THEN"} <= {word for word, _ in steps}:
                story = _PRIORITY.sub("", heading) or "Acceptance"
                counts[story] = counts.get(story, 0) + 1
                lines = tuple(f"- **{word}** {said}" for word, said in steps)
                yield _MappedItem(span, f"{story}, {counts[story]}", lines)


def _steps(words: str) -> list[tuple[str, str]]:
    pieces = _WORD.split(words)
    return [
        (word.upper(), said.rstrip(" ,;\n").replace("\n", "\n  "))
        for word, said in zip(pieces[1::2], pieces[2::2], strict=True)
    ]


def _rest(document: Document, mapped: list[Span]) -> list[str]:
    """Return all other sections unchanged, and the subsections of `Requirements` one level higher."""
    gone = {line for span in mapped for line in range(span.start, span.end + 1)}
    gone |= {
        line for line, content in document.plain_lines(document.span) if _is_empty_label(document, line, content, gone)
    }
    found: list[str] = []
    for section in document.sections:
        if section.heading.level != 2:
            continue
        if section.heading.key.startswith("requirements"):
            found += _raised(document, section, gone)
        elif words := _left(document, section.inner, gone):
            found += [f"## {section.heading.title}", words]
    return found


def _is_empty_label(document: Document, line: int, content: str, gone: set[int]) -> bool:
    """Return whether this is `**Acceptance Scenarios**:` with no scenario left below it."""
    if not _LABEL.fullmatch(content):
        return False
    rest = (one for number, one in document.plain_lines(Span(line + 1, len(document.lines))) if number not in gone)
    below = next((one for one in rest if one.strip()), "")
    return not _ITEM.match(below)


def _raised(document: Document, section: Section, gone: set[int]) -> list[str]:
    found = []
    if words := _left(document, section.own, gone):
        found += ["## Notes on the Requirements", words]
    for inner in document.sections:
        if inner.heading.level == 3 and inner.heading.line in section.inner:
            words = _left(document, inner.inner, gone)
            found += [f"## {inner.heading.title}", words] if words else []
    return found


def _left(document: Document, span: Span, gone: set[int]) -> str:
    return trim_lines([document.content(line) for line in range(span.start, span.end + 1) if line not in gone])


def _notes(document: Document, required: list[_MappedItem], shown: list[_MappedItem]) -> Iterator[ImportNote]:
    source = document.name
    if not required:
        yield ImportNote(source, 0, "has no functional requirement such as `- **FR-001**: …`")
    if not shown:
        yield ImportNote(source, 0, "has no acceptance scenario with Given, When and Then")
    else:
        yield ImportNote(
            source, shown[0].span.start, "acceptance scenarios name no requirement; they belong to the whole spec"
        )
    mapped = {one.span.start for one in shown}
    for span, _ in _items(document):
        if _GIVEN.match(document.content(span.start)) and span.start not in mapped:
            yield ImportNote(source, span.start, "does not say When and Then; it stays as text")
    first: dict[str, int] = {}
    for one in required:
        if first.setdefault(one.name, one.span.start) != one.span.start:
            yield ImportNote(
                source, one.span.start, f"{one.name} occurs twice, first on line {first[one.name]}; both are kept"
            )
    for line, content in document.plain_lines(document.span):
        if _ASK in content:
            yield ImportNote(source, line, "still needs clarification")


SPECKIT_FOLDERS = ("specs", ".specify", "memory")
SPECKIT_TOOL = "Spec Kit"

_FEATURE = re.compile(r"specs/([^./][^/]*)/(.+)")
_NUMBERED = re.compile(r"\d+(?:-\d+)*-(?=[^\d])")
_DEPENDS = re.compile(r"depends on ((?:T\d+(?:,\s*|\s+and\s+)?)+)", re.IGNORECASE)
_OWN = frozenset({"spec.md", "plan.md", "tasks.md"})
_CONSTITUTION = "constitution.md"


def read_speckit(tree: SourceTree, now: str) -> ImportedProject:
    notes = [*tree.notes]
    folders: dict[str, dict[str, bytes]] = {}
    for source, data in tree.files.items():
        if match := _FEATURE.fullmatch(source):
            folders.setdefault(match[1], {})[match[2]] = data
        elif source.endswith(f"memory/{_CONSTITUTION}"):
            notes.append(ImportNote(source, 0, "is not imported; put what agents must know where they read it"))
    taken: set[str] = set()
    specs: set[str] = set()
    changes = []
    for name, files in folders.items():
        if _OWN.isdisjoint(files):
            notes.append(ImportNote(f"specs/{name}", 0, "has no spec.md, plan.md or tasks.md; not mapped"))
            continue
        id_ = unique_id(name if CHANGE_ID.fullmatch(name) else suggest_change_id(name) or "feature", taken)
        taken.add(id_)
        if id_ != name:
            notes.append(ImportNote(f"specs/{name}", 0, f"'{name}' is {id_} here"))
        spec_id = unique_id(_NUMBERED.sub("", id_, count=1), specs)
        specs.add(spec_id)
        changes.append(_change(tree, name, id_, spec_id, files, now, notes))
    return ImportedProject(SPECKIT_TOOL, (), tuple(changes), {}, tuple(notes))


def _change(
    tree: SourceTree, name: str, id_: str, spec_id: str, files: Mapping[str, bytes], now: str, notes: list[ImportNote]
) -> ImportedChange:
    source = f"specs/{name}"
    made = {f"{KEPT}/{path}": data for path, data in files.items()}
    for path in sorted(files.keys() - _OWN):
        words = f"is kept beside, in {KEPT}/{path}"
        notes.append(ImportNote(f"{source}/{path}", 0, words, f"files are kept beside, in {KEPT}/"))
    documents: dict[str, Document] = {}
    for path in sorted(_OWN & files.keys()):
        try:
            documents[path] = parse_document(decode_text(files[path], f"{source}/{path}"), f"{source}/{path}")
        except InvalidDocument as error:
            notes.append(ImportNote(f"{source}/{path}", error.line, f"{error.problem}; not mapped"))
    feature = _feature(documents.get("spec.md"), f"{source}/spec.md", spec_id, notes)
    if feature:
        made[f"specs/{spec_id}.md"] = feature.text.encode()
    summary = feature.request if feature else ""
    if plan := documents.get("plan.md"):
        section = plan.section("Summary")
        summary = (plan.trimmed_text(section.inner) if section else "") or summary
        words = f"only its Summary is mapped; the whole file is kept in {KEPT}/plan.md"
        notes.append(ImportNote(plan.name, 0, words))
    specs = [spec_id] if feature else []
    affected = [{"id": one, "depends": yaml12.FlowList()} for one in specs]
    front = {"id": id_, "type": "proposal", "version": 1, "created": now, "affected_specs": affected}
    parts = [f"# Change: {one_line(feature.title) if feature else id_}"]
    parts += ["## Summary", embed_text(summary, 2)] if summary else []
    made["proposal.md"] = (render_frontmatter(front) + "\n" + "\n\n".join(parts) + "\n").encode()
    notes.append(ImportNote(source, 0, "has no Why, What Changes and Impact, which validation asks for"))
    listed: list[ListedTask] = []
    if tasks := documents.get("tasks.md"):
        listed = task_lists.read_boxes(tasks.text, tasks.name)
        notes += task_lists.task_notes(listed, tasks.name)
    else:
        notes.append(ImportNote(f"{source}/tasks.md", 0, "is missing or unreadable, so there is no tasks.md"))
    if listed:
        written = task_lists.tasks_document(
            listed, SPECKIT_TOOL, id_, lambda place: list(_depends(listed, place)), tree.is_file
        )
        made["tasks.md"] = written.encode()
    words = one_line(summary or (feature.title if feature else id_))[:300]
    bases = dict.fromkeys(specs)
    return ImportedChange(source, id_, words or id_, now, Phase.PROPOSED, made, bases, len(listed))


def _feature(document: Document | None, source: str, spec_id: str, notes: list[ImportNote]) -> SpecKitFeature | None:
    if document is None:
        notes.append(ImportNote(source, 0, "is missing or unreadable, so the change has no spec"))
        return None
    feature = read_feature(document, spec_id)
    notes += feature.notes
    try:
        touched_units(feature.text, None, spec_id)
    except InvalidDocument as error:
        notes.append(ImportNote(source, 0, f"{error.problem} (line {error.line} of our specs/{spec_id}.md)"))
    return feature


def _depends(listed: list[ListedTask], place: int) -> Iterator[int]:
    """Yield the tasks that a task names; without [P], also the one before it under the same heading."""
    one = listed[place]
    named = {number for match in _DEPENDS.finditer(one.words) for number in re.findall(r"T\d+", match[1])}
    before = place - 1 if place and listed[place - 1].heading == one.heading and "P" not in one.marks else -1
    for other, row in enumerate(listed):
        if other != place and (row.number in named or other == before):
            yield other
