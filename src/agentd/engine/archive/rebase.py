"""Bring a change onto the current specs: its specs, their base texts and STATE.yaml, all of them or none.

Where both sides changed the same, marks stand in the change's spec until a person or the planner has solved them.
An approval stays good for a spec in which others touched nothing that the change touches.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from agentd.change import STATE_FILE, Change, ChangeState, archive_lock, archive_record_path, encode_state
from agentd.domain import ChangeNotReady, FormatInvalid, Phase, WrongPhase, clock, events
from agentd.engine.archive import branch_check
from agentd.engine.archive.preview import (
    base_spec_text,
    change_spec_files,
    hash_or_empty,
    main_spec_path,
    read_optional,
)
from agentd.engine.workflows.impl_start import refuse_unmerged
from agentd.merge import SpecConflict, find_conflict_markers, rebase_spec, touched_units
from agentd.storage import Operation, RemoveFile, WriteFile, files, run_transaction


@dataclass(frozen=True)
class RebasedSpec:
    """One spec on its new base. `is_touched`: others changed a requirement that the change changes too."""

    id: str
    before: str
    after: str
    base: str | None
    conflicts: tuple[SpecConflict, ...]
    is_touched: bool
    seen: str
    """The hash of the change's spec that was looked at."""


def rebase_change(change: Change, pattern: re.Pattern[str]) -> tuple[RebasedSpec, ...]:
    """Those specs whose main spec moved since; none: there is nothing to do."""
    with change.running(f"agentd rebase {change.id}") as held, archive_lock(change.project):
        moved = preview_rebase(change, pattern)
        if moved:
            with change.writing(held.token):
                record = archive_record_path(change.project, f"rebase-{change.id}")
                root = Path(change.tree, change.project.prefix)
                run_transaction(record, root, f"the rebase of {change.id}", _operations(change, moved))
            names = ", ".join(one.id for one in moved)
            change.journal().append(
                events.NoticeIssued(code="rebased", message=f"{names}: updated to the current specs")
            )
    return moved


def preview_rebase(change: Change, pattern: re.Pattern[str]) -> tuple[RebasedSpec, ...]:
    """What a rebase would do; nothing is written."""
    state = change.read()
    if not state.phase.is_open or state.phase is Phase.DRAFTING:
        raise WrongPhase(f"{change.id} is {state.phase}, so it has no specs to rebase", f"agentd status {change.id}")
    refuse_unmerged(change)
    branch_check.refuse_outdated_branch(change, state.git, f"agentd rebase {change.id}")
    found = [_moved(change, state, path, pattern) for path in change_spec_files(change)]
    return tuple(one for one in found if one)


def _moved(change: Change, state: ChangeState, path: Path, pattern: re.Pattern[str]) -> RebasedSpec | None:
    id_, seen, yours = path.stem, hash_or_empty(path), read_optional(path) or ""
    if lines := find_conflict_markers(yours, path.name):
        words = f"specs/{path.name}:{lines[0]} still has an unresolved conflict"
        raise ChangeNotReady(words, f"resolve it, then run agentd validate {change.id}")
    main = read_optional(main_spec_path(change, id_))
    base = base_spec_text(change, state, id_, main)
    if main == base:
        return None
    try:
        rebased = rebase_spec(main, yours, base, id_, pattern)
        is_touched = bool(rebased.conflicts) or bool(
            _names(main, base, id_, pattern) & _names(yours, base, id_, pattern)
        )
    except FormatInvalid as error:
        raise FormatInvalid(error.message, f"fix it, then: agentd validate {change.id}") from None
    return RebasedSpec(id_, yours, rebased.text, main, rebased.conflicts, is_touched, seen)


def _names(text: str | None, base: str | None, id_: str, pattern: re.Pattern[str]) -> set[str]:
    """The requirements that a text touches, by its scenarios too; `notes:` stands for those of no requirement."""
    return (
        {one.name.partition("/")[0] for one in touched_units(text, base, id_, pattern)} if text is not None else {id_}
    )


def _operations(change: Change, moved: tuple[RebasedSpec, ...]) -> list[Operation]:
    folder = PurePath("agentd", "changes", change.id)
    found: list[Operation] = []
    state = change.read()
    bases, rebased, touched_ = dict(state.base.specs), dict(state.rebased), dict(state.touched)
    for one in moved:
        found.append(WriteFile(folder / "specs" / f"{one.id}.md", one.after.encode(), seen=one.seen))
        kept = folder / "base" / f"{one.id}.md"
        if one.base is not None:
            found.append(WriteFile(kept, one.base.encode()))
        elif (change.folder / "base" / f"{one.id}.md").is_file():
            found.append(RemoveFile(kept))
        bases[one.id] = files.hash_bytes(one.base.encode()) if one.base is not None else None
        if one.is_touched:
            touched_[f"specs/{one.id}.md"] = len(state.history)
        elif one.after != one.before:
            rebased[files.hash_bytes(one.after.encode())] = files.hash_bytes(one.before.encode())
    base = replace(state.base, specs=bases)
    new = replace(state, base=base, rebased=rebased, touched=touched_, updated_at=clock.now())
    return [*found, WriteFile(folder / STATE_FILE, encode_state(new))]
