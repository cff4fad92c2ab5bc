"""Read a whole OpenSpec project: main specs, open changes, the archive."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agentd.change import suggest_change_id, unique_id
from agentd.documents import InvalidDocument, decode_text
from agentd.domain import CHANGE_ID, Phase
from agentd.migrate import openspec_delta, openspec_spec, task_lists
from agentd.migrate.import_model import KEPT, ImportedChange, ImportedProject, ImportedSpec, ImportNote, SourceTree
from agentd.migrate.openspec_delta import RequirementIds
from agentd.migrate.openspec_spec import NumberedSpec

OPENSPEC_FOLDER = "openspec"
OPENSPEC_TOOL = "OpenSpec"

_SPEC = re.compile(r"openspec/specs/([^.][^/]*(?:/[^.][^/]*)*)/spec\.md")
_ARCHIVED = re.compile(r"openspec/changes/archive/([^./][^/]*)/(.+)")
_CHANGE = re.compile(r"openspec/changes/(?!archive/)([^./][^/]*)/(.+)")
_DELTA = re.compile(r"specs/([^.][^/]*(?:/[^.][^/]*)*)/spec\.md")
_DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})-(.+)")
_CREATED = re.compile(rb"^created:\s*['\"]?(\d{4}-\d{2}-\d{2})['\"]?\s*$", re.MULTILINE)

T = TypeVar("T")


def read_openspec(tree: SourceTree, now: str) -> ImportedProject:
    """Read the project; `now` is the creation time of changes that do not state one."""
    reader = _OpenSpecReader(tree, now, [*tree.notes])
    specs = tuple(reader.specs())
    changes = tuple(reader.change(name, files) for name, files in reader.folders(_CHANGE).items())
    archived = dict(reader.archived_change(name, files) for name, files in reader.folders(_ARCHIVED).items())
    for source in tree.files:
        if not any(pattern.fullmatch(source) for pattern in (_SPEC, _CHANGE, _ARCHIVED)):
            reader.note(source, 0, "is neither a spec nor a change, and stays where it is")
    return ImportedProject(OPENSPEC_TOOL, specs, changes, archived, tuple(reader.notes))


@dataclass(slots=True)
class _OpenSpecReader:
    tree: SourceTree
    now: str
    notes: list[ImportNote]
    mains: dict[str, NumberedSpec] = field(default_factory=dict)
    """The main specs by capability."""
    spec_ids: dict[str, str] = field(default_factory=dict)
    """Our spec id for each capability."""
    requirement_ids: dict[str, RequirementIds] = field(default_factory=dict)
    change_ids: set[str] = field(default_factory=set)

    def note(self, source: str, line: int, message: str, alike: str = "") -> None:
        self.notes.append(ImportNote(source, line, message, alike))

    def attempt(self, source: str, convert: Callable[[], T]) -> T | None:
        """Return None, with a note, if the document is invalid."""
        try:
            return convert()
        except InvalidDocument as error:
            self.note(source, error.line, f"cannot be read: {error.problem}; not mapped")
            return None

    def decode(self, files: Mapping[str, bytes], folder: str, path: str) -> str | None:
        source = f"{folder}/{path}".lstrip("/")
        return self.attempt(source, lambda: decode_text(files[path], source)) if path in files else None

    def spec_id(self, capability: str) -> str:
        if capability not in self.spec_ids:
            wanted = suggest_change_id(capability) or "spec"
            self.spec_ids[capability] = unique_id(wanted, self.spec_ids.values())
        return self.spec_ids[capability]

    def change_id(self, name: str, source: str) -> str:
        id_ = unique_id(name if CHANGE_ID.fullmatch(name) else suggest_change_id(name) or "change", self.change_ids)
        self.change_ids.add(id_)
        if id_ != name:
            self.note(source, 0, f"'{name}' is {id_} here")
        return id_

    def folders(self, pattern: re.Pattern[str]) -> dict[str, dict[str, bytes]]:
        """Return the files of each folder by their path in it."""
        found: dict[str, dict[str, bytes]] = {}
        for source, data in self.tree.files.items():
            if match := pattern.fullmatch(source):
                found.setdefault(match[1], {})[match[2]] = data
        return found

    def specs(self) -> Iterator[ImportedSpec]:
        for source in self.tree.files:
            match = _SPEC.fullmatch(source)
            text = self.decode(self.tree.files, "", source) if match else None
            if match is None or text is None:
                continue
            capability = match[1]
            id_ = self.spec_id(capability)
            spec = self.attempt(
                source,
                lambda: openspec_spec.number_requirements(text, source, id_, capability),  # noqa: B023
            )
            if spec is None:
                continue
            if spec.id != capability:
                self.note(source, 0, f"'{capability}' is {spec.id} here")
            self.notes += spec.notes
            self.mains[capability] = spec
            self.requirement_ids[capability] = RequirementIds(dict(spec.ids), spec.highest)
            yield ImportedSpec(source, spec.id, spec.text, *spec.counts)

    def change(self, name: str, files: Mapping[str, bytes]) -> ImportedChange:
        source = f"{OPENSPEC_FOLDER}/changes/{name}"
        id_ = self.change_id(name, source)
        made: dict[str, bytes] = {}
        bases: dict[str, str | None] = {}
        text = self.decode(files, source, "proposal.md")
        overviews = openspec_spec.proposal_capabilities(text)
        for path, data in files.items():
            noted = len(self.notes)
            if match := _DELTA.fullmatch(path):
                self.delta(match[1], files, source, path, overviews.get(match[1], ""), made, bases)
            elif path not in ("proposal.md", "tasks.md"):
                alike = f"files are kept beside, in {KEPT}/"
                self.note(f"{source}/{path}", 0, f"is kept beside, in {KEPT}/{path}", alike)
            if path != "proposal.md" and (path == "tasks.md" or len(self.notes) > noted):
                made[f"{KEPT}/{path}"] = data  # not everything was converted
        day = _CREATED.search(files.get(".openspec.yaml", b""))
        created = f"{day[1].decode()}T00:00:00Z" if day else self.now
        proposal = None
        if text is not None:
            path = f"{source}/proposal.md"
            proposal = self.attempt(path, lambda: openspec_spec.convert_proposal(text, path, id_, created, list(bases)))
        if "proposal.md" in files and not (proposal and proposal.is_whole):
            made[f"{KEPT}/proposal.md"] = files["proposal.md"]
        if proposal:
            self.notes += proposal.notes
            made["proposal.md"] = proposal.text.encode()
        else:
            self.note(source, 0, "has no readable proposal, so it is still being drafted")
        count = self.tasks(files, source, id_, made)
        phase = Phase.PROPOSED if proposal else Phase.DRAFTING
        description = openspec_spec.proposal_description(text, id_)
        return ImportedChange(source, id_, description, created, phase, made, bases, count)

    def delta(
        self,
        capability: str,
        files: Mapping[str, bytes],
        folder: str,
        path: str,
        overview: str,
        made: dict[str, bytes],
        bases: dict[str, str | None],
    ) -> None:
        text = self.decode(files, folder, path)
        if text is None:
            return
        id_, main, source = self.spec_id(capability), self.mains.get(capability), f"{folder}/{path}"
        ids = self.requirement_ids.setdefault(capability, RequirementIds())
        converted = self.attempt(
            source, lambda: openspec_delta.convert_delta(text, source, capability, id_, main, ids, overview)
        )
        if converted:
            self.notes += converted[1]
            made[f"specs/{id_}.md"] = converted[0].encode()
            bases[id_] = main.text if main else None

    def tasks(self, files: Mapping[str, bytes], folder: str, id_: str, made: dict[str, bytes]) -> int:
        if "tasks.md" not in files:
            self.note(folder, 0, "has no tasks.md")
            return 0
        source = f"{folder}/tasks.md"
        text = self.decode(files, folder, "tasks.md")
        listed = [] if text is None else self.attempt(source, lambda: task_lists.read_boxes(text, source))
        if listed is None:
            return 0
        self.notes += task_lists.task_notes(listed, source)
        if listed:
            tasks = task_lists.tasks_document(listed, OPENSPEC_TOOL, id_, lambda _: [], self.tree.is_file)
            made["tasks.md"] = tasks.encode()
        return len(listed)

    def archived_change(self, name: str, files: Mapping[str, bytes]) -> tuple[str, ImportedChange]:
        """Keep the files as they are; their specs are already in the main ones."""
        source = f"{OPENSPEC_FOLDER}/changes/archive/{name}"
        dated = _DATED.fullmatch(name)
        id_ = self.change_id(dated[4] if dated else name, source)
        created = "-".join(dated.groups()[:3]) + "T00:00:00Z" if dated else self.now
        description = openspec_spec.proposal_description(self.decode(files, source, "proposal.md"), id_)
        made = {f"{KEPT}/{path}": data for path, data in files.items()}
        folder = f"{created[:10].replace('-', '')}-{id_}"
        return folder, ImportedChange(source, id_, description, created, Phase.ARCHIVED, made, {})
