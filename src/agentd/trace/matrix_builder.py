"""Build the trace matrix of a change: specs and tasks from its folder, files and tests from git trees."""

import fnmatch
import os
import posixpath
import re
import subprocess
import tempfile
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
from agentd.domain import Refusal, TaskAction, TaskStatus
from agentd.project import git
from agentd.storage import files
from agentd.trace import matrix, test_cases
from agentd.trace.matrix import CoveringTest, KnownRequirements, TraceMatrix, TraceNote, TraceRow
from agentd.trace.weakened_tests import ChangedFile, Weakening, count_cases, weakened_in_all

LARGEST = 1_000_000  # bytes; larger files are not searched
MOST_FILES = 20_000
MOST_BYTES = 300_000_000  # of all searched files together

_FILES = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class ChangedBlob:
    """A changed file. The path is relative to the top of the tree.

    A side that is missing or not a regular file is None.
    """

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ListedFile:
    path: str
    blob: str
    size: int


def check_trees_exist(tree: str, base: str, change_id: str) -> None:
    if git.run(tree, "cat-file", "-t", base, failing="") != "tree":
        hint = f"fetch it from where the implementation began: git fetch <remote> 'refs/agentd/{change_id}/*'"
        raise Refusal(f"{change_id} began from the tree {base[:12]}, which is not in this repository", hint)


