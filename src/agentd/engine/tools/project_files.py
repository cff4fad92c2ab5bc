"""What a server may read, and the documents it may write. Paths come from a model and are checked step by step."""

import contextlib
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from agentd.engine.tools.path_walk import PathWalk, WalkProblem, WalkStopped
from agentd.engine.tools.tool import ToolRefusal, nearest_names
from agentd.storage import files

LENGTH = 1024  # characters in a path
NAME = 255  # bytes in one component
DEEP = 100  # components in a path
DOCUMENT = 200  # bytes in a document's name; its temporary file has a longer one
SIZE = 10_000_000  # bytes in a file
ENTRIES = 500
NAMES = 5000  # how many names to search for a similar one

# Line breaks, other control characters, backslashes and lone surrogates.
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\\ud800-\udfff]")
# Characters that file systems ignore when they compare names.
_IGNORED = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_HIDDEN = re.compile(r"\.git|git~\d+|\.env.*|env~\d+.*", re.DOTALL)

_SAID = {
    WalkProblem.ABSENT: ("not-found", "there is no {path}", "call list_directory to see what is there"),
    WalkProblem.FILE: ("not-found", "{path} goes through a file as if it were a folder", "name the file itself"),
    WalkProblem.FOLDER: ("is-directory", "{path} is a folder", "name a file in it; list_directory shows them"),
    WalkProblem.OUTSIDE: (
        "outside",
        "{path} leads to what this server does not show",
        "name another file of the project",
    ),
    WalkProblem.LINKED: ("outside", "{path} is a link or lies behind one", "tell the person to put a plain file there"),
    WalkProblem.LINKS: ("outside", "{path} goes through too many links", "name the file itself"),
    WalkProblem.SPECIAL: ("outside", "{path} is neither a file nor a folder", "name a text file of the project"),
}


_OF_THE_PROJECT = ("AGENTS.md", "GEMINI.md")  # a bare name means the project's own file, not agentd's


class ReadFile(NamedTuple):
    path: str  # as requested
    data: bytes  # UTF-8 without NUL bytes
    place: str  # relative to the root, links resolved


class DirectoryEntry(NamedTuple):
    name: str
    kind: Literal["file", "directory"]
    size: int | None  # files only


class DirectoryListing(NamedTuple):
    path: str
    entries: tuple[DirectoryEntry, ...]
    left_off: int


class _NearMiss(NamedTuple):
    """A failed lookup: how many components exist, and which names are similar to the missing one."""

    at: int
    why: WalkProblem
    near: list[str]


@dataclass(frozen=True)
class ProjectFiles:
    """The project as one server sees it."""

    root: str  # real and absolute
    folder: str | None  # the change's folder, relative to the root; short names are looked up there first
    others_hidden: bool  # hide all of agentd/changes except the change's own folder

    def read(self, path: str) -> ReadFile:
        with self._found(path) as (walk, shown):
            if walk.is_folder():
                raise ToolRefusal("is-directory", f"{_short(shown)} is a folder", "use list_directory")
            data = _data(walk, shown)
            if not _is_text(data):
                raise ToolRefusal("binary", f"{_short(shown)} is not UTF-8 text", "name a text file")
            return ReadFile(shown, data, "/".join(walk.names))

    def entries(self, path: str) -> DirectoryListing:
        with self._found(path) as (walk, shown):
            if not walk.is_folder():
                raise ToolRefusal("not-a-directory", f"{_short(shown)} is a file", "use read_file")
            names = sorted(name for name, link in walk.inside() if _sendable(name) and (not link or walk.look(name)))
            seen = [entry for name in names[:ENTRIES] if (entry := _entry(walk, name))]
            return DirectoryListing(shown, tuple(seen), max(0, len(names) - ENTRIES))

    def write(self, name: str, data: bytes) -> None:
        """Write a document of the change atomically, never through a link."""
        folder, *above, leaf = self._document(name)
        with _told(name, "written"), self._walk() as walk:
            try:
                walk.go(folder.split("/"), links=0)
                for part in above:
                    walk.make(part)
                    walk.go([part], links=0)
                if not walk.is_folder():
                    raise WalkStopped(WalkProblem.FILE)
                walk.replace(leaf, data)
            except WalkStopped as stop:
                if stop.why is WalkProblem.ABSENT:
                    raise ToolRefusal("not-found", f"the change has no folder {folder}", "tell the person") from None
                raise _refusal(stop.why, name) from None

    def digest(self, name: str) -> str | None:
        """Return the hash of a document of the change, or None if it does not exist."""
        folder, *parts = self._document(name)
        with _told(name, "read"), self._walk() as walk:
            try:
                walk.go([*folder.split("/"), *parts], links=0)
                if walk.is_folder():
                    raise WalkStopped(WalkProblem.FOLDER)
            except WalkStopped as stop:
                if stop.why is WalkProblem.ABSENT:
                    return None
                raise _refusal(stop.why, name) from None
            return files.hash_bytes(_data(walk, name))

    def check(self, path: str) -> None:
        """Raise ToolRefusal if the path is not allowed. Does not access the disk."""
        self._parts(path)

    def _walk(self) -> PathWalk:
        return PathWalk(self.root, self._may)

    def _may(self, above: Sequence[str], name: str) -> bool:
        if _HIDDEN.fullmatch(_fold(name)):
            return False
        if not self.others_hidden or [_fold(part) for part in above] != ["agentd", "changes"]:
            return True
        return "/".join([*above, name]) == self.folder

    def _document(self, name: str) -> list[str]:
        """Return the change's folder, followed by the components of the document's path."""
        parts = self._parts(name)
        if self.folder is None:
            raise ToolRefusal("bad-argument", "no change is named", "send change_id")
        leaf = parts[-1] if parts else ""
        plain = leaf.endswith(".md") and not leaf.startswith(".") and len(leaf.encode()) <= DOCUMENT
        if not plain or parts[:-1] not in ([], ["specs"]):
            what = f"{_short(name)} is not a document of a change"
            raise ToolRefusal("not-writable", what, "send a name such as proposal.md or specs/auth-flow.md")
        return [self.folder, *parts]

    def _parts(self, path: str) -> list[str]:
        """Split a path into components and check them, without accessing the disk."""
        if not path or len(path) > LENGTH:
            what = f"the path is longer than {LENGTH} characters" if path else "the path is empty"
            raise ToolRefusal("bad-argument", what, "send one from the project root, such as src/main.py")
        if _UNSENDABLE.search(path):
            what = "the path has a line break, a control character, a backslash or half a character in it"
            raise ToolRefusal("bad-argument", what, "send plain names with / between them")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts:
            what = f"{_short(path)} {'is absolute' if path.startswith('/') else 'has .. in it'}"
            raise ToolRefusal(
                "outside", what, "send the path from the project root, without a leading / and without .."
            )
        if len(parts) > DEEP or any(len(part.encode()) > NAME for part in parts):
            what = f"the path has more than {DEEP} names, or one of more than {NAME} bytes"
            raise ToolRefusal("bad-argument", what, "send a shorter path")
        if not all(self._may(parts[:number], part) for number, part in enumerate(parts)):
            raise _refusal(WalkProblem.OUTSIDE, path)
        return parts

    @contextlib.contextmanager
    def _found(self, path: str) -> Iterator[tuple[PathWalk, str]]:
        """Yield a walk at the path: in the change's folder if it exists there, otherwise relative to the root."""
        parts = self._parts(path)
        shown = "/".join(parts) or "."
        own = self.folder.split("/") if self.folder else []
        is_short = own and parts and parts[: len(own)] != own and parts[0] not in _OF_THE_PROJECT
        starts = [own, []] if is_short else [[]]
        misses = []
        with _told(shown, "read"):
            for asked_again in (False, True):  # search for similar names only if nothing was found
                for start in starts:
                    with self._walk() as walk:
                        miss = self._gone(walk, start, parts, asked_again)
                        if miss is None:
                            yield walk, shown
                            return
                        misses.append(miss)
        raise _not_found(parts, misses)

    def _gone(self, walk: PathWalk, start: list[str], parts: list[str], asked_again: bool) -> _NearMiss | None:
        try:
            walk.go([*start, *parts])
        except WalkStopped as stop:
            at = stop.at - len(start)
            if at >= 0 and stop.why not in (WalkProblem.ABSENT, WalkProblem.FILE):
                raise _refusal(stop.why, "/".join(parts)) from None
            direct = asked_again and at >= 0 and stop.direct and stop.why is WalkProblem.ABSENT
            return _NearMiss(at, stop.why, _near(walk, parts[at]) if direct else [])
        return None


