"""Archive a change, and undo an archive. Only files change: nothing is committed or merged."""

import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from agentd.change import (
    CHANGE_FACT,
    STATE_FILE,
    Change,
    ChangeLocator,
    ChangeState,
    archive_lock,
    archive_record_path,
    check_change_id,
    completed_archives,
    encode_state,
    format_names,
    undo_record,
    unique_id,
)
from agentd.domain import ChangeNotComplete, ChangeNotFound, Phase, Refusal, TransitionEvent, clock, events
from agentd.engine.archive import branch_check, preview
from agentd.engine.archive.preview import MergeConflict, SpecPreview
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import JUDGE, PLANNER
from agentd.engine.workflows.dependencies import dependency_status, pending_dependencies
from agentd.engine.workflows.impl_start import refuse_unmerged
from agentd.project import Project, git
from agentd.storage import MovePath, Operation, RemoveFile, TransactionRecord, WriteFile, run_transaction

_NEXT_COMMAND = {
    Phase.DRAFTING: "plan",
    Phase.PROPOSED: "plan",
    Phase.CHALLENGED: "impl",
    Phase.REJECTED: "view",
    Phase.IMPLEMENTING: "impl",
}


@dataclass(frozen=True)
class ArchivePlan:
    """What archiving will do. `folder` and file paths are relative to the project root."""

    change: Change
    state: ChangeState
    folder: str
    specs: tuple[SpecPreview, ...]
    changelog: tuple[str | None, str]
    """The text before and after."""
    warnings: tuple[str, ...]
    commands: branch_check.GitCommands

    def texts(self) -> dict[str, tuple[str | None, str]]:
        """Return the files to write outside the change's folder, with their text before and after."""
        written = {f"agentd/specs/{one.id}.md": (one.before, one.after) for one in self.specs if one.after is not None}
        return {**written, f"agentd/specs/{preview.CHANGELOG_FILE}": self.changelog}

    def archived_state(self) -> ChangeState:
        names = [one.id for one in self.specs if one.after is not None]
        why = f"merged {', '.join(names)}" if names else "no spec changed"
        now, hashes = clock.now(), self.change.hashes()
        state = self.state.with_transition(TransitionEvent.ARCHIVED, by="agentd", why=why, at=now, hashes=hashes)
        return replace(state, run=None, updated_at=now)


def prepare_archive(change: Change, pattern: re.Pattern[str]) -> ArchivePlan:
    """Return what archiving would do, or refuse it. Writes nothing."""
    state = change.read()
    if state.phase is not Phase.COMPLETE:
        hint = f"agentd {_NEXT_COMMAND.get(state.phase, 'status')} {change.id}"
        raise ChangeNotComplete(f"{change.id} is {state.phase}; only a complete change is archived", hint)
    refuse_unmerged(change)
    branch_check.refuse_outdated_branch(change, state.git, f"agentd archive {change.id}")
    _refuse_dependent(change)
    if edited := code_trees.specs_edited_since_review(change):
        message = f"{', '.join(edited)} changed since the code of {change.id} was judged"
        raise ChangeNotComplete(message, f"agentd impl {change.id} --review judges the code by the current specs")
    date = clock.now()[:10]
    specs = tuple(preview.preview_spec(change, path, pattern, date) for path in preview.change_spec_files(change))
    _refuse_conflicts(change, specs)
    log = preview.read_optional(change.project.specs_in(change.tree) / preview.CHANGELOG_FILE)
    warnings = []
    if names := code_trees.files_edited_since_review(change):
        message = f"{format_names(names)} changed since the review, so nobody has judged that"
        warnings.append(f"{message}: agentd impl {change.id} --review")
    warnings += preview.merge_warnings(change, pattern)
    archives = change.project.archive_in(change.tree)
    taken = set(os.listdir(archives)) if archives.is_dir() else set()
    name = unique_id(f"{date.replace('-', '')}-{change.id}", taken, longest=200)
    return ArchivePlan(
        change=change,
        state=state,
        folder=f"agentd/archive/{name}",
        specs=specs,
        changelog=(log, preview.add_changelog_entry(log, change.id, date, state.description, specs)),
        warnings=(*warnings, *branch_check.branch_warnings(change, state.git)),
        commands=branch_check.git_commands(change, state.git, f"Archive {change.id}"),
    )


def archive_change(change: Change, pattern: re.Pattern[str]) -> ArchivePlan:
    """Archive under the run lock and the archive lock, so two archives never write the specs at the same time."""
    project = change.project
    with change.running(f"agentd archive {change.id}") as held, archive_lock(project):
        ChangeLocator(project).find(change.id)  # someone else may have archived it while we waited
        plan = prepare_archive(change, pattern)
        state = plan.archived_state()
        with change.writing(held.token):
            record = archive_record_path(project, PurePath(plan.folder).name)
            facts = {
                CHANGE_FACT: change.id,
                "at": clock.now_ms(),
                "tree": project.tree_name(change.tree),
                "branch": branch_check.current_branch(project, change.tree) or "",
            }
            root = Path(change.tree, project.prefix)
            run_transaction(record, root, f"the archive of {change.id}", _operations(plan, state), facts)
    ChangeLocator(project).forget(change.tree, change.id)
    last = state.history[-1]
    event = events.Transition(from_=last.origin, to=last.to, event=last.event, by=last.by, why=last.why)
    change.journal().append(event)
    return plan


