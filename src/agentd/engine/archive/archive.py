"""Archive a change, and take that back. Files only: nothing is committed or merged."""

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
    undo_record,
    unique_id,
)
from agentd.domain import ChangeNotComplete, ChangeNotFound, Phase, Refusal, TransitionEvent, clock, events
from agentd.engine.archive import branch_check, preview
from agentd.engine.archive.preview import (
    MergeConflict,
    SpecPreview,
    already_removed,
    preview_specs,
    read_optional,
    unmerged_sections,
)
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import JUDGE, PLANNER
from agentd.engine.workflows.dependencies import dependency_status, pending_dependencies
from agentd.engine.workflows.impl_start import refuse_unmerged
from agentd.project import Project, git
from agentd.storage import MovePath, Operation, RemoveFile, TransactionRecord, WriteFile, run_transaction

_GUIDANCE = {
    Phase.DRAFTING: "agentd plan %s",
    Phase.PROPOSED: "agentd plan %s",
    Phase.CHALLENGED: "agentd impl %s",
    Phase.REJECTED: "agentd view %s",
    Phase.IMPLEMENTING: "agentd impl %s",
}


@dataclass(frozen=True)
class ArchivePlan:
    """What an archive does. `folder` and the files by their paths from the project's root."""

    change: Change
    state: ChangeState
    date: str
    folder: str
    specs: tuple[SpecPreview, ...]
    changelog: tuple[str | None, str]
    """The text before and after."""
    warnings: tuple[str, ...]
    commands: branch_check.GitCommands

    @property
    def title(self) -> str:
        return f"the archive of {self.change.id}"

    def texts(self) -> dict[str, tuple[str | None, str]]:
        """The files outside the change's folder that are written, before and after."""
        written = {f"agentd/specs/{one.id}.md": (one.before, one.after) for one in self.specs if one.after is not None}
        return {**written, f"agentd/specs/{preview.CHANGELOG_FILE}": self.changelog}


def prepare_archive(change: Change, pattern: re.Pattern[str]) -> ArchivePlan:
    """Everything that can be refused is refused here; nothing is written."""
    state = change.read()
    _refuse_phase(change, state)
    refuse_unmerged(change)
    branch_check.refuse_outdated_branch(change, state.git, f"agentd archive {change.id}")
    _refuse_dependent(change)
    _refuse_edited(change)
    date = clock.now()[:10]
    specs = preview_specs(change, pattern, date)
    refuse_conflicts(change, specs)
    log = read_optional(change.project.specs_in(change.tree) / preview.CHANGELOG_FILE)
    return ArchivePlan(
        change=change,
        state=state,
        date=date,
        folder=f"agentd/archive/{_free_name(change, date)}",
        specs=specs,
        changelog=(log, preview.add_changelog_entry(log, change.id, date, state.description, specs)),
        warnings=tuple(_warnings(change, state, pattern)),
        commands=branch_check.git_commands(change, state.git, f"Archive {change.id}"),
    )


def archive_change(change: Change, pattern: re.Pattern[str]) -> ArchivePlan:
    """Under the run lock, and alone: two archives never write the specs at the same time."""
    project = change.project
    with change.running(f"agentd archive {change.id}") as held, archive_lock(project):
        ChangeLocator(project).find(change.id)  # somebody else may have archived it while we waited
        ending = prepare_archive(change, pattern)
        with change.writing(held.token):
            record = archive_record_path(project, PurePath(ending.folder).name)
            facts = {
                CHANGE_FACT: change.id,
                "at": clock.now_ms(),
                "tree": project.tree_name(change.tree),
                "branch": branch_check.current_branch(project, change.tree) or "",
            }
            root = Path(change.tree, project.prefix)
            run_transaction(record, root, ending.title, archive_operations(ending), facts)
    ChangeLocator(project).forget(change.tree, change.id)
    moved = ending.state.with_transition(
        TransitionEvent.ARCHIVED, by="agentd", why=_why(ending), at=facts["at"], hashes={}
    ).history[-1]
    told = events.Transition(from_=moved.origin, to=moved.to, event=moved.event, by=moved.by, why=moved.why)
    change.journal().append(told)
    return ending


def archive_operations(ending: ArchivePlan) -> list[Operation]:
    change, folder = ending.change, PurePath("agentd", "changes", ending.change.id)
    seen = {f"agentd/specs/{one.id}.md": one.seen for one in ending.specs}
    found: list[Operation] = [
        WriteFile(PurePath(path), after.encode(), seen=seen.get(path)) for path, (_, after) in ending.texts().items()
    ]
    state = ending.state.with_transition(
        TransitionEvent.ARCHIVED, by="agentd", why=_why(ending), at=clock.now(), hashes=change.hashes()
    )
    found.append(WriteFile(folder / STATE_FILE, encode_state(replace(state, run=None, updated_at=clock.now()))))
    found += [RemoveFile(folder / name) for name in (PLANNER, JUDGE) if (change.folder / name).is_file()]
    return [*found, MovePath(folder, PurePath(ending.folder))]


