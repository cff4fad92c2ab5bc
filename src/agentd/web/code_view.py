"""The code of a change: the diff against the tree it started from, file by file, and the findings at its lines."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from agentd.change import Change, ChangeState
from agentd.documents import Evidence, Finding, anchor_selection
from agentd.domain import AgentdError, Refusal
from agentd.engine import ChangedPath, changed_files, diff_by_file
from agentd.project import git
from agentd.trace import check_trees_exist
from agentd.web import annotations
from agentd.web.annotations import Annotation
from agentd.web.markup import diff_hunks, svg
from agentd.web.markup.diff_hunks import DiffHunk
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query

_BIG = 20_000  # changed lines; a file with more is not read
_TOTAL = 20_000  # lines shown across all files
_NAMES = 2_000  # files shown
_TREE = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class FileDiff:
    """`left_out`: changed and context lines that are not in the hunks, as far as they were counted."""

    path: str
    status: str  # CREATE, MODIFY or DELETE
    added: int
    removed: int
    is_binary: bool
    is_big: bool
    hunks: tuple[DiffHunk, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class CodeTrees:
    """`tree` is the current code, or for a closed change the code judged last; None if there is none."""

    base: str | None
    tree: str | None
    is_now: bool


@dataclass(frozen=True, slots=True)
class CodeView:
    """`files_left_out`: how many more files there are."""

    trees: CodeTrees
    files: tuple[FileDiff, ...]
    files_left_out: int
    problem: str


def read_code(change: Change) -> CodeView:
    nothing = CodeTrees(None, None, is_now=True)
    try:
        found = code_trees(change)
        if found.base is None or found.tree is None:
            return CodeView(nothing, (), 0, "")
        check_trees_exist(change.tree, found.base, change.id)
        check_tree(change, found.tree)
        some = changed_files(change, found.base, found.tree)
        return CodeView(found, _diffs(change, found.base, found.tree, some), max(0, len(some) - _NAMES), "")
    except AgentdError as error:
        return CodeView(nothing, (), 0, error.message)


def code_trees(change: Change) -> CodeTrees:
    state = change.read()
    if state.base.tree is None:
        return CodeTrees(None, None, is_now=True)
    if state.phase.is_open:
        return CodeTrees(state.base.tree, git.snapshot(change.tree), is_now=True)
    return CodeTrees(state.base.tree, _last_judged(state), is_now=False)


def _last_judged(state: ChangeState) -> str | None:
    return next((moved.hashes["tree"] for moved in reversed(state.history) if moved.hashes.get("tree")), None)


def check_tree(change: Change, tree: str) -> None:
    """Raise Refusal unless git has the tree under its full hash; anything else could be read as a git option."""
    if not _TREE.fullmatch(tree) or git.run(change.tree, "cat-file", "-t", tree, failing="") != "tree":
        hint = f"fetch it from where the code was judged: git fetch <remote> 'refs/agentd/{change.id}/*'"
        raise Refusal(f"the tree {tree[:12]} of {change.id} is not in this repository", hint)


def diff_between(change: Change, base: str, tree: str) -> tuple[FileDiff, ...]:
    """Diff two trees that are known to exist."""
    return _diffs(change, base, tree, changed_files(change, base, tree))


def _diffs(change: Change, base: str, tree: str, some: Mapping[str, ChangedPath]) -> tuple[FileDiff, ...]:
    big = [path for path, row in some.items() if _lines(row) > _BIG]
    pieces = diff_by_file(change, base, tree, big)
    found = []
    room = _TOTAL
    for path in list(some)[:_NAMES]:
        one = _file(path, some[path], pieces.get(path, b""), min(room, diff_hunks.LINES), path in big)
        room -= sum(len(hunk.lines) for hunk in one.hunks)
        found.append(one)
    return tuple(found)


def _file(path: str, row: ChangedPath, piece: bytes, room: int, is_big: bool) -> FileDiff:
    read = diff_hunks.read_hunks(piece, room)
    is_counted = row.more.isdecimal()  # git counts no lines for what .gitattributes calls binary, text or not
    told = svg.visible_plain(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return FileDiff(
        path=told,
        status=str(row.action),
        added=int(row.more) if is_counted else read.added,
        removed=int(row.less) if is_counted else read.removed,
        is_binary=not is_counted and not read.hunks,
        is_big=is_big or read.left_out > 0,
        hunks=read.hunks,
        left_out=_lines(row) if is_big else read.left_out,
    )


def _lines(row: ChangedPath) -> int:
    return sum(int(count) for count in (row.more, row.less) if count.isdecimal())


# ---- findings


def code_notes(change: Change) -> dict[str, tuple[Annotation, ...]]:
    """Return findings about code by file, at the current line of their text; at line 0 if the file is gone."""
    found = annotations.read_record_view(change)
    about = [(one, one.evidence) for one in found.findings if _is_about_code(change, one)]
    try:
        tree = code_trees(change).tree if about else None
    except AgentdError:
        tree = None
    texts: dict[str, str | None] = {}
    made: dict[str, list[Annotation]] = {}
    for one, evidence in about:
        path = (evidence.file if evidence else None) or ""
        if path not in texts:
            texts[path] = _text(change, tree, path) if tree else None
        made.setdefault(svg.visible_plain(path), []).append(_at_line(one, evidence, found, texts[path]))
    return {path: tuple(sorted(some, key=lambda note: note.line)) for path, some in sorted(made.items())}


def _is_about_code(change: Change, one: Finding) -> bool:
    file = one.evidence.file if one.evidence else None
    return bool(file) and annotations.finding_document(change, replace(one, requirement=None)) == ""


def _text(change: Change, tree: str, path: str) -> str | None:
    inside = f"{change.project.prefix}/{path}" if change.project.prefix else path
    text = git.run(change.tree, "cat-file", "blob", f"{tree}:{inside}", failing="\0")
    return None if "\0" in text else text


def _at_line(one: Finding, evidence: Evidence | None, found: annotations.RecordView, text: str | None) -> Annotation:
    path = (evidence.file if evidence else None) or ""
    line, quote = (evidence.line or 0, evidence.quote) if evidence else (0, None)
    if text is None:
        return annotations.place_finding(one, found, path, 0, is_orphaned=True)
    place = anchor_selection(path, text, quote, line=line or 1) if quote else None
    if quote and place is None:
        return annotations.place_finding(one, found, path, min(line, text.count("\n") + 1), is_orphaned=True)
    return annotations.place_finding(one, found, path, place.line if place else min(line, text.count("\n") + 1))


def code_difference(change: Change, older_tree: str, newer_tree: str) -> tuple[FileDiff, ...]:
    """Diff the trees of two reviews; raise Refusal naming the one git does not have."""
    for tree in (older_tree, newer_tree):
        check_tree(change, tree)
    return diff_between(change, older_tree, newer_tree)


# ---- the page


def _lead(found: Iterable[FileDiff], is_now: bool) -> str:
    found = tuple(found)
    added, removed = sum(one.added for one in found), sum(one.removed for one in found)
    when = "now" if is_now else "when it was judged last"
    return f"{len(found)} files, {added} lines added and {removed} removed, from the first edit until {when}."


def _placed(
    found: Iterable[FileDiff], notes: dict[str, tuple[Annotation, ...]]
) -> tuple[dict[str, dict[int, list[Annotation]]], list[Annotation]]:
    """Group notes by file and line if the diff shows that line; also return those without a place in the diff."""
    shown = {one.path: {line.new for hunk in one.hunks for line in hunk.lines if line.new} | {0} for one in found}
    placed: dict[str, dict[int, list[Annotation]]] = {}
    elsewhere = []
    for path, some in notes.items():
        for note in some:
            if note.line in shown.get(path, ()):
                placed.setdefault(path, {}).setdefault(note.line, []).append(note)
            else:
                elsewhere.append(note)
    return placed, elsewhere


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    """Show all of the code or, with `from` and `to`, what changed between two reviews."""
    older, newer = query.get("from", ""), query.get("to", "")
    if older and newer:
        found, problem, left, notes = code_difference(change, older, newer), "", 0, {}
        lead = "What changed between two reviews."
    else:
        code = read_code(change)
        found, problem, left, notes = code.files, code.problem, code.files_left_out, code_notes(change)
        lead = _lead(found, code.trees.is_now)
    placed, elsewhere = _placed(found, notes)
    return {
        "files": found,
        "notes": placed,
        "elsewhere": elsewhere,
        "lead": lead,
        "left_out": left,
        "problem": problem,
        "is_between": bool(older and newer),
        "address": f"/changes/{change.id}/code" + (f"?{urlencode(query)}" if older else ""),
    }


TABS = (ChangeTab("code", 70, _values, lambda documents, state: bool(state and state.base.tree)),)