def _operations(plan: ArchivePlan, state: ChangeState) -> list[Operation]:
    change, folder = plan.change, PurePath("agentd", "changes", plan.change.id)
    hashes = {f"agentd/specs/{one.id}.md": one.before_hash for one in plan.specs}
    operations: list[Operation] = [
        WriteFile(PurePath(path), after.encode(), seen=hashes.get(path)) for path, (_, after) in plan.texts().items()
    ]
    operations.append(WriteFile(folder / STATE_FILE, encode_state(state)))
    operations += [RemoveFile(folder / name) for name in (PLANNER, JUDGE) if (change.folder / name).is_file()]
    return [*operations, MovePath(folder, PurePath(plan.folder))]


def _refuse_dependent(change: Change) -> None:
    for other, phase in pending_dependencies(change).items():
        hint = f"take it out of depends_on in {os.path.relpath(change.folder / STATE_FILE)}"
        if phase is Phase.ARCHIVED:
            hint = f"merge its branch first; or {hint}"
        elif phase and phase.is_open:
            hint = f"agentd archive {other} first; or {hint}"
        raise Refusal(f"{change.id} depends on {other}, which {dependency_status(phase)}", hint)


def _refuse_conflicts(change: Change, specs: tuple[SpecPreview, ...]) -> None:
    conflicts = tuple(one for spec in specs for one in spec.conflicts)
    if conflicts:
        was, it = ("was", "it") if len(conflicts) == 1 else ("were", "them")
        names = format_names([one.name for one in conflicts])
        message = f"{names} {was} changed by others since {change.id} began, and {change.id} changes {it} too"
        hint = f"agentd rebase {change.id} updates the change to the current specs"
        raise MergeConflict(message, hint, conflicts)


# ---- undo


def undo_archive(project: Project, change_id: str) -> Change:
    """Undo an archive byte for byte, unless later changes build on it. Return the restored change."""
    check_change_id(change_id)
    with archive_lock(project):
        done = [one for one in completed_archives(project) if one.facts.get(CHANGE_FACT) == change_id]
        found = [one for one in done if one.root.is_dir()]  # a worktree is removed once its branch is merged
        if not found:
            raise _not_archived_here(project, change_id)
        record = max(found, key=lambda one: one.facts.get("at", ""))
        tree = project.tree_path(record.facts.get("tree", "."))
        _refuse_undo(project, change_id, record, tree)
        undo_record(project, record, f"undoing {record.title}")
    ChangeLocator(project).remember(tree, change_id)
    change = Change(project, change_id, tree, project.changes_in(tree) / change_id)
    change.journal().append(events.NoticeIssued(code="unarchived", message="the archive was undone"))
    return change


def _refuse_undo(project: Project, change_id: str, record: TransactionRecord, tree: str) -> None:
    """Refuse for reasons that deserve a clearer message than "files differ"."""
    moved, branch, at = record.moves[0], record.facts.get("branch", ""), record.facts.get("at", "")
    if not (record.root / moved.target).exists() and (record.root / moved.source).exists():
        raise ChangeNotFound(f"{change_id} is no longer archived: {moved.source} exists", "agentd list")
    if branch and branch_check.current_branch(project, tree) != branch and branch in git.branches(project.repo):
        switch = f"git{branch_check.git_directory(tree, project.repo.top)} switch {shlex.quote(branch)}"
        message = f"{change_id} was archived on {branch}, which is not checked out"
        raise Refusal(message, f"{switch}, then run the command again")
    own = {file.path for file in record.files if not file.path.endswith(preview.CHANGELOG_FILE)}
    for later in completed_archives(project):
        is_later = later.root == record.root and later.facts.get("at", "") > at
        if is_later and own & {file.path for file in later.files}:
            other = later.facts.get(CHANGE_FACT, "")
            message = f"{other} was archived after {change_id} and changes the same specs"
            raise Refusal(message, f"agentd archive {other} --undo first")


def _not_archived_here(project: Project, change_id: str) -> Refusal:
    found = ChangeLocator(project).find_archived(change_id)
    if found is None or found.summary.phase is not Phase.ARCHIVED:
        return ChangeNotFound(f"{change_id} is not archived", "agentd list --all")
    folder = shlex.quote(os.path.relpath(found.folder or "", found.tree))
    directory = branch_check.git_directory(found.tree or "", project.repo.top)
    hint = f"git{directory} log -- {folder}, then git revert the commit"
    return Refusal(f"{change_id} was archived elsewhere, so only git can undo it", hint)
