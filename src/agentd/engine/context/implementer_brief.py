"""The parts of the plan that an implementer's prompt repeats: tasks, requirements, people's notes. Bounded in size."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.change import Change, plan_files
from agentd.documents import (
    CLARIFICATIONS_FILE,
    TASKS_FILE,
    Document,
    InvalidDocument,
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

DESCRIPTION = 6_000  # characters
CLARIFICATIONS = 8_000
TASKS = 20_000  # all descriptions together
REQUIREMENTS = 40_000  # all texts and scenarios together
TEXT = 6_000  # one text
TITLE = 200
NOTES = 8_000  # everything people said about the plan


def implementer_brief(change: Change, task_ids: Sequence[str]) -> dict[str, Any]:
    """Return plain values for `implement.md`: tasks, requirements, documents, description, clarifications, notes."""
    reader = ContextReader(change)
    folder = reader.folder
    listed = parse_tasks(reader.own(TASKS_FILE) or "", TASKS_FILE)
    tasks = [task for id_ in task_ids if (task := listed.get(id_))]
    if missing := [id_ for id_ in task_ids if not listed.get(id_)]:
        hint = f"agentd validate {change.id}"
        raise FormatInvalid(f"{TASKS_FILE} of {change.id} has no task {', '.join(missing)}", hint)
    plan = [path.relative_to(change.folder).as_posix() for path in plan_files(change.folder)]
    answers = reader.own(CLARIFICATIONS_FILE) or ""
    refs = list(dict.fromkeys(ref for task in tasks for ref in task.spec_refs))
    return {
        "tasks": list(_task_rows(tasks, f"{folder}/{TASKS_FILE}")),
        "requirements": list(_requirement_rows(_requirements(refs, *_read_specs(change, reader, plan, refs)))),
        "documents": [f"{folder}/{name}" for name in plan if name != TASKS_FILE],
        "description": shorten_text(change.read().description, DESCRIPTION, f"{folder}/STATE.yaml"),
        "clarifications": shorten_text(answers, CLARIFICATIONS, f"{folder}/{CLARIFICATIONS_FILE}"),
        "notes": list(_notes(change, f"{folder}/STATE.yaml")),
    }


def _notes(change: Change, path: str) -> Iterator[str]:
    """Yield why a person accepted the current plan, and the findings of people that were accepted with it."""
    state = change.read()
    accepted = None
    for move in state.history:
        if move.to in (Phase.PROPOSED, Phase.REJECTED):
            accepted = None  # it was for an earlier plan
        elif move.event is TransitionEvent.ACCEPTED and move.to is Phase.CHALLENGED:
            accepted = move.why
    if accepted is None:
        return
    findings = (*current_findings(change.records("challenge")), *state.findings)
    own = [one for one in findings if one.by.startswith("person:") and one.state is FindingState.ACCEPTED]
    left = NOTES
    for text in (accepted, *(one.what or one.title for one in own)):
        yield shorten_text(text, min(TEXT, left), path)
        left -= len(text)
        if left <= 0:
            return


def _task_rows(tasks: Sequence[Task], path: str) -> Iterator[Mapping[str, Any]]:
    left = TASKS
    for task in tasks:
        text = shorten_text(task.description, min(TEXT, left), path)
        left = max(0, left - len(text))
        yield {
            "id": task.id,
            "title": _title(task.title),
            "files": [{"path": one_line(one.path), "action": str(one.action or "")} for one in task.files],
            "description": text,
            "depends_on": list(task.depends_on),
        }


def _title(text: str) -> str:
    return one_line(text)[:TITLE]


# ---- requirements


@dataclass(frozen=True, slots=True)
class ScenarioText:
    """A scenario's text in its document, and the document's path."""

    title: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class RequirementText:
    """A requirement. If `ref` is only a spec id, the parts that belong to the spec as a whole."""

    ref: str
    title: str
    text: str
    scenarios: Sequence[ScenarioText]
    path: str


@dataclass(frozen=True, slots=True)
class SpecText:
    """A spec with its document; `path` is relative to the project root."""

    id: str
    path: str
    document: Document
    spec: Spec

    def scenarios_of(self, ref: str) -> list[ScenarioText]:
        return [self.scenario_text(one) for one in self.spec.scenarios if ref in self._refs(one)]

    def scenario_text(self, scenario: Scenario) -> ScenarioText:
        text = self.document.trimmed_text(Span(scenario.span.start + 1, scenario.span.end))
        return ScenarioText(scenario.name, text, self.path)

    def _refs(self, scenario: Scenario) -> list[str]:
        return [one if ":" in one else f"{self.id}:{one}" for one in (scenario.requirement, *scenario.also) if one]


def _read_specs(
    change: Change, reader: ContextReader, plan: Sequence[str], refs: Sequence[str]
) -> tuple[dict[str, SpecText], dict[str, SpecText]]:
    """Return the specs of the change, and the project's own specs that `refs` refer to."""
    config_file = change.project._replace(tree=change.tree).config_file
    pattern = load_config(config_file).validation.requirement_pattern
    own, main = {}, {}
    for name in plan:
        id_ = name.removeprefix("specs/").removesuffix(".md")
        if name.startswith("specs/") and (text := reader.own(name)) is not None:
            own[id_] = _parse_spec(text, id_, f"{reader.folder}/{name}", pattern)
    for id_ in dict.fromkeys(ref.partition(":")[0] for ref in refs):
        path, text = reader.main_spec(id_)
        if text is not None:
            with contextlib.suppress(InvalidDocument):  # the change's own text is still available
                main[id_] = _parse_spec(text, id_, path, pattern)
    return own, main


