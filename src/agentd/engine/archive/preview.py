"""What the main specs would become by a change, and where others have changed the same since it began."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.change import Change, ChangeState, linked_documents, plan_files
from agentd.documents import decode_text, embed_text, one_line, parse_document, parse_spec
from agentd.domain import AgentdError, Bug, FormatInvalid, Refusal, StateError, pluralize
from agentd.merge import SpecConflict, SpecTouch, TouchKind, UnitKind, merge_spec, stamp_version
from agentd.storage import files

_ASIDE = ("removed", "removed requirements", "renamed", "renamed requirements")
_CARRIED = frozenset({"overview", "requirements", "acceptance criteria", *_ASIDE})


class MergeConflict(Refusal):
    """Others changed the same part of a spec."""

    def __init__(self, message: str, hint: str, conflicts: tuple[SpecConflict, ...]) -> None:
        super().__init__(message, hint)
        self.conflicts = conflicts


@dataclass(frozen=True)
class SpecPreview:
    """One spec of the change beside the main one. `after` is None where nothing is to be written."""

    id: str
    before: str | None
    after: str | None
    version: int
    touches: tuple[SpecTouch, ...]
    conflicts: tuple[SpecConflict, ...]
    seen: str = ""
    """The hash of the main spec that was looked at."""

    @property
    def is_new(self) -> bool:
        return self.before is None


def preview_specs(change: Change, pattern: re.Pattern[str], date: str) -> tuple[SpecPreview, ...]:
    """Of each spec in the change's folder; none for a change without specs."""
    state = change.read()
    return tuple(preview_spec(change, state, path, pattern, date) for path in change_spec_files(change))


def change_spec_files(change: Change) -> list[Path]:
    """What is no file of its own was judged by nobody."""
    if links := linked_documents(change.folder):
        name = f"agentd/changes/{change.id}/{links[0]}"
        raise StateError(
            f"{name} is a link, or lies behind one", "put the text itself there, then have it judged again"
        )
    return sorted(path for path in plan_files(change.folder) if path.parent.name == "specs")


def main_spec_path(change: Change, id_: str) -> Path:
    return change.project.specs_in(change.tree) / f"{id_}.md"


def read_optional(path: Path) -> str | None:
    """None: there is no such file."""
    try:
        data = files.read(path)
    except FileNotFoundError:
        return None
    with _mendable():
        return decode_text(data, os.path.relpath(path))


def hash_or_empty(path: Path) -> str:
    """Empty: there is no such file."""
    try:
        return files.hash_bytes(files.read(path))
    except FileNotFoundError:
        return ""


def base_spec_text(change: Change, state: ChangeState, id_: str, main: str | None) -> str | None:
    """The main spec as it was when the change began. Where nobody kept it, it is today's if the versions agree."""
    path = change.folder / "base" / f"{id_}.md"
    kept, wanted = read_optional(path), state.base.specs.get(id_)
    if kept is not None:
        if wanted and files.hash_bytes(path.read_bytes()) != wanted:
            name = f"agentd/changes/{change.id}/base/{id_}.md"
            raise StateError(f"{name} is not the text that the change began from", f"git log -p -- {name}")
        return kept
    if wanted:
        name = f"agentd/changes/{change.id}/base/{id_}.md"
        raise StateError(f"{name}, the text that the change began from, is gone", f"git checkout HEAD -- {name}")
    if id_ in state.base.specs or main is None:
        return None
    with _mendable():
        yours = parse_spec(read_optional(change.folder / "specs" / f"{id_}.md") or "", f"specs/{id_}.md")
        return main if yours.base_version == (parse_spec(main, f"agentd/specs/{id_}.md").version or 1) else None


def preview_spec(change: Change, state: ChangeState, path: Path, pattern: re.Pattern[str], date: str) -> SpecPreview:
    """Of the spec in that file; what cannot be read is an error."""
    id_, yours = path.stem, read_optional(path) or ""
    seen, before = hash_or_empty(main_spec_path(change, id_)), read_optional(main_spec_path(change, id_))
    base = base_spec_text(change, state, id_, before)
    with _mendable():
        merged = merge_spec(before, yours, base, id_, pattern)
    version = parse_spec(yours if before is None else before, id_).version or 1
    if merged.conflicts or not merged.touches or merged.text is None:
        return SpecPreview(id_, before, None, version, merged.touches, merged.conflicts)
    version += before is not None
    after = stamp_version(merged.text, version, date, change.id, id_)
    _check(after, yours, base, id_, pattern)
    return SpecPreview(id_, before, after, version, merged.touches, (), seen)


