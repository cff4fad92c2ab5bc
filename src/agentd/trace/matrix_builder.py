"""The matrix of a change: specs and tasks from its folder, files and tests from git."""

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentd.change import Change, plan_files
from agentd.documents import (
    REQUIREMENT_PATTERN,
    TASKS_FILE,
    InvalidDocument,
    Spec,
    Task,
    decode_text,
    parse_spec,
    parse_tasks,
)
from agentd.domain import TaskAction, TaskStatus
from agentd.storage import files
from agentd.trace import coverage, git_trees, test_cases
from agentd.trace.coverage import KnownRequirements
from agentd.trace.matrix import CoveringTest, TraceMatrix, TraceNote, TraceRow
from agentd.trace.weakened_tests import ChangedFile, Weakening, count_cases, weakened_in_all


@dataclass(frozen=True)
class _PlanOnDisk:
    """The plan as it lies in the folder, and the project's own specs around it."""

    specs: dict[str, Spec] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    main: dict[str, Spec] = field(default_factory=dict)

    @property
    def known(self) -> KnownRequirements:
        every = (*self.specs.items(), *self.main.items())
        return coverage.known_requirements(f"{name}:{one.id}" for name, some in every for one in some.requirements)

    @property
    def removed(self) -> frozenset[str]:
        return frozenset(f"{name}:{one.id}" for name, some in self.specs.items() for one in some.removed if one.id)


