"""What context may be made of: the change's own documents, and files of the project that git does not ignore."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from agentd.change import Change
from agentd.documents import InvalidDocument, one_line, parse_spec
from agentd.domain import CHANGE_ID, printable
from agentd.engine.tools.project_files import ProjectFiles, ReadFile
from agentd.engine.tools.refusal import ToolRefusal
from agentd.project import git

_SPECS = "agentd/specs"
_TITLE = 100  # characters


class ContextReader:
    """Reads as the tools do, so no link leads out, and neither secrets nor other changes are there."""

    def __init__(self, change: Change) -> None:
        self.folder = f"agentd/changes/{change.id}"
        self._tree = change.tree
        self._root = os.path.realpath(os.path.join(change.tree, change.project.prefix))
        self._own = ProjectFiles(self._root, self.folder, others_hidden=True)
        # No change's folder is looked into, where GEMINI.md and AGENTS.md are agentd's.
        self._project = ProjectFiles(self._root, None, others_hidden=True)

    def own(self, name: str) -> str | None:
        """A document of the change. Behind a link may be anything, so that is not read."""
        return self._plain(self._own, f"{self.folder}/{name}")

    def of_project(self, path: str) -> ReadFile | None:
        """A text file of the project; None if it is not there, or git ignores it or what it links to."""
        try:
            file = self._project.read(path)
        except ToolRefusal:
            return None
        return file if all(map(self._is_kept, {file.path, file.place})) else None

    def _is_kept(self, path: str) -> bool:
        """Tracked, or new and not ignored."""
        options = ("--cached", "--others", "--exclude-standard")
        return path in self.tracked() or bool(
            git.run(self._root, "ls-files", *options, "--", f":(literal){path}", failing="")
        )

    def tracked(self) -> tuple[str, ...]:
        """What git tracks of the project, except agentd's own folder."""
        return _tracked(self._root, self._index_stamp())

    def _index_stamp(self) -> tuple[int, ...]:
        """Git replaces its index whenever it changes."""
        try:
            found = os.stat(os.path.join(git.git_folder(self._tree), "index"))
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def spec_ids(self) -> list[str]:
        try:
            entries = self._project.entries(_SPECS).entries
        except ToolRefusal:
            return []
        names = [one.name.removesuffix(".md") for one in entries if one.kind == "file" and one.name.endswith(".md")]
        return [name for name in names if CHANGE_ID.fullmatch(name)]

    def main_spec(self, id_: str) -> tuple[str, str | None]:
        """Path and text of the project's own spec; None if it is not there, or is a link."""
        name = f"{_SPECS}/{id_}.md"
        return name, self._plain(self._project, name)

    def spec_title(self, id_: str) -> str:
        name, text = self.main_spec(id_)
        try:
            return one_line(parse_spec(text, name).title)[:_TITLE] if text else ""
        except InvalidDocument:
            return ""

    def _plain(self, ground: ProjectFiles, path: str) -> str | None:
        try:
            file = ground.read(path)
        except ToolRefusal:
            return None
        return file.data.decode() if file.place == path else None


@lru_cache(maxsize=4)  # a planner's context is written before each of its calls
def _tracked(root: str, stamp: tuple[int, ...]) -> tuple[str, ...]:
    names = git.run(root, "ls-files", "-z", "--", ".", ":(exclude)agentd", failing="").split("\0")
    return tuple(name for name in names if name)


DEPTH = 3
TOP_FILES = 40

_SECRET = re.compile(r"(?i)(?:^|/)\.env")


@dataclass
class OutlineFolder:
    """`count` is of all files below it, `files` the names in it."""

    count: int = 0
    files: list[str] = field(default_factory=list)
    folders: dict[str, "OutlineFolder"] = field(default_factory=dict)


def directory_outline(paths: Iterable[str], limit: int) -> str:
    """As deep as fits, at most three folders down; then what fits of the first level."""
    top = _tree(path for path in paths if not _SECRET.search(path))
    if not top.count:
        return "Nothing is tracked yet."
    room = limit - 10  # the fences
    for depth in range(DEPTH, 0, -1):
        text = "\n".join(_lines(top, depth))
        if len(text) <= room:
            return fence_text(text)
    return fence_text(_shortened(text, room))


def _tree(paths: Iterable[str]) -> OutlineFolder:
    top = OutlineFolder()
    for path in paths:
        *above, name = path.split("/")
        here = top
        here.count += 1
        for part in above[:DEPTH]:
            here = here.folders.setdefault(part, OutlineFolder())
            here.count += 1
        if not above:
            here.files.append(name)
    return top


def _lines(top: OutlineFolder, depth: int) -> Iterator[str]:
    yield from _below(top, depth, "")
    names = sorted(top.files)
    yield from map(printable, names[:TOP_FILES])
    if len(names) > TOP_FILES:
        yield f"and {len(names) - TOP_FILES} more files"


def _below(folder: OutlineFolder, depth: int, indent: str) -> Iterator[str]:
    for name, inner in sorted(folder.folders.items()):
        yield f"{indent}{printable(name)}/ ({inner.count} {'file' if inner.count == 1 else 'files'})"
        if depth > 1:
            yield from _below(inner, depth - 1, indent + "  ")


def _shortened(text: str, room: int) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    room -= len(_rest(len(lines)))
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, _rest(len(lines) - len(kept))])


def _rest(count: int) -> str:
    return f"and {count} more"


LONGEST = 100  # of a run of backticks; a longer one would make the fence longer than the text

_RUN = re.compile(r"`{3,}")
_TOO_LONG = re.compile(rf"`{{{LONGEST + 1},}}")


def quote_text(path: str, text: str, limit: int, tools: Mapping[str, str]) -> str:
    """At most `limit` characters of it, in whole lines; what is left off says where it goes on."""
    text = text.removeprefix("\ufeff").rstrip()
    if not text:
        return "It is empty."
    kept, following = cut_lines(text, limit)
    if not following:
        return fence_text(text)
    how = f"read on with `{tools.get('read_file', 'read_file')}`, offset {following}"
    return f"{fence_text(kept)}\n\n[cut here: `{path}` is longer; {how}]"


def shorten_text(text: str, limit: int, path: str) -> str:
    """For a prompt, which quotes by indenting: at most `limit` characters, and where the whole stands."""
    text = text.removeprefix("\ufeff").strip()
    kept, following = cut_lines(text, limit)
    return f"{kept}\n[cut here: the whole stands in `{path}`]".lstrip() if following else text


def pointer_to(path: str, text: str, tools: Mapping[str, str]) -> str:
    reading = tools.get("read_file", "read_file")
    return f"It has {len(text)} characters, too many for this file: read `{path}` with `{reading}`."


def cut_lines(text: str, limit: int) -> tuple[str, int]:
    """The lines that fit, and the number of the first that is missing or incomplete; 0 if all are there."""
    if len(text) <= limit:
        return text, 0
    end = text.rfind("\n", 0, limit + 1)
    kept = text[:end] if end > 0 else text[:limit]
    return kept, kept.count("\n") + (2 if end > 0 else 1)


def fence_text(text: str) -> str:
    # Every run counts, wherever it stands: not everybody agrees on what ends a line.
    text = _TOO_LONG.sub("`" * LONGEST + "…", text)
    fence = "`" * (max((len(run) for run in _RUN.findall(text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"
