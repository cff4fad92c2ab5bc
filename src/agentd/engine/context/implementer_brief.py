"""What the prompt of an implementer repeats of the plan: its tasks, their requirements, the person's words. Bounded."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.change import Change, TransitionRecord, plan_files
from agentd.documents import (
    CLARIFICATIONS_FILE,
    TASKS_FILE,
    Document,
    Finding,
    InvalidDocument,
    RemovedItem,
    Scenario,
    Span,
    Spec,
    Task,
    current_findings,
    one_line,
    parse_document,
    parse_tasks,
    read_frontmatter,
    read_spec,
)
from agentd.domain import FindingState, FormatInvalid, Phase, TransitionEvent
from agentd.engine.context.context_reader import ContextReader, shorten_text
from agentd.project import load_config


@dataclass(frozen=True, slots=True)
class SpecText:
    """A spec with its text; `path` from the project's root."""

    id: str
    path: str
    document: Document
    spec: Spec

    def shown(self, scenario: Scenario) -> "ScenarioText":
        words = self.document.trimmed_text(Span(scenario.span.start + 1, scenario.span.end))
        return ScenarioText(scenario.name, words, self.path)


@dataclass(frozen=True, slots=True)
class ScenarioText:
    """A scenario in the words of its document, and where that is."""

    title: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class RequirementText:
    """A requirement, or under the id of a spec alone what belongs to the whole of it."""

    ref: str
    title: str
    text: str
    scenarios: tuple[ScenarioText, ...]
    path: str


def read_spec_text(text: str, id_: str, path: str, pattern: re.Pattern[str]) -> SpecText:
    document = parse_document(text, path)
    return SpecText(id_, path, document, read_spec(document, read_frontmatter(document), pattern))


def requirement_texts(
    refs: Sequence[str], own: Mapping[str, SpecText], main: Mapping[str, SpecText]
) -> list[RequirementText]:
    """Those that are named, each once; then what each of their specs has without a requirement."""
    found = [_told(ref, own, main) for ref in dict.fromkeys(refs)]
    specs = dict.fromkeys(ref.partition(":")[0] for ref in refs)
    return [*found, *(_whole(own[id_]) for id_ in specs if id_ in own and any(_unnamed(own[id_])))]


def _told(ref: str, own: Mapping[str, SpecText], main: Mapping[str, SpecText]) -> RequirementText:
    """What the change says of it, and where a delta is silent what holds today."""
    spec_id, _, id_ = ref.partition(":")
    new = own.get(spec_id)
    old = main.get(spec_id) if new is None or new.spec.is_delta else None
    renamed = next((one for one in new.spec.renamed if one.new.id == id_), None) if new else None
    removed = next((one for one in new.spec.removed if one.id == id_), None) if new else None
    old_id = renamed.old.id if renamed else id_
    now = new.spec.requirement(id_) if new else None
    stated = now or (old.spec.requirement(old_id) if old else None)
    title = renamed.new.title if renamed and not now else stated.title if stated else ""
    text = stated.text if stated else ""
    place = old if old and not now and not removed else new
    path = place.path if place else ""
    if removed and not now:
        return RequirementText(ref, title or removed.title, _gone(removed, text), (), path)
    scenarios = [*_shown(ref, own), *(_kept(old_id, ref, old, own) if old else ())]
    return RequirementText(ref, title, text, tuple(scenarios), path)


def _gone(removed: RemovedItem, text: str) -> str:
    reason = f" {removed.reason}" if removed.reason else ""
    until = f"\n\nIt said until now:\n\n{text}" if text else ""
    return f"This change removes it.{reason}{until}"


def _shown(ref: str, own: Mapping[str, SpecText]) -> Iterator[ScenarioText]:
    """What any spec of the change shows of it."""
    for one in own.values():
        yield from (one.shown(scenario) for scenario in one.spec.scenarios if ref in _refs(one, scenario))


def _kept(old_id: str, ref: str, old: SpecText, own: Mapping[str, SpecText]) -> Iterator[ScenarioText]:
    """Scenarios of today that go on: neither removed nor replaced by one of the same name."""
    new = own.get(old.id)
    gone = {one_line(one.title) for one in new.spec.removed if not one.id} if new else set()
    gone |= {one_line(one.title) for one in _shown(ref, own)}
    for scenario in old.spec.scenarios:
        if f"{old.id}:{old_id}" in _refs(old, scenario) and one_line(scenario.name) not in gone:
            yield old.shown(scenario)


def _refs(where: SpecText, scenario: Scenario) -> list[str]:
    return [one if ":" in one else f"{where.id}:{one}" for one in (scenario.requirement, *scenario.also) if one]


def _unnamed(where: SpecText) -> Iterator[Scenario]:
    return (one for one in where.spec.scenarios if not one.requirement)


def _whole(where: SpecText) -> RequirementText:
    scenarios = tuple(map(where.shown, _unnamed(where)))
    return RequirementText(where.id, where.spec.title, "The spec as a whole.", scenarios, where.path)


DESCRIPTION = 6_000  # characters
CLARIFICATIONS = 8_000
TASKS = 20_000  # of all descriptions
REQUIREMENTS = 40_000  # of all texts and scenarios
TEXT = 6_000  # of one of them
TITLE = 200
NOTES = 8_000  # of all words of people about the plan


