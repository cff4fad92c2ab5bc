"""What the prompt of an implementer repeats of the plan: its tasks, their requirements, the person's words. Bounded."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentd.change import Change, TransitionRecord, plan_files
from agentd.documents import (
    CLARIFICATIONS_FILE,
    TASKS_FILE,
    Finding,
    InvalidDocument,
    Task,
    current_findings,
    one_line,
    parse_tasks,
)
from agentd.domain import FindingState, FormatInvalid, Phase, TransitionEvent
from agentd.engine.context.context_reader import ContextReader
from agentd.engine.context.quotes import shorten_text
from agentd.engine.context.requirement_text import (
    RequirementText,
    ScenarioText,
    SpecText,
    read_spec_text,
    requirement_texts,
)
from agentd.project import load_config

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