def changed_blobs(tree: str, base: str, now: str) -> list[ChangedBlob]:
    words = git.run(tree, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", base, now).split("\0")
    found = []
    for head, path in zip(words[::2], words[1::2], strict=False):
        old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
        found.append(ChangedBlob(path, old if old_mode in _FILES else None, new if new_mode in _FILES else None))
    return found


def listed_files(tree: str, now: str) -> list[ListedFile]:
    """Return every regular file in a tree."""
    found = []
    for row in filter(None, git.run(tree, "ls-tree", "-r", "-l", "-z", now).split("\0")):
        head, _, path = row.partition("\t")
        mode, _, blob, size = head.split()
        if mode in _FILES:
            found.append(ListedFile(path, blob, int(size)))
    return found


def blob_texts(tree: str, blobs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each blob with its text, in order, using a single process. Skip binary and large blobs."""
    wanted = list(dict.fromkeys(blobs))
    if not wanted:
        return
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{blob}\n" for blob in wanted).encode())
        asked.seek(0)
        command = ["git", "-C", tree, "cat-file", "--batch", "--buffer"]
        process = subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, env=git.environment())
        with process:
            assert process.stdout
            for blob in wanted:
                head = process.stdout.readline().split()
                if len(head) != 3:
                    continue  # missing; git prints a line that says so
                size = int(head[2])
                data = process.stdout.read(size + 1)[:size]
                if size <= LARGEST and b"\0" not in data[:8000]:
                    yield blob, data.decode("utf-8", "replace")


@dataclass(frozen=True)
class _PlanOnDisk:
    """The plan in the change's folder, and the project's own specs."""

    specs: dict[str, Spec] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    main: dict[str, Spec] = field(default_factory=dict)

    @property
    def known(self) -> KnownRequirements:
        every = (*self.specs.items(), *self.main.items())
        return matrix.known_requirements(f"{name}:{one.id}" for name, some in every for one in some.requirements)

    @property
    def removed(self) -> frozenset[str]:
        return frozenset(f"{name}:{one.id}" for name, some in self.specs.items() for one in some.removed if one.id)


def build_matrix(
    change: Change, base: str | None, tree: str | None, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> TraceMatrix:
    """Build the matrix. `base` and `tree` are git trees; without them, nothing is implemented yet."""
    plan = _read_plan(change, pattern)
    if base is None or tree is None:
        return TraceMatrix(tuple(_rows(plan, [], [])))
    check_trees_exist(change.tree, base, change.id)
    found = changed_blobs(change.tree, base, tree)
    paths = [path for one in found if (path := _project_path(change, one.path))]
    tests, notes = _tests(change, tree, {one.path for one in found}, plan)
    files_without_task = tuple(path for path in paths if not any(_names(task, path) for task in plan.tasks))
    return TraceMatrix(
        tuple(_rows(plan, paths, tests)), files_without_task, tuple(tests), tuple(notes), implemented=True
    )


def find_weakenings(
    change: Change, base: str | None, tree: str | None, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> tuple[Weakening, ...]:
    """Return tests that verify less than before, except those a task deletes or whose requirement is removed."""
    if base is None or tree is None:
        return ()
    plan = _read_plan(change, pattern)
    pairs = _pairs(change, base, tree, plan)
    deleting = [task for task in plan.tasks if any(file.action is TaskAction.DELETE for file in task.files)]
    kept = [one for one in pairs if one.after is not None or not any(_names(task, one.path) for task in deleting)]
    return tuple(weakened_in_all(kept))


def has_fewer_tests(change: Change, base: str, tree: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> bool:
    """Return whether the changed files contain fewer tests than before."""
    before, after = count_cases(_pairs(change, base, tree, _read_plan(change, pattern)))
    return after < before


def _pairs(change: Change, base: str, tree: str, plan: _PlanOnDisk) -> list[ChangedFile]:
    """Return the changed files that may contain tests, before and after."""
    check_trees_exist(change.tree, base, change.id)
    found = [one for one in changed_blobs(change.tree, base, tree) if test_cases.may_hold_tests(one.path)]
    found = found[:MOST_FILES]
    blobs = (blob for one in found for blob in (one.old, one.new) if blob)
    texts = dict(blob_texts(change.tree, blobs))
    pairs = []
    for one in found:
        path = _project_path(change, one.path)
        if path is None:
            continue
        before, after = texts.get(one.old or ""), texts.get(one.new or "")
        if (one.old is None) == (before is None) and (one.new is None) == (after is None):
            pairs.append(ChangedFile(path, before, after, _excused(before, plan)))
    return pairs


def _excused(before: str | None, plan: _PlanOnDisk) -> frozenset[int]:
    if not before or not plan.removed:
        return frozenset()
    return frozenset(one.line for one in matrix.find_marks(before, plan.known) if one.requirement in plan.removed)


# ---- the plan


def _read_plan(change: Change, pattern: re.Pattern[str]) -> _PlanOnDisk:
    """Read the plan. Skip unreadable documents, because validation reports them."""
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
    """Yield the scenarios of a requirement, from its own spec and from other specs that name it."""
    for other, one in specs.items():
        wanted = id_ if other == name else f"{name}:{id_}"
        for scenario in one.scenarios:
            if wanted in (scenario.requirement, *scenario.also):
                yield scenario.name


# ---- files


def _project_path(change: Change, path: str) -> str | None:
    """Return the path relative to the project root (`../` if outside), or None for agentd's own files."""
    path = path.encode(errors="surrogateescape").decode(errors="replace")
    relative = os.path.relpath(path, change.project.prefix) if change.project.prefix else path
    return None if relative.startswith("agentd/") else relative


def _names(task: Task, path: str) -> bool:
    """Return whether a task names the path: as a file, by its folder, or by a pattern."""
    for file in task.files:
        named = posixpath.normpath(file.path)
        if named in (path, ".") or path.startswith(f"{named}/"):
            return True
        if "*" in named and fnmatch.fnmatchcase(path, named):
            return True
    return False


# ---- tests


def _tests(
    change: Change, tree: str, changed: set[str], plan: _PlanOnDisk
) -> tuple[list[CoveringTest], list[TraceNote]]:
    """Return the project's tests, and those in changed files outside the project."""
    known, removed = plan.known, plan.removed
    chosen: dict[str, list[str]] = {}
    notes: list[TraceNote] = []
    for one in _chosen(change, listed_files(change.tree, tree), changed, notes):
        chosen.setdefault(one.blob, []).append(_project_path(change, one.path) or "")
    tests: list[CoveringTest] = []
    for blob, text in blob_texts(change.tree, chosen):
        for path in chosen[blob]:
            some, more = matrix.covering_tests(path, text, known, removed)
            tests += some
            notes += more
    return sorted(tests, key=lambda test: (test.path, test.line)), sorted(
        notes, key=lambda note: (note.path, note.line)
    )


def _chosen(
    change: Change, listed: Iterable[ListedFile], changed: set[str], notes: list[TraceNote]
) -> Iterator[ListedFile]:
    prefix = f"{change.project.prefix}/" if change.project.prefix else ""
    near = [
        one
        for one in listed
        if (one.path.startswith(prefix) or one.path in changed)
        and one.size <= LARGEST
        and test_cases.may_hold_tests(one.path)
        and _project_path(change, one.path)
    ]
    near.sort(key=lambda one: (one.path not in changed, not test_cases.looks_like_test_path(one.path)))
    size = 0
    for number, one in enumerate(near):
        size += one.size
        if number >= MOST_FILES or size > MOST_BYTES:
            notes.append(TraceNote(".", 0, f"{len(near) - number} of {len(near)} files were not searched for tests"))
            return
        yield one
