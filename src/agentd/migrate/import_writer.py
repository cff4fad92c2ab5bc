"""What was found, written as one: all of it or nothing, and over nothing that is there already."""

from dataclasses import replace
from pathlib import PurePath

from agentd.change import (
    STATE_FILE,
    BaseSnapshot,
    ChangeLocator,
    ChangeState,
    archive_lock,
    archive_record_path,
    current_location,
    encode_state,
    format_names,
)
from agentd.domain import Phase, Refusal, TransitionEvent, clock
from agentd.migrate.import_model import ImportedChange, ImportedProject
from agentd.project import Project, git
from agentd.storage import Operation, WriteFile, files, run_transaction


def refuse_existing(project: Project, moving: ImportedProject) -> None:
    """Names what is there already."""
    taken = ChangeLocator(project).taken_ids()
    there = [f"agentd/specs/{one.id}.md" for one in moving.specs]
    there += [f"agentd/archive/{folder}" for folder in moving.archived]
    found = [path for path in there if (project.root / path).exists()]
    found += [f"the change {one.id}" for one in (*moving.changes, *moving.archived.values()) if one.id in taken]
    if found:
        words = f"{format_names(found)} {'is' if len(found) == 1 else 'are'} there already"
        raise Refusal(f"{words}; nothing was written", "move or rename them, then run the command again")


def write_import(project: Project, moving: ImportedProject) -> None:
    with archive_lock(project):
        refuse_existing(project, moving)
        title = f"the import from {moving.tool}"
        record = archive_record_path(project, f"import-{moving.tool.lower().replace(' ', '-')}")
        run_transaction(record, project.root, title, import_operations(project, moving))
    places = ChangeLocator(project)
    for one in moving.changes:
        places.remember(project.tree, one.id)


def import_operations(project: Project, moving: ImportedProject) -> list[Operation]:
    home = PurePath("agentd")
    found = [(home / "specs" / f"{one.id}.md", one.text.encode()) for one in moving.specs]
    for one in moving.changes:
        folder = home / "changes" / one.id
        found += [(folder / path, data) for path, data in one.files.items()]
        bases = {f"base/{id_}.md": text for id_, text in one.bases.items() if text is not None}
        found += [(folder / path, text.encode()) for path, text in bases.items()]
        found.append((folder / STATE_FILE, encode_state(_state(project, moving.tool, one))))
    for name, one in moving.archived.items():
        folder = home / "archive" / name
        found += [(folder / path, data) for path, data in one.files.items()]
        found.append((folder / STATE_FILE, encode_state(_ended(moving.tool, one))))
    return [WriteFile(path, data, seen="") for path, data in found]


def _state(project: Project, tool: str, one: ImportedChange) -> ChangeState:
    """A plan that is whole enough to be judged is proposed; `agentd plan` validates and challenges it."""
    specs = {id_: files.hash_bytes(text.encode()) if text is not None else None for id_, text in one.bases.items()}
    base = BaseSnapshot(git.head_commit(project.tree), specs=specs)
    state = ChangeState(
        one.id,
        one.description,
        one.created,
        clock.now(),
        git=current_location(project),
        base=base,
        extra=_origin(tool, one),
    )
    if one.phase is Phase.DRAFTING:
        return state
    plan = {path: data for path, data in one.files.items() if path in ("proposal.md", "tasks.md")}
    plan |= {path: data for path, data in one.files.items() if path.startswith("specs/")}
    hashes = {path: files.hash_bytes(data) for path, data in plan.items()}
    return state.with_transition(
        TransitionEvent.PLAN_GENERATED, by="agentd", why=f"imported from {tool}", at=clock.now(), hashes=hashes
    )


def _ended(tool: str, one: ImportedChange) -> ChangeState:
    """Archived elsewhere: no event of ours brought it there, so its history is empty."""
    state = ChangeState(one.id, one.description, one.created, one.created, extra=_origin(tool, one))
    return replace(state, phase=Phase.ARCHIVED)


def _origin(tool: str, one: ImportedChange) -> dict[str, str]:
    return {"imported_from": f"{tool}: {one.source}"}