@lru_cache(4096)
def _fold(name: str) -> str:
    """Return the name as a file system would see it that ignores case, normal form, invisible characters or endings."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return _IGNORED.sub("", folded).split(":")[0].rstrip(" .")


def _sendable(name: str) -> bool:
    """Return whether the name can be requested; other names are not listed."""
    return not _UNSENDABLE.search(name)


def _entry(walk: PathWalk, name: str) -> DirectoryEntry | None:
    seen = walk.look(name)
    if seen is None:
        return None  # deleted since the folder was read
    return (
        DirectoryEntry(name, "directory", None)
        if stat.S_ISDIR(seen.st_mode)
        else DirectoryEntry(name, "file", seen.st_size)
    )


def _near(walk: PathWalk, name: str) -> list[str]:
    names = [one for one, _ in islice(walk.inside(), NAMES) if _sendable(one)]
    return [one for one in nearest_names(name, names) if walk.look(one)]


def _data(walk: PathWalk, shown: str) -> bytes:
    data = walk.read(SIZE)  # the file may have grown since it was listed
    if len(data) > SIZE:
        raise ToolRefusal("too-large", f"{_short(shown)} has more than {SIZE // 1_000_000} MB", "name a smaller file")
    return data


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _not_found(parts: list[str], misses: list[_NearMiss]) -> ToolRefusal:
    best = max(miss.at for miss in misses)
    deepest = [miss for miss in misses if miss.at == best]
    above = "/".join(parts[:best])
    if all(miss.why is WalkProblem.FILE for miss in deepest):
        return ToolRefusal("not-found", f"{_short(above)} is a file, not a folder", "use read_file on it")
    near = nearest_names(parts[best], {name for miss in deepest for name in miss.near})
    what = f"there is no {_short('/'.join(parts[: best + 1]))}"
    if near:
        paths = ", ".join(_short("/".join([*parts[:best], one])) for one in near)
        return ToolRefusal("not-found", what, f"use one of the nearest: {paths}")
    return ToolRefusal("not-found", what, f"list_directory of {_short(above) or '.'} shows what is there")


def _refusal(why: WalkProblem, path: str) -> ToolRefusal:
    code, what, instead = _SAID[why]
    return ToolRefusal(code, what.format(path=_short(path)), instead)


def _short(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"


@contextlib.contextmanager
def _told(path: str, done: str) -> Iterator[None]:
    """Turn OSErrors into a refusal, because only a person can fix them."""
    try:
        yield
    except OSError as error:
        what = f"{_short(path)} cannot be {done}: {error.strerror or type(error).__name__}"
        raise ToolRefusal("failed", what, "tell the person") from None