def unmerged_sections(change: Change) -> list[str]:
    """Sections of deltas that no merge carries over: requirements and scenarios are all that it knows."""
    found = []
    for path in change_spec_files(change):
        if main_spec_path(change, path.stem).is_file():
            for section in parse_document(read_optional(path) or "", path.name).sections:
                heading = section.heading
                if heading.level == 2 and heading.key not in _CARRIED:
                    found.append(f"specs/{path.name}:{heading.line} `## {heading.title}`")
    return found


def already_removed(change: Change, pattern: re.Pattern[str]) -> list[str]:
    """Requirements that the change removes, and that others removed or renamed meanwhile: nobody can tell which."""
    found = []
    state = change.read()
    for path in change_spec_files(change):
        main = read_optional(main_spec_path(change, path.stem))
        base = base_spec_text(change, state, path.stem, main)
        if main is None or base is None:
            continue
        with _mendable():
            removed = [one.id for one in parse_spec(read_optional(path) or "", path.name, pattern).removed if one.id]
            there, then = (parse_spec(text, path.name, pattern) for text in (main, base))
        found += [f"{path.stem}:{id_}" for id_ in removed if then.requirement(id_) and not there.requirement(id_)]
    return found


@contextmanager
def _mendable() -> Iterator[None]:
    """What cannot be read is for a person to mend, in the main specs too, where no validation looks."""
    try:
        yield
    except FormatInvalid as error:
        raise FormatInvalid(error.message, "fix it, then run the command again") from None


def _check(after: str, yours: str, base: str | None, id_: str, pattern: re.Pattern[str]) -> None:
    """The result is read back before it may replace what is there: all of the change is in it."""
    try:
        again = merge_spec(after, yours, base, id_, pattern)
    except AgentdError as error:
        raise Bug(f"{id_} cannot be read after the merge: {error.message}; nothing was written") from error
    if again.conflicts or again.touches:
        raise Bug(f"{id_} would not say after the merge what the change says; nothing was written")


CHANGELOG_FILE = "CHANGELOG.md"
_TITLE = "# Changelog of the specs"
_WORDS = {
    TouchKind.ADDED: "added",
    TouchKind.MODIFIED: "changed",
    TouchKind.REMOVED: "removed",
    TouchKind.RENAMED: "renamed",
}


def add_changelog_entry(
    text: str | None, change_id: str, date: str, description: str, specs: Sequence[SpecPreview]
) -> str:
    """Under the title, above all older entries; a person's own words above the first entry stay there."""
    lines = [f"## {date}: {change_id}", "", embed_text(one_line(description)), "", *(_line(one) for one in specs)]
    entry = "\n".join(lines if specs else [*lines, "No spec changed."])
    if not (text or "").strip():
        return f"{_TITLE}\n\n{entry}\n"
    assert text is not None
    newline = "\r\n" if "\r\n" in text else "\n"
    at = 0 if text.startswith("## ") else text.find("\n## ") + 1
    if at == 0 and not text.startswith("## "):
        return f"{text.rstrip()}{newline * 2}{entry.replace(chr(10), newline)}{newline}"
    return f"{text[:at]}{entry.replace(chr(10), newline)}{newline * 2}{text[at:]}"


def describe_spec_change(outcome: SpecPreview) -> str:
    """New, version 1; or version 4: R5 added, R2 changed, 3 scenarios."""
    if outcome.is_new:
        return f"new, version {outcome.version}"
    if outcome.after is None:
        return "as it is already"
    return f"version {outcome.version}: {', '.join(_touches(outcome.touches))}"


def _line(outcome: SpecPreview) -> str:
    return f"- `{outcome.id}`: {describe_spec_change(outcome)}"


def _touches(touches: Sequence[SpecTouch]) -> list[str]:
    """Requirements by id; scenarios, which are many, by number."""
    own = dict.fromkeys(
        f"{one.name.partition(':')[2]} {_WORDS[one.how]}" for one in touches if one.kind is not UnitKind.SCENARIO
    )
    scenarios = [one.how for one in touches if one.kind is UnitKind.SCENARIO]
    counts = [(scenarios.count(how), _WORDS[how]) for how in dict.fromkeys(scenarios)]
    return [*own, *(f"{pluralize(count, 'scenario')} {word}" for count, word in counts)]
