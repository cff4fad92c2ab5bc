"""A whole Spec Kit project: a change for each feature folder."""

import re
from collections.abc import Callable, Iterator, Mapping

from agentd.change import suggest_change_id, unique_id
from agentd.documents import InvalidDocument, decode_text, embed_text, one_line, parse_document, render_frontmatter
from agentd.domain import CHANGE_ID, Phase, yaml12
from agentd.merge import touched_units
from agentd.migrate import speckit_spec, task_lists
from agentd.migrate.import_model import KEPT, ImportedChange, ImportedProject, ImportNote
from agentd.migrate.source_tree import SourceTree
from agentd.migrate.speckit_spec import SpecKitFeature
from agentd.migrate.task_lists import ListedTask

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
            notes.append(
                ImportNote(source, 0, "has no place here and stays; put what agents must know where they read it")
            )
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
    texts = {
        path: text for path in sorted(_OWN & files.keys()) if (text := _text(files[path], f"{source}/{path}", notes))
    }
    bases: dict[str, str | None] = {}
    found = _feature(texts.get("spec.md"), f"{source}/spec.md", spec_id, notes)
    if found:
        made[f"specs/{spec_id}.md"] = found.text.encode()
        bases[spec_id] = None
    summary = _summary(texts.get("plan.md"), f"{source}/plan.md", notes) or (found.wish if found else "")
    made["proposal.md"] = _proposal(id_, now, found, summary, list(bases)).encode()
    notes.append(ImportNote(source, 0, "says no Why, What Changes and Impact, which validation asks for"))
    count = _tasks(texts.get("tasks.md"), f"{source}/tasks.md", id_, made, notes, tree.is_file)
    words = one_line(summary or (found.title if found else id_))[:300]
    return ImportedChange(source, id_, words or id_, now, Phase.PROPOSED, made, bases, count)


def _text(data: bytes, source: str, notes: list[ImportNote]) -> str | None:
    try:
        text = decode_text(data, source)
        parse_document(text, source)
    except InvalidDocument as error:
        notes.append(ImportNote(source, error.line, f"{error.problem}; not mapped"))
        return None
    return text


def _feature(text: str | None, source: str, spec_id: str, notes: list[ImportNote]) -> SpecKitFeature | None:
    if text is None:
        notes.append(ImportNote(source, 0, "is not there or cannot be read, so the change has no spec"))
        return None
    found = speckit_spec.read_feature(text, source, spec_id)
    notes += found.notes
    try:
        touched_units(found.text, None, spec_id)
    except InvalidDocument as error:
        notes.append(ImportNote(source, 0, f"{error.problem} (line {error.line} of our specs/{spec_id}.md)"))
    return found


def _summary(text: str | None, source: str, notes: list[ImportNote]) -> str:
    """The Summary of plan.md; all else in it has no place here."""
    if text is None:
        return ""
    document = parse_document(text, source)
    section = document.section("Summary")
    notes.append(ImportNote(source, 0, f"only its Summary is mapped; the whole is kept in {KEPT}/plan.md"))
    return document.words(section.inner) if section else ""


def _proposal(id_: str, now: str, found: SpecKitFeature | None, summary: str, specs: list[str]) -> str:
    affected = [{"id": one, "depends": yaml12.FlowList()} for one in specs]
    front = {"id": id_, "type": "proposal", "version": 1, "created": now, "affected_specs": affected}
    parts = [f"# Change: {one_line(found.title) if found else id_}"]
    parts += ["## Summary", embed_text(summary, 2)] if summary else []
    return render_frontmatter(front) + "\n" + "\n\n".join(parts) + "\n"


def _tasks(
    text: str | None,
    source: str,
    id_: str,
    made: dict[str, bytes],
    notes: list[ImportNote],
    is_file: Callable[[str], bool],
) -> int:
    if text is None:
        notes.append(ImportNote(source, 0, "is not there or cannot be read, so there is no tasks.md"))
        return 0
    listed = task_lists.read_boxes(text, source)
    notes += task_lists.task_notes(listed, source)
    if listed:
        written = task_lists.tasks_document(
            listed, SPECKIT_TOOL, id_, lambda place: list(_depends(listed, place)), is_file
        )
        made["tasks.md"] = written.encode()
    return len(listed)


def _depends(listed: list[ListedTask], place: int) -> Iterator[int]:
    """What a task says it depends on; without a [P] also the one before it under the same heading."""
    one = listed[place]
    named = {number for match in _DEPENDS.finditer(one.words) for number in re.findall(r"T\d+", match[1])}
    before = place - 1 if place and listed[place - 1].heading == one.heading and "P" not in one.marks else -1
    for other, row in enumerate(listed):
        if other != place and (row.number in named or other == before):
            yield other
