"""Read the material for context files (documents of the change, files git does not ignore), and quote it safely."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from agentd.change import Change
from agentd.documents import InvalidDocument, one_line, parse_spec
from agentd.domain import CHANGE_ID, pluralize, printable
from agentd.engine.tools.project_files import ProjectFiles, ReadFile
from agentd.engine.tools.tool import ToolRefusal
from agentd.project import git

_SPECS = "agentd/specs"
_TITLE = 100  # characters


class ContextReader:
    """Read like the agents' tools: never through a link out of the project, and no secrets or other changes."""

    def __init__(self, change: Change) -> None:
        self.folder = f"agentd/changes/{change.id}"
        self._tree = change.tree
        self._root = os.path.realpath(os.path.join(change.tree, change.project.prefix))
        self._own = ProjectFiles(self._root, self.folder, others_hidden=True)
        # Hides all change folders, where GEMINI.md and AGENTS.md are agentd's own.
        self._project = ProjectFiles(self._root, None, others_hidden=True)

    def own(self, name: str) -> str | None:
        """Return a document of the change, or None if it is missing or a link, which could point anywhere."""
        return _read_plain(self._own, f"{self.folder}/{name}")

    def of_project(self, path: str) -> ReadFile | None:
        """Return a text file of the project, or None if it is missing, or if git ignores it or its link target."""
        try:
            file = self._project.read(path)
        except ToolRefusal:
            return None
        return file if all(map(self._is_kept, {file.path, file.place})) else None

    def _is_kept(self, path: str) -> bool:
        """Return whether a file is tracked, or new and not ignored."""
        options = ("--cached", "--others", "--exclude-standard")
        return path in self.tracked() or bool(
            git.run(self._root, "ls-files", *options, "--", f":(literal){path}", failing="")
        )

    def tracked(self) -> tuple[str, ...]:
        """Return the files of the project that git tracks, except agentd's own folder."""
        try:
            index = os.stat(os.path.join(git.git_folder(self._tree), "index"))
        except OSError:
            return _tracked(self._root, ())
        return _tracked(self._root, (index.st_mtime_ns, index.st_size, index.st_ino))  # git replaces a changed index

    def spec_ids(self) -> list[str]:
        try:
            entries = self._project.entries(_SPECS).entries
        except ToolRefusal:
            return []
        names = [one.name.removesuffix(".md") for one in entries if one.kind == "file" and one.name.endswith(".md")]
        return [name for name in names if CHANGE_ID.fullmatch(name)]

    def main_spec(self, id_: str) -> tuple[str, str | None]:
        """Return the path and text of the project's own spec. The text is None if it is missing or a link."""
        name = f"{_SPECS}/{id_}.md"
        return name, _read_plain(self._project, name)

    def spec_title(self, id_: str) -> str:
        name, text = self.main_spec(id_)
        try:
            return one_line(parse_spec(text, name).title)[:_TITLE] if text else ""
        except InvalidDocument:
            return ""


def _read_plain(files: ProjectFiles, path: str) -> str | None:
    try:
        file = files.read(path)
    except ToolRefusal:
        return None
    return file.data.decode() if file.place == path else None


@lru_cache(maxsize=4)  # a planner's context is rewritten before each of its calls
def _tracked(root: str, stamp: tuple[int, ...]) -> tuple[str, ...]:
    names = git.run(root, "ls-files", "-z", "--", ".", ":(exclude)agentd", failing="").split("\0")
    return tuple(name for name in names if name)


# ---- layout of the project

DEPTH = 3
TOP_FILES = 40

_SECRET = re.compile(r"(?i)(?:^|/)\.env")


def directory_outline(paths: Iterable[str], limit: int) -> str:
    """List folders with their file counts: as deep as fits, up to three levels; otherwise the top level, cut to fit."""
    shown = [path for path in paths if not _SECRET.search(path)]
    if not shown:
        return "Nothing is tracked yet."
    folders = Counter(parents[:depth] for parents in map(_parents, shown) for depth in range(1, len(parents) + 1))
    names = sorted(path for path in shown if "/" not in path)
    files = [*map(printable, names[:TOP_FILES])]
    if len(names) > TOP_FILES:
        files.append(f"and {len(names) - TOP_FILES} more files")
    limit -= 10  # the fences
    for depth in range(DEPTH, 0, -1):
        lines = [
            f"{'  ' * (len(folder) - 1)}{printable(folder[-1])}/ ({pluralize(count, 'file')})"
            for folder, count in sorted(folders.items())
            if len(folder) <= depth
        ]
        text = "\n".join([*lines, *files])
        if len(text) <= limit:
            return fence_text(text)
    lines = text.split("\n")
    kept = fitting_lines(lines, limit - len(f"and {len(lines)} more"))
    return fence_text("\n".join([*kept, f"and {len(lines) - len(kept)} more"]))


def _parents(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[:-1][:DEPTH])


# ---- quotations: bounded, in a fence that their content cannot close

LONGEST = 100  # longest run of backticks kept; a longer one would make the fence longer than the text

_RUN = re.compile(r"`{3,}")
_TOO_LONG = re.compile(rf"`{{{LONGEST + 1},}}")


def quote_text(path: str, text: str, limit: int, tools: Mapping[str, str]) -> str:
    """Quote at most `limit` characters in whole lines, and say where to continue reading."""
    text = text.removeprefix("\ufeff").rstrip()
    if not text:
        return "It is empty."
    kept, following = cut_lines(text, limit)
    if not following:
        return fence_text(text)
    tool = tools.get("read_file", "read_file")
    return f"{fence_text(kept)}\n\n[cut here: `{path}` is longer; continue with `{tool}`, offset {following}]"


def shorten_text(text: str, limit: int, path: str) -> str:
    """Return at most `limit` characters, and where the full text is, for a prompt that quotes by indenting."""
    text = text.removeprefix("\ufeff").strip()
    kept, following = cut_lines(text, limit)
    return f"{kept}\n[cut here: the full text is in `{path}`]".lstrip() if following else text


def cut_lines(text: str, limit: int) -> tuple[str, int]:
    """Return the lines that fit, and the number of the first line that is missing or cut; 0 if all fit."""
    if len(text) <= limit:
        return text, 0
    end = text.rfind("\n", 0, limit + 1)
    kept = text[:end] if end > 0 else text[:limit]
    return kept, kept.count("\n") + (2 if end > 0 else 1)


def fitting_lines(lines: Iterable[str], limit: int) -> list[str]:
    """Return as many of the first lines as fit into `limit` characters."""
    kept = []
    for line in lines:
        limit -= len(line) + 1
        if limit < 0:
            break
        kept.append(line)
    return kept


def fence_text(text: str) -> str:
    # Count every run of backticks, wherever it is, because programs disagree about what ends a line.
    text = _TOO_LONG.sub("`" * LONGEST + "…", text)
    fence = "`" * (max((len(run) for run in _RUN.findall(text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"