def implementer_brief(change: Change, task_ids: Sequence[str]) -> dict[str, Any]:
    """Plain values for `implement.md`: tasks, requirements, documents, description, clarifications, notes."""
    reader = ContextReader(change)
    chosen = _chosen(change, reader, task_ids)
    refs = [ref for task in chosen for ref in task.spec_refs]
    pattern = _pattern(change)
    found = requirement_texts(refs, _own(change, reader, pattern), _main(reader, refs, pattern))
    plan = [path.relative_to(change.folder).as_posix() for path in plan_files(change.folder)]
    asked = reader.own(CLARIFICATIONS_FILE) or ""
    return {
        "tasks": list(_tasks(chosen, f"{reader.folder}/{TASKS_FILE}")),
        "requirements": list(_requirements(found)),
        "documents": [f"{reader.folder}/{name}" for name in plan if name != TASKS_FILE],
        "description": shorten_text(change.read().description, DESCRIPTION, f"{reader.folder}/STATE.yaml"),
        "clarifications": shorten_text(asked, CLARIFICATIONS, f"{reader.folder}/{CLARIFICATIONS_FILE}"),
        "notes": list(_notes(change, f"{reader.folder}/STATE.yaml")),
    }


def _notes(change: Change, path: str) -> Iterator[str]:
    """Why a person accepted the plan, and the findings of people that were accepted with it."""
    state = change.read()
    why = _acceptance(state.history)
    if why is None:
        return
    room = NOTES
    known = (*current_findings(change.records("challenge")), *state.findings)
    for words in (why, *(one.what or one.title for one in known if _is_note(one))):
        yield shorten_text(words, min(TEXT, room), path)
        room -= len(words)
        if room <= 0:
            return


def _acceptance(history: Sequence[TransitionRecord]) -> str | None:
    """Of the plan as it is: one that went back since is another one."""
    for moved in reversed(history):
        if moved.to in (Phase.PROPOSED, Phase.REJECTED):
            return None
        if moved.event is TransitionEvent.ACCEPTED and moved.to is Phase.CHALLENGED:
            return moved.why
    return None


def _is_note(one: Finding) -> bool:
    return one.by.startswith("person:") and one.state is FindingState.ACCEPTED


def _chosen(change: Change, reader: ContextReader, task_ids: Sequence[str]) -> list[Task]:
    listed = parse_tasks(reader.own(TASKS_FILE) or "", TASKS_FILE)
    chosen = [listed.get(id_) for id_ in task_ids]
    missing = [id_ for id_, task in zip(task_ids, chosen, strict=True) if task is None]
    if missing:
        hint = f"agentd validate {change.id}"
        raise FormatInvalid(f"{TASKS_FILE} of {change.id} has no task {', '.join(missing)}", hint)
    return [task for task in chosen if task]


def _own(change: Change, reader: ContextReader, pattern: re.Pattern[str]) -> dict[str, SpecText]:
    found = {}
    for path in plan_files(change.folder):
        name = f"specs/{path.name}"
        text = reader.own(name) if path.parent.name == "specs" else None
        if text is not None:
            found[path.stem] = read_spec_text(text, path.stem, f"{reader.folder}/{name}", pattern)
    return found


def _main(reader: ContextReader, refs: Sequence[str], pattern: re.Pattern[str]) -> dict[str, SpecText]:
    """The project's own specs that these requirements are of."""
    found = {}
    for id_ in dict.fromkeys(ref.partition(":")[0] for ref in refs):
        path, text = reader.main_spec(id_)
        if text is not None:
            with contextlib.suppress(InvalidDocument):  # the change's own words are still there
                found[id_] = read_spec_text(text, id_, path, pattern)
    return found


def _pattern(change: Change) -> re.Pattern[str]:
    there = change.project._replace(tree=change.tree)
    return load_config(there.config_file).validation.requirement_pattern


# ---- as plain values


def _tasks(chosen: Sequence[Task], path: str) -> Iterator[Mapping[str, Any]]:
    room = TASKS
    for task in chosen:
        words = shorten_text(task.description, min(TEXT, room), path)
        room = max(0, room - len(words))
        yield {
            "id": task.id,
            "title": _title(task.title),
            "files": [{"path": one_line(one.path), "action": str(one.action or "")} for one in task.files],
            "description": words,
            "depends_on": list(task.depends_on),
        }


def _requirements(found: Sequence[RequirementText]) -> Iterator[Mapping[str, Any]]:
    room = REQUIREMENTS
    for one in found:
        text = shorten_text(one.text, min(TEXT, room), one.path)
        room = max(0, room - len(text))
        scenarios = list(_scenarios(one.scenarios, room))
        room = max(0, room - sum(len(row["title"]) + len(row["text"]) for row in scenarios))
        yield {"ref": one_line(one.ref), "title": _title(one.title), "text": text, "scenarios": scenarios}


def _scenarios(found: Sequence[ScenarioText], room: int) -> Iterator[dict[str, str]]:
    for number, one in enumerate(found):
        if room <= 0:
            yield {"title": f"{len(found) - number} more", "text": f"[left out here: they stand in `{one.path}`]"}
            return
        row = {"title": _title(one.title), "text": shorten_text(one.text, min(TEXT, room), one.path)}
        room -= len(row["title"]) + len(row["text"])
        yield row


def _title(text: str) -> str:
    return one_line(text)[:TITLE]
