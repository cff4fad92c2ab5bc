"""What a change would do to the main specs, and where others have changed the same parts since it began."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.change import Change, format_names, linked_documents, plan_files
from agentd.documents import decode_text, embed_text, one_line, parse_document, parse_spec
from agentd.domain import AgentdError, Bug, FormatInvalid, Refusal, StateError, pluralize
from agentd.merge import SpecConflict, SpecTouch, TouchKind, UnitKind, merge_spec, stamp_version
from agentd.storage import files

_MERGED_SECTION = re.compile(r"overview|acceptance criteria|requirements|(?:removed|renamed)(?: requirements)?")


class MergeConflict(Refusal):
    """Others changed the same part of a spec."""

    def __init__(self, message: str, hint: str, conflicts: tuple[SpecConflict, ...]) -> None:
        super().__init__(message, hint)
        self.conflicts = conflicts


@dataclass(frozen=True)
class SpecVersions:
    """A spec of the change, the main spec, and the main spec as it was when the change began."""

    id: str
    yours: str
    main: str | None
    base: str | None
    yours_hash: str
    main_hash: str


@dataclass(frozen=True)
class SpecPreview:
    """The main spec before and after archiving; `after` is None if nothing is written."""

    id: str
    before: str | None
    after: str | None
    version: int
    touches: tuple[SpecTouch, ...]
    conflicts: tuple[SpecConflict, ...]
    before_hash: str = ""

    @property
    def is_new(self) -> bool:
        return self.before is None


def change_spec_files(change: Change) -> list[Path]:
    """Return the change's spec files. Raise StateError for a link, because nobody has reviewed what it points to."""
    if links := linked_documents(change.folder):
        name = f"agentd/changes/{change.id}/{links[0]}"
        raise StateError(f"{name} is or is behind a link", "replace the link by the text, then have it judged again")
    return sorted(path for path in plan_files(change.folder) if path.parent.name == "specs")


def main_spec_path(change: Change, id_: str) -> Path:
    return change.project.specs_in(change.tree) / f"{id_}.md"


def read_optional(path: Path) -> str | None:
    """Return the text of a file, or None if it does not exist."""
    return _read_hashed(path)[0]


def _read_hashed(path: Path) -> tuple[str | None, str]:
    try:
        data = files.read(path)
    except FileNotFoundError:
        return None, ""
    with fixable():
        return decode_text(data, os.path.relpath(path)), files.hash_bytes(data)


@contextmanager
def fixable(then: str = "run the command again") -> Iterator[None]:
    """Add a hint to fix an unreadable file by hand, because no validation checks the main specs."""
    try:
        yield
    except FormatInvalid as error:
        raise FormatInvalid(error.message, f"fix it, then {then}") from None


def read_versions(change: Change, path: Path) -> SpecVersions:
    """Read a spec of the change and its main spec. Without a stored base, use the main spec if the versions agree."""
    id_, bases = path.stem, change.read().base.specs
    (yours, yours_hash), (main, main_hash) = _read_hashed(path), _read_hashed(main_spec_path(change, id_))
    base, base_hash = _read_hashed(change.folder / "base" / f"{id_}.md")
    if (wanted := bases.get(id_)) and wanted != base_hash:
        name = f"agentd/changes/{change.id}/base/{id_}.md"
        if base is None:
            raise StateError(f"{name}, the text that the change began from, is gone", f"git checkout HEAD -- {name}")
        raise StateError(f"{name} is not the text that the change began from", f"git log -p -- {name}")
    if base is None and id_ not in bases and main is not None:
        with fixable():
            base_version = parse_spec(yours or "", f"specs/{id_}.md").base_version
            base = main if base_version == (parse_spec(main, f"agentd/specs/{id_}.md").version or 1) else None
    return SpecVersions(id_, yours or "", main, base, yours_hash, main_hash)


