"""The code of a change as git trees: before the first edit, now, and what lies between. Commits do not matter."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping

from agentd.change import Change
from agentd.documents import TASKS_FILE, Task, TaskFile, decode_text, parse_tasks, set_task_status
from agentd.domain import TaskAction, TaskStatus
from agentd.engine.steps.step_context import StepContext
from agentd.project import git
from agentd.storage import files


def current_tree(change: Change) -> str:
    """The tree as it is, untracked files included; neither index nor files are touched."""
    return git.snapshot(change.tree)


def keep_tree(change: Change, name: str, tree: str) -> None:
    """For as long as the change lives git does not tidy it away."""
    git.run(change.tree, "update-ref", f"refs/agentd/{change.id}/{name}", tree)


def changed_paths(change: Change, base: str, tree: str) -> dict[str, str]:
    """What differs, by its path from the project's root: A, M, D or T. agentd's own files do not count."""
    told = git.run(change.tree, "diff", "--no-renames", "--name-status", "-z", base, tree).split("\0")
    rows = zip(told[1::2], told[0::2], strict=False)
    found = {os.path.relpath(name, change.project.prefix or "."): kind for name, kind in rows if name}
    return {name: kind for name, kind in found.items() if not name.startswith("agentd/")}


def files_edited_since_review(change: Change) -> list[str]:
    """Files of a complete change that are not any more what was judged; another clone does not know."""
    base, tree = _judged(change)
    if not base or not tree:
        return []
    own = changed_paths(change, base, tree)
    return [name for name in changed_paths(change, tree, current_tree(change)) if name in own]


def specs_edited_since_review(change: Change) -> list[str]:
    """Specs that are not any more those that the code was judged by; what a rebase only carried over is."""
    state = change.read()
    if not state.history:
        return []
    judged, now = spec_hashes(state.history[-1].hashes), spec_hashes(change.hashes())
    return state.changed_documents(judged, now, len(state.history))


def spec_hashes(hashes: Mapping[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in hashes.items() if name.startswith("specs/")}


def _judged(change: Change) -> tuple[str, str]:
    """Base and tree of the last verdict, if git has them here."""
    state = change.read()
    hashes = state.history[-1].hashes if state.history else {}
    base, tree = hashes.get("base", ""), hashes.get("tree", "")
    is_here = bool(tree) and git.run(change.tree, "cat-file", "-t", tree, failing="") == "tree"
    return (base, tree) if is_here else ("", "")


def read_change_tasks(change: Change) -> tuple[Task, ...]:
    path = change.folder / TASKS_FILE
    return parse_tasks(decode_text(files.read(path), TASKS_FILE)).tasks if path.is_file() else ()


def undone_tasks(wanted: Iterable[Task], kinds: Mapping[str, str]) -> Iterator[tuple[Task, TaskFile]]:
    """Each task with a file that does not show its action in what changed."""
    for task in wanted:
        for file in task.files:
            if not _shows(file, kinds.get(os.path.normpath(file.path))):
                yield task, file


def _shows(file: TaskFile, kind: str | None) -> bool:
    """A file that was to be created and was there already is changed instead."""
    return kind == "D" if file.action is TaskAction.DELETE else kind in ("A", "M", "T")


def reset_tasks(ctx: StepContext) -> None:
    """The plan is to change, and what was done by it with it; what a person waived stays so."""
    done = {task.id: TaskStatus.PENDING for task in read_change_tasks(ctx.change) if task.status is TaskStatus.DONE}
    _write(ctx, done)


def mark_done_tasks(ctx: StepContext, base: str, tree: str) -> None:
    wanted = [task for task in read_change_tasks(ctx.change) if task.status is TaskStatus.PENDING]
    left = {task.id for task, _ in undone_tasks(wanted, changed_paths(ctx.change, base, tree))}
    _write(ctx, {task.id: TaskStatus.DONE for task in wanted if task.id not in left})


def waive_tasks(ctx: StepContext) -> list[str]:
    """A person has accepted the change without those that are not done."""
    left = [task.id for task in read_change_tasks(ctx.change) if task.status is TaskStatus.PENDING]
    _write(ctx, dict.fromkeys(left, TaskStatus.WAIVED))
    return left


def reclaim_tasks(ctx: StepContext, waived: Collection[str]) -> None:
    """The acceptance is taken back: what it waived is wanted again."""
    now = [task.id for task in read_change_tasks(ctx.change) if task.status is TaskStatus.WAIVED and task.id in waived]
    _write(ctx, dict.fromkeys(now, TaskStatus.PENDING))


def _write(ctx: StepContext, statuses: Mapping[str, TaskStatus]) -> None:
    path = ctx.change.folder / TASKS_FILE
    if not statuses:
        return
    with ctx.change.writing(ctx.run.token):
        text = decode_text(files.read(path), TASKS_FILE)
        for id_, status in statuses.items():
            text = set_task_status(text, id_, status)
        files.write(path, text.encode())
