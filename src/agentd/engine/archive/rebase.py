"""Update a change to the current specs: its specs, their base texts and STATE.yaml, in one transaction.

Where both sides changed the same part, the change's spec gets conflict markers for a person or the planner to resolve.
An approval stays valid for a spec if others touched nothing that the change touches.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from agentd.change import STATE_FILE, Change, archive_lock, archive_record_path, encode_state
from agentd.domain import ChangeNotReady, Phase, WrongPhase, clock, events
from agentd.engine.archive import branch_check
from agentd.engine.archive.preview import change_spec_files, fixable, read_versions
from agentd.engine.workflows.impl_start import refuse_unmerged
from agentd.merge import SpecConflict, find_conflict_markers, rebase_spec, touched_units
from agentd.storage import Operation, RemoveFile, WriteFile, files, run_transaction


@dataclass(frozen=True)
class RebasedSpec:
    """One spec on its new base. `is_touched`: others changed a requirement that the change also changes."""

    id: str
    before: str
    after: str
    base: str | None
    conflicts: tuple[SpecConflict, ...]
    is_touched: bool
    before_hash: str


def rebase_change(change: Change, pattern: re.Pattern[str]) -> tuple[RebasedSpec, ...]:
    """Rebase the specs whose main spec changed since the change began, and return them."""
    with change.running(f"agentd rebase {change.id}") as held, archive_lock(change.project):
        rebased = preview_rebase(change, pattern)
        if rebased:
            with change.writing(held.token):
                record = archive_record_path(change.project, f"rebase-{change.id}")
                root = Path(change.tree, change.project.prefix)
                run_transaction(record, root, f"the rebase of {change.id}", _operations(change, rebased))
            names = ", ".join(one.id for one in rebased)
            change.journal().append(
                events.NoticeIssued(code="rebased", message=f"{names}: updated to the current specs")
            )
    return rebased


def preview_rebase(change: Change, pattern: re.Pattern[str]) -> tuple[RebasedSpec, ...]:
    """Return what a rebase would do. Writes nothing."""
    state = change.read()
    if not state.phase.is_open or state.phase is Phase.DRAFTING:
        raise WrongPhase(f"{change.id} is {state.phase}, so it has no specs to rebase", f"agentd status {change.id}")
    refuse_unmerged(change)
    branch_check.refuse_outdated_branch(change, state.git, f"agentd rebase {change.id}")
    found = [_rebase_spec(change, path, pattern) for path in change_spec_files(change)]
    return tuple(one for one in found if one)


def _rebase_spec(change: Change, path: Path, pattern: re.Pattern[str]) -> RebasedSpec | None:
    spec = read_versions(change, path)
    if lines := find_conflict_markers(spec.yours, path.name):
        message = f"specs/{path.name}:{lines[0]} still has an unresolved conflict"
        raise ChangeNotReady(message, f"resolve it, then run agentd validate {change.id}")
    if spec.main == spec.base:
        return None

    def touched(text: str | None) -> set[str]:
        """Return the requirements that a text touches, also through scenarios; `notes:` if a scenario has none."""
        if text is None:
            return {spec.id}
        return {one.name.partition("/")[0] for one in touched_units(text, spec.base, spec.id, pattern)}

    with fixable(f"run agentd validate {change.id}"):
        new = rebase_spec(spec.main, spec.yours, spec.base, spec.id, pattern)
        is_touched = bool(new.conflicts) or not touched(spec.main).isdisjoint(touched(spec.yours))
    return RebasedSpec(spec.id, spec.yours, new.text, spec.main, new.conflicts, is_touched, spec.yours_hash)


def _operations(change: Change, rebased: tuple[RebasedSpec, ...]) -> list[Operation]:
    folder = PurePath("agentd", "changes", change.id)
    operations: list[Operation] = []
    state = change.read()
    bases, replaced, touched = dict(state.base.specs), dict(state.rebased), dict(state.touched)
    for one in rebased:
        name = f"{one.id}.md"
        operations.append(WriteFile(folder / "specs" / name, one.after.encode(), seen=one.before_hash))
        if one.base is not None:
            operations.append(WriteFile(folder / "base" / name, one.base.encode()))
        elif (change.folder / "base" / name).is_file():
            operations.append(RemoveFile(folder / "base" / name))
        bases[one.id] = files.hash_bytes(one.base.encode()) if one.base is not None else None
        if one.is_touched:
            touched[f"specs/{name}"] = len(state.history)
        elif one.after != one.before:
            replaced[files.hash_bytes(one.after.encode())] = files.hash_bytes(one.before.encode())
    base = replace(state.base, specs=bases)
    new = replace(state, base=base, rebased=replaced, touched=touched, updated_at=clock.now())
    return [*operations, WriteFile(folder / STATE_FILE, encode_state(new))]