def build_matrix(
    change: Change, base: str | None, tree: str | None, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> TraceMatrix:
    """`base` and `tree` are git trees; without them nothing is implemented yet, and there are no files and no tests."""
    plan = _read_plan(change, pattern)
    if base is None or tree is None:
        return TraceMatrix(tuple(_rows(plan, [], [])))
    git_trees.check_trees_exist(change.tree, base, change.id)
    found = git_trees.changed_blobs(change.tree, base, tree)
    paths = [path for one in found if (path := _told(change, one.path))]
    tests, notes = _tests(change, tree, {one.path for one in found}, plan)
    files_without_task = tuple(path for path in paths if not any(_names(task, path) for task in plan.tasks))
    return TraceMatrix(
        tuple(_rows(plan, paths, tests)), files_without_task, tuple(tests), tuple(notes), implemented=True
    )


def find_weakenings(
    change: Change, base: str | None, tree: str | None, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> tuple[Weakening, ...]:
    """Tests that prove less than before; one that a task deletes, or whose requirement this change removes, may go."""
    if base is None or tree is None:
        return ()
    plan = _read_plan(change, pattern)
    pairs = _pairs(change, base, tree, plan)
    return tuple(weakened_in_all(one for one in pairs if not _is_deleted_by_task(one, plan)))


def has_fewer_tests(change: Change, base: str, tree: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> bool:
    """The files themselves hold fewer tests than before, so that fewer run."""
    before, after = count_cases(_pairs(change, base, tree, _read_plan(change, pattern)))
    return after < before


def _is_deleted_by_task(one: ChangedFile, plan: _PlanOnDisk) -> bool:
    return one.after is None and any(_deletes(task, one.path) for task in plan.tasks)


def _pairs(change: Change, base: str, tree: str, plan: _PlanOnDisk) -> list[ChangedFile]:
    """Changed files that may hold tests, before and after."""
    git_trees.check_trees_exist(change.tree, base, change.id)
    found = [one for one in git_trees.changed_blobs(change.tree, base, tree) if test_cases.may_hold_tests(one.path)]
    found = found[: git_trees.MOST_FILES]
    blobs = (blob for one in found for blob in (one.old, one.new) if blob)
    texts = dict(git_trees.blob_texts(change.tree, blobs))
    pairs = []
    for one in found:
        path = _told(change, one.path)
        if path is None:
            continue
        before, after = texts.get(one.old or ""), texts.get(one.new or "")
        if (one.old is None) == (before is None) and (one.new is None) == (after is None):
            pairs.append(ChangedFile(path, before, after, _excused(before, plan)))
    return pairs


def _excused(before: str | None, plan: _PlanOnDisk) -> frozenset[int]:
    if not before or not plan.removed:
        return frozenset()
    return frozenset(one.line for one in coverage.find_marks(before, plan.known) if one.requirement in plan.removed)


# ---- the plan


def _read_plan(change: Change, pattern: re.Pattern[str]) -> _PlanOnDisk:
    """What cannot be read is left out: validation tells of it."""
    specs: dict[str, Spec] = {}
    listed: tuple[Task, ...] = ()
    for path in plan_files(change.folder):
        if path.name == TASKS_FILE:
            text = _text(path)
            listed = parse_tasks(text).tasks if text is not None else ()
        elif path.parent.name == "specs" and (one := _spec(path, pattern)):
            specs[path.stem] = one
    own = [path for path in change.project.specs_in(change.tree).glob("*.md") if path.name != "CHANGELOG.md"]
    main = {path.stem: one for path in sorted(own) if (one := _spec(path, pattern))}
    return _PlanOnDisk(specs, listed, main)


def _spec(path: Path, pattern: re.Pattern[str]) -> Spec | None:
    text = _text(path)
    try:
        return parse_spec(text, path.name, pattern) if text is not None else None
    except InvalidDocument:
        return None


def _text(path: Path) -> str | None:
    try:
        text = decode_text(files.read(path), path.name)
    except (OSError, InvalidDocument, files.CannotRead):
        return None
    return None if "\0" in text else text


def _rows(plan: _PlanOnDisk, changed: list[str], tests: list[CoveringTest]) -> Iterator[TraceRow]:
    for name, one in plan.specs.items():
        for requirement in one.requirements:
            id_ = f"{name}:{requirement.id}"
            own = [task for task in plan.tasks if id_ in task.spec_refs]
            yield TraceRow(
                requirement=id_,
                title=requirement.title,
                scenarios=tuple(_scenarios(plan.specs, name, requirement.id)),
                tasks=tuple(task.id for task in own),
                files=tuple(path for path in changed if any(_names(task, path) for task in own)),
                tests=tuple(str(test) for test in tests if id_ in test.covers),
                line=requirement.line,
                waived=bool(own) and all(task.status is TaskStatus.WAIVED for task in own),
            )


def _scenarios(specs: dict[str, Spec], name: str, id_: str) -> Iterator[str]:
    """Those of its own spec, and those of others that name it."""
    for other, one in specs.items():
        wanted = id_ if other == name else f"{name}:{id_}"
        for scenario in one.scenarios:
            if wanted in (scenario.requirement, *scenario.also):
                yield scenario.name


# ---- files


def _told(change: Change, path: str) -> str | None:
    """A path from the project's root, `../` for what lies outside it; None for agentd's own files."""
    path = path.encode(errors="surrogateescape").decode(errors="replace")
    told = os.path.relpath(path, change.project.prefix) if change.project.prefix else path
    return None if told.startswith("agentd/") else told


def _names(task: Task, path: str) -> bool:
    """A task may name a file, a folder, or several files by a pattern."""
    for file in task.files:
        named = posixpath.normpath(file.path)
        if named in (path, ".") or path.startswith(f"{named}/"):
            return True
        if "*" in named and fnmatch.fnmatchcase(path, named):
            return True
    return False


def _deletes(task: Task, path: str) -> bool:
    return _names(task, path) and any(file.action is TaskAction.DELETE for file in task.files)


# ---- tests


def _tests(
    change: Change, tree: str, changed: set[str], plan: _PlanOnDisk
) -> tuple[list[CoveringTest], list[TraceNote]]:
    """In the project, and in what changed around it."""
    known, removed = plan.known, plan.removed
    chosen: dict[str, list[str]] = {}
    notes: list[TraceNote] = []
    for one in _chosen(change, git_trees.listed_files(change.tree, tree), changed, notes):
        chosen.setdefault(one.blob, []).append(_told(change, one.path) or "")
    tests: list[CoveringTest] = []
    for blob, text in git_trees.blob_texts(change.tree, chosen):
        for path in chosen[blob]:
            some, more = coverage.covering_tests(path, text, known, removed)
            tests += some
            notes += more
    return sorted(tests, key=lambda test: (test.path, test.line)), sorted(
        notes, key=lambda note: (note.path, note.line)
    )


def _chosen(
    change: Change, listed: Iterable[git_trees.ListedFile], changed: set[str], notes: list[TraceNote]
) -> Iterator[git_trees.ListedFile]:
    prefix = f"{change.project.prefix}/" if change.project.prefix else ""
    near = [
        one
        for one in listed
        if (one.path.startswith(prefix) or one.path in changed)
        and one.size <= git_trees.LARGEST
        and test_cases.may_hold_tests(one.path)
        and _told(change, one.path)
    ]
    near.sort(key=lambda one: (one.path not in changed, not test_cases.looks_like_test_path(one.path)))
    size = 0
    for number, one in enumerate(near):
        size += one.size
        if number >= git_trees.MOST_FILES or size > git_trees.MOST_BYTES:
            notes.append(TraceNote(".", 0, f"{len(near) - number} of {len(near)} files were not looked into for tests"))
            return
        yield one