def undo_archive(project: Project, change_id: str) -> Change:
    """Byte for byte, while nobody has built on it. The change lies again where it was."""
    check_change_id(change_id)
    with archive_lock(project):
        done = [one for one in completed_archives(project) if one.facts.get(CHANGE_FACT) == change_id]
        found = [one for one in done if one.root.is_dir()]  # a worktree goes once its branch is merged
        if not found:
            raise _not_here(project, change_id)
        record = sorted(found, key=lambda one: one.facts.get("at", ""))[-1]
        _refuse_undo(project, change_id, record)
        undo_record(project, record, f"undoing {record.title}")
    tree = project.tree_path(record.facts.get("tree", "."))
    ChangeLocator(project).remember(tree, change_id)
    change = Change(project, change_id, tree, project.changes_in(tree) / change_id)
    change.journal().append(events.NoticeIssued(code="unarchived", message="the archive was undone"))
    return change


def _refuse_undo(project: Project, change_id: str, record: TransactionRecord) -> None:
    """Where there is a better word than which files differ."""
    moved = record.moves[0]
    if not (record.root / moved.target).exists() and (record.root / moved.source).exists():
        raise ChangeNotFound(f"{change_id} is no longer archived: {moved.source} is there", "agentd list")
    tree = project.tree_path(record.facts.get("tree", "."))
    branch = record.facts.get("branch", "")
    if branch and branch_check.current_branch(project, tree) != branch and branch in git.branches(project.repo):
        switch = f"git{branch_check.change_directory(tree, project.repo.top)} switch {shlex.quote(branch)}"
        hint = f"{switch}, then run the command again"
        raise Refusal(f"{change_id} was archived on {branch}, which is not checked out", hint)
    own = {file.path for file in record.files if not file.path.endswith(preview.CHANGELOG_FILE)}
    for later in completed_archives(project):
        other = later.facts.get(CHANGE_FACT, "")
        is_later = later.root == record.root and later.facts.get("at", "") > record.facts.get("at", "")
        if is_later and own & {file.path for file in later.files}:
            words = f"{other} was archived after {change_id} and changes the same specs"
            raise Refusal(words, f"agentd archive {other} --undo first")


def refuse_conflicts(change: Change, specs: tuple[SpecPreview, ...]) -> None:
    names = [one.name for spec in specs for one in spec.conflicts]
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        is_one = len(names) == 1
        words = (
            f"{shown} {'was' if is_one else 'were'} changed by others since {change.id} began, "
            f"and {change.id} changes {'it' if is_one else 'them'} too"
        )
        hint = f"agentd rebase {change.id} brings the change up to date with the current specs"
        raise MergeConflict(words, hint, tuple(one for spec in specs for one in spec.conflicts))


def _refuse_phase(change: Change, state: ChangeState) -> None:
    if state.phase is not Phase.COMPLETE:
        hint = _GUIDANCE.get(state.phase, "agentd status %s") % change.id
        raise ChangeNotComplete(f"{change.id} is {state.phase}; only a complete change is archived", hint)


def _refuse_edited(change: Change) -> None:
    """The specs that go into the archive are those that the code was judged by."""
    if edited := code_trees.specs_edited_since_review(change):
        words = f"{', '.join(edited)} changed since the code of {change.id} was judged"
        raise ChangeNotComplete(words, f"agentd impl {change.id} --review judges the code by the specs as they are")


def _refuse_dependent(change: Change) -> None:
    for other, phase in pending_dependencies(change).items():
        out = f"take it out of depends_on in {os.path.relpath(change.folder / STATE_FILE)}"
        first = f"agentd archive {other} first; or " if phase and phase.is_open else ""
        merged = "merge its branch first; or " if phase is Phase.ARCHIVED else ""
        raise Refusal(f"{change.id} depends on {other}, which {dependency_status(phase)}", f"{first}{merged}{out}")


def _warnings(change: Change, state: ChangeState, pattern: re.Pattern[str]) -> list[str]:
    found = []
    if names := code_trees.files_edited_since_review(change):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        words = f"{', '.join(names[:3])}{more} changed since the review, so nobody has judged that"
        found.append(f"{words}: agentd impl {change.id} --review")
    if names := already_removed(change, pattern):
        words = "is removed here and not in the main specs any more; if others renamed it, it is still there"
        found.append(f"{', '.join(names)} {words}")
    if sections := unmerged_sections(change):
        words = ", ".join(sections[:3]) + (f" and {len(sections) - 3} more" if len(sections) > 3 else "")
        found.append(f"{words}: not merged, of a delta only requirements and scenarios are; edit agentd/specs/ by hand")
    return [*found, *filter(None, (branch_check.behind_upstream(change, state.git), branch_check.on_no_branch(change)))]


def _free_name(change: Change, date: str) -> str:
    folder = change.project.archive_in(change.tree)
    taken = set(os.listdir(folder)) if folder.is_dir() else set()
    return unique_id(f"{date.replace('-', '')}-{change.id}", taken, longest=200)


def _why(ending: ArchivePlan) -> str:
    names = [one.id for one in ending.specs if one.after is not None]
    return f"merged {', '.join(names)}" if names else "no spec changed"


def _not_here(project: Project, change_id: str) -> Refusal:
    ended = ChangeLocator(project).find_archived(change_id)
    if ended is None or ended.summary.phase is not Phase.ARCHIVED:
        return ChangeNotFound(f"{change_id} is not archived", "agentd list --all")
    folder = shlex.quote(os.path.relpath(ended.folder or "", ended.tree))
    words = f"{change_id} was archived elsewhere, so only git can undo it"
    there = branch_check.change_directory(ended.tree or "", project.repo.top)
    hint = f"git{there} log -- {folder}, then git revert the commit"
    return Refusal(words, hint)