def _parse_spec(text: str, id_: str, path: str, pattern: re.Pattern[str]) -> SpecText:
    document = parse_document(text, path)
    return SpecText(id_, path, document, read_spec(document, read_frontmatter(document), pattern))


def _requirements(
    refs: Sequence[str], own: Mapping[str, SpecText], main: Mapping[str, SpecText]
) -> Iterator[RequirementText]:
    """Yield the requirements, then the scenarios of their specs that have no requirement."""
    yield from (_requirement(ref, own, main) for ref in refs)
    for id_ in dict.fromkeys(ref.partition(":")[0] for ref in refs):
        one = own.get(id_)
        if one and (scenarios := [one.scenario_text(each) for each in one.spec.scenarios if not each.requirement]):
            yield RequirementText(id_, one.spec.title, "The spec as a whole.", scenarios, one.path)


def _requirement(ref: str, own: Mapping[str, SpecText], main: Mapping[str, SpecText]) -> RequirementText:
    """Return the requirement as the change states it; where a delta omits it, as the main spec does."""
    spec_id, _, id_ = ref.partition(":")
    new = own.get(spec_id)
    old = main.get(spec_id) if new is None or new.spec.is_delta else None
    renamed = next((one for one in new.spec.renamed if one.new.id == id_), None) if new else None
    removed = next((one for one in new.spec.removed if one.id == id_), None) if new else None
    old_id = renamed.old.id if renamed else id_
    changed = new.spec.requirement(id_) if new else None
    stated = changed or (old.spec.requirement(old_id) if old else None)
    title = renamed.new.title if renamed and not changed else stated.title if stated else ""
    text = stated.text if stated else ""
    place = old if old and not changed and not removed else new
    path = place.path if place else ""
    if removed and not changed:
        reason = f" {removed.reason}" if removed.reason else ""
        before = f"\n\nUntil now it said:\n\n{text}" if text else ""
        return RequirementText(ref, title or removed.title, f"This change removes it.{reason}{before}", (), path)
    scenarios = [scenario for one in own.values() for scenario in one.scenarios_of(ref)]
    if old:  # its scenarios remain, unless removed or replaced by one with the same name
        gone = {one_line(one.title) for one in scenarios}
        gone |= {one_line(one.title) for one in new.spec.removed if not one.id} if new else set()
        kept = old.scenarios_of(f"{old.id}:{old_id}")
        scenarios += [one for one in kept if one_line(one.title) not in gone]
    return RequirementText(ref, title, text, scenarios, path)


def _requirement_rows(requirements: Iterator[RequirementText]) -> Iterator[Mapping[str, Any]]:
    left = REQUIREMENTS
    for one in requirements:
        text = shorten_text(one.text, min(TEXT, left), one.path)
        left = max(0, left - len(text))
        rows: list[dict[str, str]] = []
        for number, scenario in enumerate(one.scenarios):
            if left <= 0:
                rest = {"title": f"{len(one.scenarios) - number} more", "text": f"[left out: see `{scenario.path}`]"}
                rows.append(rest)
                break
            row = {
                "title": _title(scenario.title),
                "text": shorten_text(scenario.text, min(TEXT, left), scenario.path),
            }
            left = max(0, left - len(row["title"]) - len(row["text"]))
            rows.append(row)
        yield {"ref": one_line(one.ref), "title": _title(one.title), "text": text, "scenarios": rows}
