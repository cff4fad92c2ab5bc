"""A whole OpenSpec project: main specs, open changes, the archive."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from agentd.change import suggest_change_id, unique_id
from agentd.documents import InvalidDocument, decode_text
from agentd.domain import CHANGE_ID, Phase
from agentd.migrate import openspec_delta, openspec_spec, task_lists
from agentd.migrate.import_model import KEPT, ImportedChange, ImportedProject, ImportedSpec, ImportNote, SourceTree
from agentd.migrate.openspec_delta import RequirementIds
from agentd.migrate.openspec_spec import ConvertedProposal, NumberedSpec

OPENSPEC_FOLDER = "openspec"
OPENSPEC_TOOL = "OpenSpec"

_SPEC = re.compile(r"openspec/specs/([^.][^/]*(?:/[^.][^/]*)*)/spec\.md")
_ARCHIVED = re.compile(r"openspec/changes/archive/([^./][^/]*)/(.+)")
_CHANGE = re.compile(r"openspec/changes/([^./][^/]*)/(.+)")
_DELTA = re.compile(r"specs/([^.][^/]*(?:/[^.][^/]*)*)/spec\.md")
_DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})-(.+)")
_BESIDE = f"files are kept beside, in {KEPT}/"
_READ = frozenset({"proposal.md", "tasks.md"})


@dataclass(slots=True)
class _OpenSpecReader:
    """What is known of the whole project while its changes are read."""

    tree: SourceTree
    now: str
    notes: list[ImportNote]
    mains: dict[str, NumberedSpec] = field(default_factory=dict)
    """The main specs by capability."""
    ids: dict[str, str] = field(default_factory=dict)
    """Our spec id for each capability."""
    numbers: dict[str, RequirementIds] = field(default_factory=dict)

    def spec_id(self, capability: str) -> str:
        if capability not in self.ids:
            wanted = suggest_change_id(capability) or "spec"
            self.ids[capability] = unique_id(wanted, self.ids.values())
        return self.ids[capability]


def read_openspec(tree: SourceTree, now: str) -> ImportedProject:
    """`now` is when changes began that do not say it."""
    desk = _OpenSpecReader(tree, now, [*tree.notes])
    specs = tuple(_specs(tree, desk))
    changes = _folders(tree, _CHANGE, lambda name: name != "archive")
    archived = _folders(tree, _ARCHIVED, lambda name: True)
    taken: set[str] = set()
    found = tuple(_change(desk, name, files, taken) for name, files in changes.items())
    ended = dict(_ended(desk, name, files, taken) for name, files in archived.items())
    desk.notes += _left_over(tree)
    return ImportedProject(OPENSPEC_TOOL, specs, found, ended, tuple(desk.notes))


def _specs(tree: SourceTree, desk: _OpenSpecReader) -> Iterator[ImportedSpec]:
    for source, data in tree.files.items():
        match = _SPEC.fullmatch(source)
        text = _decoded(data, source, desk) if match else None
        if match is None or text is None:
            continue
        capability = match[1]
        try:
            spec = openspec_spec.number_requirements(text, source, desk.spec_id(capability), capability)
        except InvalidDocument as error:
            desk.notes.append(ImportNote(source, error.line, f"cannot be read: {error.problem}; not mapped"))
            continue
        if spec.id != capability:
            desk.notes.append(ImportNote(source, 0, f"'{capability}' is {spec.id} here"))
        desk.notes += spec.notes
        desk.mains[capability] = spec
        desk.numbers[capability] = RequirementIds(dict(spec.ids), spec.highest)
        yield ImportedSpec(source, spec.id, spec.text, *spec.counts)


def _folders(tree: SourceTree, pattern: re.Pattern[str], wanted: Callable[[str], bool]) -> dict[str, dict[str, bytes]]:
    """Files by their path in each folder."""
    found: dict[str, dict[str, bytes]] = {}
    for source, data in tree.files.items():
        match = pattern.fullmatch(source)
        if match and wanted(match[1]):
            found.setdefault(match[1], {})[match[2]] = data
    return found


def _decoded(data: bytes, source: str, desk: _OpenSpecReader) -> str | None:
    try:
        return decode_text(data, source)
    except InvalidDocument as error:
        desk.notes.append(ImportNote(source, error.line, f"{error.problem}; not mapped"))
        return None


def _left_over(tree: SourceTree) -> Iterator[ImportNote]:
    """Files of the project that are neither specs nor changes."""
    for source in tree.files:
        if not (_SPEC.fullmatch(source) or _CHANGE.fullmatch(source)):
            yield ImportNote(source, 0, "has no place here and stays where it is")


# ---- one change


def _id(desk: _OpenSpecReader, name: str, source: str, taken: set[str]) -> str:
    wanted = name if CHANGE_ID.fullmatch(name) else suggest_change_id(name) or "change"
    id_ = unique_id(wanted, taken)
    taken.add(id_)
    if id_ != name:
        desk.notes.append(ImportNote(source, 0, f"'{name}' is {id_} here"))
    return id_


def _change(desk: _OpenSpecReader, name: str, files: Mapping[str, bytes], taken: set[str]) -> ImportedChange:
    source = f"{OPENSPEC_FOLDER}/changes/{name}"
    id_ = _id(desk, name, source, taken)
    made: dict[str, bytes] = {}
    bases: dict[str, str | None] = {}
    text = _decoded(files["proposal.md"], f"{source}/proposal.md", desk) if "proposal.md" in files else None
    overviews = openspec_spec.proposal_capabilities(text)
    for path, data in files.items():
        told = len(desk.notes)
        if match := _DELTA.fullmatch(path):
            _delta(desk, match[1], data, f"{source}/{path}", overviews.get(match[1], ""), made, bases)
        elif path not in _READ:
            desk.notes.append(ImportNote(f"{source}/{path}", 0, f"is kept beside, in {KEPT}/{path}", _BESIDE))
        if path != "proposal.md" and (path == "tasks.md" or len(desk.notes) > told):
            made[f"{KEPT}/{path}"] = data  # not all of it is carried over
    created = _created(files.get(".openspec.yaml"), desk.now)
    written = _proposal(desk, text, f"{source}/proposal.md", id_, created, list(bases))
    if "proposal.md" in files and not (written and written.is_whole):
        made[f"{KEPT}/proposal.md"] = files["proposal.md"]
    if written:
        made["proposal.md"] = written.text.encode()
    else:
        desk.notes.append(ImportNote(source, 0, "has no proposal that can be read, so it is still being drafted"))
    count = _tasks(desk, files, source, id_, made)
    phase = Phase.PROPOSED if written else Phase.DRAFTING
    words = openspec_spec.proposal_description(text, id_)
    return ImportedChange(source, id_, words, created, phase, made, bases, count)


def _proposal(
    desk: _OpenSpecReader, text: str | None, source: str, id_: str, created: str, specs: list[str]
) -> ConvertedProposal | None:
    if text is None:
        return None
    try:
        written = openspec_spec.convert_proposal(text, source, id_, created, specs)
    except InvalidDocument as error:
        desk.notes.append(ImportNote(source, error.line, f"cannot be read: {error.problem}; not mapped"))
        return None
    desk.notes += written.notes
    return written


def _delta(
    desk: _OpenSpecReader,
    capability: str,
    data: bytes,
    source: str,
    overview: str,
    made: dict[str, bytes],
    bases: dict[str, str | None],
) -> None:
    text = _decoded(data, source, desk)
    if text is None:
        return
    id_, main = desk.spec_id(capability), desk.mains.get(capability)
    numbers = desk.numbers.setdefault(capability, RequirementIds())
    try:
        written, notes = openspec_delta.convert_delta(text, source, capability, id_, main, numbers, overview)
    except InvalidDocument as error:
        desk.notes.append(ImportNote(source, error.line, f"cannot be read: {error.problem}; not mapped"))
        return
    desk.notes += notes
    made[f"specs/{id_}.md"] = written.encode()
    bases[id_] = main.text if main else None


def _tasks(desk: _OpenSpecReader, files: Mapping[str, bytes], source: str, id_: str, made: dict[str, bytes]) -> int:
    path = f"{source}/tasks.md"
    if "tasks.md" not in files:
        desk.notes.append(ImportNote(source, 0, "has no tasks.md"))
        return 0
    text = _decoded(files["tasks.md"], path, desk)
    try:
        listed = task_lists.read_boxes(text, path) if text is not None else []
    except InvalidDocument as error:
        desk.notes.append(ImportNote(path, error.line, f"cannot be read: {error.problem}; not mapped"))
        return 0
    desk.notes += task_lists.task_notes(listed, path)
    if listed:
        made["tasks.md"] = task_lists.tasks_document(
            listed, OPENSPEC_TOOL, id_, lambda _: [], desk.tree.is_file
        ).encode()
    return len(listed)


def _created(data: bytes | None, now: str) -> str:
    """The day in .openspec.yaml, where it says one."""
    match = re.search(rb"^created:\s*['\"]?(\d{4}-\d{2}-\d{2})['\"]?\s*$", data or b"", re.MULTILINE)
    return f"{match[1].decode()}T00:00:00Z" if match else now


def _ended(desk: _OpenSpecReader, name: str, files: Mapping[str, bytes], taken: set[str]) -> tuple[str, ImportedChange]:
    """An archived change keeps its files as they are; its specs are in the main ones already."""
    source = f"{OPENSPEC_FOLDER}/changes/archive/{name}"
    dated = _DATED.fullmatch(name)
    id_ = _id(desk, dated[4] if dated else name, source, taken)
    created = "-".join(dated.groups()[:3]) + "T00:00:00Z" if dated else desk.now
    text = _decoded(files["proposal.md"], f"{source}/proposal.md", desk) if "proposal.md" in files else None
    made = {f"{KEPT}/{path}": data for path, data in files.items()}
    words = openspec_spec.proposal_description(text, id_)
    folder = f"{created[:10].replace('-', '')}-{id_}"
    return folder, ImportedChange(source, id_, words, created, Phase.ARCHIVED, made, {})
