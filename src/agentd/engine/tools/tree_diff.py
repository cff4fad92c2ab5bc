"""What an implementation changed: two git trees compared, relative to the project root, without agentd's own files."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from agentd.change import Change
from agentd.domain import TaskAction
from agentd.project import git

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
_NOT_OURS = (".", ":(exclude)agentd", ":(exclude,glob,icase)**/.env*", ":(exclude,glob,icase)**/.env*/**")
_PIECE = re.compile(rb"^diff --git ", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")  # in a name that git quotes
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ACTIONS = {"A": TaskAction.CREATE, "D": TaskAction.DELETE}


class ChangedPath(NamedTuple):
    """A changed file in short. For binary files, git counts no lines and prints `-`."""

    action: TaskAction
    more: str
    less: str

    def row(self, name: str) -> str:
        return f"{self.action} {name} (+{self.more} -{self.less})"


def changed_files(change: Change, base: str, tree: str) -> dict[str, ChangedPath]:
    """Return the changed files by path relative to the project root.

    If the project is in a subfolder, files outside it come last, as `../name`.
    """
    found = {}
    for part in _parts(change):
        status = part.git("-z", "--name-status", base, tree, "--", *part.wanted).split("\0")
        letters = dict(zip(status[1::2], (word[:1] for word in status[::2]), strict=False))
        for name, (more, less) in part.counts(base, tree).items():
            action = _ACTIONS.get(letters.get(name, ""), TaskAction.MODIFY)
            found[f"{part.up}{name}"] = ChangedPath(action, more, less)
    return found


def tree_diff(change: Change, base: str, tree: str, path: str | None = None) -> str:
    """Return the diff as readable text; invalid UTF-8 is replaced. `path` is one of the changed files."""
    texts = []
    for part in _parts(change):
        if path is None:
            texts.append(part.diff(base, tree, *part.wanted))
        elif path.startswith("../") == bool(part.up):
            texts.append(part.diff(base, tree, f":(literal){path.removeprefix(part.up)}"))
    text = "\n".join(filter(None, texts))
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def diff_by_file(change: Change, base: str, tree: str, but: Collection[str] = ()) -> dict[str, bytes]:
    """Return the diff of each file by its path, byte for byte, without the files in `but`."""
    found: dict[str, bytes] = {}
    for part in _parts(change):
        outside = {name.removeprefix(part.up) for name in but if name.startswith("../") == bool(part.up)}
        for text in part.printed(base, tree, outside):
            for piece in _PIECE.split(text)[1:]:  # content lines have a prefix, so none can begin like this
                path = _path_in(piece)
                found[path] = found.get(path, b"") + piece  # a file that became a link has two pieces
    return found


def _path_in(piece: bytes) -> str:
    """Return the path from the first line. Without renames, both halves of it name the same file."""
    head = piece.partition(b"\n")[0]
    half = head[: (len(head) - 1) // 2]
    if half.startswith(b'"'):
        half = _ESCAPE.sub(_unescaped, half[1:-1])
    return half[2:].decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    return _LETTERS.get(match[1]) or (bytes([int(match[1], 8)]) if match[1].isdigit() else match[1])


class _DiffPart(NamedTuple):
    """The project, or the files around it. `up` leads from the project root to where the paths begin."""

    folder: str
    up: str
    wanted: tuple[str, ...]

    def git(self, *arguments: str) -> str:
        return git.run(self.folder, *self._diff, *arguments)

    @property
    def _diff(self) -> tuple[str, ...]:
        return ("diff", *_PLAIN, "--relative", f"--src-prefix=a/{self.up}", f"--dst-prefix=b/{self.up}")

    def diff(self, base: str, tree: str, *wanted: str) -> str:
        return "\n".join(self.git(*call) for call in self._calls(base, tree, wanted, ()))

    def printed(self, base: str, tree: str, but: Collection[str]) -> list[bytes]:
        """Return the diff as bytes, without the files in `but`."""
        calls = self._calls(base, tree, self.wanted, but)
        return [git.run_bytes(self.folder, *self._diff, *call) for call in calls]

    def _calls(self, base: str, tree: str, wanted: Sequence[str], but: Collection[str]) -> Iterator[tuple[str, ...]]:
        """Yield the arguments of each `git diff` to run.

        Text that .gitattributes marks as binary is shown anyway: the agent under review could have written that file.
        """
        counts = {name: row for name, row in self.counts(base, tree, *wanted).items() if name not in but}
        hidden = [name for name, row in counts.items() if row == ("-", "-") and self._is_text(name, base, tree)]
        if len(hidden) < len(counts):
            yield (base, tree, "--", *wanted, *(f":(exclude,literal){name}" for name in (*hidden, *but)))
        if hidden:
            yield ("--text", base, tree, "--", *(f":(literal){name}" for name in hidden))

    def counts(self, base: str, tree: str, *wanted: str) -> dict[str, tuple[str, str]]:
        rows = self.git("-z", "--numstat", base, tree, "--", *(wanted or self.wanted)).split("\0")
        return {name: (more, less) for more, less, name in (row.split("\t", 2) for row in rows if row)}

    def _is_text(self, name: str, base: str, tree: str) -> bool:
        texts = [git.run(self.folder, "cat-file", "blob", f"{one}:./{name}", failing="") for one in (base, tree)]
        return not any("\0" in text for text in texts)


def _parts(change: Change) -> list[_DiffPart]:
    prefix = change.project.prefix
    parts = [_DiffPart(os.path.join(change.tree, prefix), "", _NOT_OURS)]
    if prefix:
        up = "../" * len(prefix.strip("/").split("/"))
        parts.append(_DiffPart(change.tree, up, (*_NOT_OURS, f":(exclude,literal){prefix}")))
    return parts