def preview_spec(change: Change, path: Path, pattern: re.Pattern[str], date: str) -> SpecPreview:
    """Preview the merge of one spec. Raise an error if it cannot be read."""
    spec = read_versions(change, path)
    with fixable():
        merged = merge_spec(spec.main, spec.yours, spec.base, spec.id, pattern)
    version = parse_spec(spec.yours if spec.main is None else spec.main, spec.id).version or 1
    if merged.conflicts or not merged.touches or merged.text is None:
        return SpecPreview(spec.id, spec.main, None, version, merged.touches, merged.conflicts)
    version += spec.main is not None
    after = stamp_version(merged.text, version, date, change.id, spec.id)
    try:  # verify that the result contains the whole change before it may replace the main spec
        again = merge_spec(after, spec.yours, spec.base, spec.id, pattern)
    except AgentdError as error:
        raise Bug(f"{spec.id} cannot be read after the merge: {error.message}; nothing was written") from error
    if again.conflicts or again.touches:
        raise Bug(f"{spec.id} would lack a part of the change after the merge; nothing was written")
    return SpecPreview(spec.id, spec.main, after, version, merged.touches, (), spec.main_hash)


def merge_warnings(change: Change, pattern: re.Pattern[str]) -> list[str]:
    """Warn about what a merge cannot see: requirements others removed or renamed, and a delta's other sections."""
    removed: list[str] = []
    sections: list[str] = []
    for path in change_spec_files(change):
        spec = read_versions(change, path)
        if spec.main is None:
            continue
        if spec.base is not None:
            with fixable():
                yours, main, base = (parse_spec(one, path.name, pattern) for one in (spec.yours, spec.main, spec.base))
            gone = [one.id for one in yours.removed if one.id and base.requirement(one.id)]
            removed += [f"{spec.id}:{id_}" for id_ in gone if not main.requirement(id_)]
        headings = (section.heading for section in parse_document(spec.yours, path.name).sections)
        sections += [
            f"specs/{path.name}:{heading.line} `## {heading.title}`"
            for heading in headings
            if heading.level == 2 and not _MERGED_SECTION.fullmatch(heading.key)
        ]
    found = []
    if removed:
        words = "is removed here and no longer in the main specs; if others renamed it, it is still there"
        found.append(f"{', '.join(removed)} {words}")
    if sections:
        words = "not merged: a delta has only requirements and scenarios; edit agentd/specs/ by hand"
        found.append(f"{format_names(sections)}: {words}")
    return found


CHANGELOG_FILE = "CHANGELOG.md"
_TITLE = "# Changelog of the specs"


def add_changelog_entry(
    text: str | None, change_id: str, date: str, description: str, specs: Sequence[SpecPreview]
) -> str:
    """Add an entry below the title and any introduction, above all older entries."""
    lines = [f"- `{one.id}`: {describe_spec_change(one)}" for one in specs] or ["No spec changed."]
    entry = "\n".join([f"## {date}: {change_id}", "", embed_text(one_line(description)), "", *lines])
    if text is None or not text.strip():
        return f"{_TITLE}\n\n{entry}\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    entry = entry.replace("\n", newline)
    first = re.search(r"^## ", text, re.MULTILINE)
    if first is None:
        return f"{text.rstrip()}{newline * 2}{entry}{newline}"
    return f"{text[: first.start()]}{entry}{newline * 2}{text[first.start() :]}"


def describe_spec_change(spec: SpecPreview) -> str:
    """Describe the change: `new, version 1` or `version 4: R5 added, R2 changed, 3 scenarios changed`."""
    if spec.is_new:
        return f"new, version {spec.version}"
    if spec.after is None:
        return "unchanged"
    requirements: dict[str, None] = {}
    scenarios: Counter[str] = Counter()  # there may be many, so only count them
    for touch in spec.touches:
        verb = "changed" if touch.how is TouchKind.MODIFIED else str(touch.how)
        if touch.kind is UnitKind.SCENARIO:
            scenarios[verb] += 1
        else:
            requirements[f"{touch.name.partition(':')[2]} {verb}"] = None
    counts = [f"{pluralize(count, 'scenario')} {verb}" for verb, count in scenarios.items()]
    return f"version {spec.version}: {', '.join([*requirements, *counts])}"
