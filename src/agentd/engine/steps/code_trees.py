"""The code of a change as git trees: before the first edit, now, and the difference. Commits do not matter."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping

from agentd.change import Change
from agentd.documents import TASKS_FILE, Task, TaskFile, decode_text, parse_tasks, set_task_status
from agentd.domain import TaskAction, TaskStatus
from agentd.engine.steps.step_context import StepContext
from agentd.project import git
from agentd.storage import files


def current_tree(change: Change) -> str:
    """Return the tree as it is, with untracked files; neither the index nor any file is touched."""
    return git.snapshot(change.tree)


def keep_tree(change: Change, name: str, tree: str) -> None:
    """Keep git from removing a tree for as long as the change exists."""
    git.run(change.tree, "update-ref", f"refs/agentd/{change.id}/{name}", tree)


def changed_paths(change: Change, base: str, tree: str) -> dict[str, str]:
    """Map what differs, relative to the project root, to A, M, D or T. agentd's own files do not count."""
    fields = git.run(change.tree, "diff", "--no-renames", "--name-status", "-z", base, tree).split("\0")
    rows = zip(fields[1::2], fields[0::2], strict=False)
    found = {os.path.relpath(name, change.project.prefix or "."): kind for name, kind in rows if name}
    return {name: kind for name, kind in found.items() if not name.startswith("agentd/")}


def files_edited_since_review(change: Change) -> list[str]:
    """Return the files of the change that differ from what was judged; none if git lacks the judged tree."""
    state = change.read()
    hashes = state.history[-1].hashes if state.history else {}
    base, tree = hashes.get("base", ""), hashes.get("tree", "")
    if not base or not tree or git.run(change.tree, "cat-file", "-t", tree, failing="") != "tree":
        return []
    own = changed_paths(change, base, tree)
    return [name for name in changed_paths(change, tree, current_tree(change)) if name in own]


def specs_edited_since_review(change: Change) -> list[str]:
    """Return the specs that differ from those that the code was judged by, other than by a harmless rebase."""
    state = change.read()
    if not state.history:
        return []
    judged, now = spec_hashes(state.history[-1].hashes), spec_hashes(change.hashes())
    return state.changed_documents(judged, now, len(state.history))


def spec_hashes(hashes: Mapping[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in hashes.items() if name.startswith("specs/")}


# ---- tasks


def read_change_tasks(change: Change) -> tuple[Task, ...]:
    path = change.folder / TASKS_FILE
    return parse_tasks(decode_text(files.read(path), TASKS_FILE)).tasks if path.is_file() else ()


def undone_tasks(tasks: Iterable[Task], changed: Mapping[str, str]) -> Iterator[tuple[Task, TaskFile]]:
    """Yield each task with a file where `changed` does not show its action."""
    for task in tasks:
        for file in task.files:
            # A file that was to be created but existed already is changed instead.
            expected = ("D",) if file.action is TaskAction.DELETE else ("A", "M", "T")
            if changed.get(os.path.normpath(file.path)) not in expected:
                yield task, file


def reset_tasks(ctx: StepContext) -> None:
    """Make done tasks pending again, because the plan is to change; waived ones stay waived."""
    _set_status(ctx, [task.id for task in _tasks_with(ctx, TaskStatus.DONE)], TaskStatus.PENDING)


def mark_done_tasks(ctx: StepContext, base: str, tree: str) -> None:
    pending = _tasks_with(ctx, TaskStatus.PENDING)
    undone = {task.id for task, _ in undone_tasks(pending, changed_paths(ctx.change, base, tree))}
    _set_status(ctx, [task.id for task in pending if task.id not in undone], TaskStatus.DONE)


def waive_tasks(ctx: StepContext) -> list[str]:
    """Waive the pending tasks, because a person accepted the change without them."""
    ids = [task.id for task in _tasks_with(ctx, TaskStatus.PENDING)]
    _set_status(ctx, ids, TaskStatus.WAIVED)
    return ids


def reclaim_tasks(ctx: StepContext, waived: Collection[str]) -> None:
    """Make tasks pending again that an acceptance waived, because it was taken back."""
    ids = [task.id for task in _tasks_with(ctx, TaskStatus.WAIVED) if task.id in waived]
    _set_status(ctx, ids, TaskStatus.PENDING)


def _tasks_with(ctx: StepContext, status: TaskStatus) -> list[Task]:
    return [task for task in read_change_tasks(ctx.change) if task.status is status]


def _set_status(ctx: StepContext, ids: Collection[str], status: TaskStatus) -> None:
    if not ids:
        return
    path = ctx.change.folder / TASKS_FILE
    with ctx.change.writing(ctx.run.token):
        text = decode_text(files.read(path), TASKS_FILE)
        for id_ in ids:
            text = set_task_status(text, id_, status)
        files.write(path, text.encode())
