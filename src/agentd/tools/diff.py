"""What an implementation changed: two git trees compared, seen from the project's root, without what is agentd's."""

import os
from typing import NamedTuple

from agentd import git
from agentd.change.folder import Change
from agentd.terms import TaskAction

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
_NOT_OURS = (".", ":(exclude)agentd", ":(exclude,glob,icase)**/.env*", ":(exclude,glob,icase)**/.env*/**")
_ACTIONS = {"A": TaskAction.CREATE, "D": TaskAction.DELETE}


class Changed(NamedTuple):
    """A file in short; git counts no lines of what is no text, and writes `-`."""

    action: TaskAction
    more: str
    less: str

    def row(self, name: str) -> str:
        return f"{self.action} {name} (+{self.more} -{self.less})"


def changed_files(change: Change, base: str, tree: str) -> dict[str, Changed]:
    """By path, from the project's root; in a sub-folder what lies outside it comes last, as `../name`."""
    found = {}
    for part in _parts(change):
        status = part.git("-z", "--name-status", base, tree, "--", *part.wanted).split("\0")
        letters = dict(zip(status[1::2], (word[:1] for word in status[::2]), strict=False))
        for name, (more, less) in part.counts(base, tree).items():
            action = _ACTIONS.get(letters.get(name, ""), TaskAction.MODIFY)
            found[f"{part.up}{name}"] = Changed(action, more, less)
    return found


def diff(change: Change, base: str, tree: str, path: str | None = None) -> str:
    """To be read: bytes that are no UTF-8 are replaced. A path is one of the files that changed."""
    texts = []
    for part in _parts(change):
        if path is None:
            texts.append(part.diff(base, tree, *part.wanted))
        elif path.startswith("../") == bool(part.up):
            texts.append(part.diff(base, tree, f":(literal){path.removeprefix(part.up)}"))
    text = "\n".join(filter(None, texts))
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Part(NamedTuple):
    """The project, or what is around it; `up` leads from the project's root to where its paths begin."""

    folder: str
    up: str
    wanted: tuple[str, ...]

    def git(self, *arguments: str) -> str:
        around = (f"--src-prefix=a/{self.up}", f"--dst-prefix=b/{self.up}")
        return git.run(self.folder, "diff", *_PLAIN, "--relative", *around, *arguments)

    def diff(self, base: str, tree: str, *wanted: str) -> str:
        """Text that .gitattributes calls binary is shown all the same: whoever is judged may write that file."""
        counts = self.counts(base, tree, *wanted)
        hidden = [name for name, row in counts.items() if row == ("-", "-") and self._is_text(name, base, tree)]
        out = [f":(exclude,literal){name}" for name in hidden]
        texts = [self.git(base, tree, "--", *wanted, *out)] if len(hidden) < len(counts) else []
        if hidden:
            texts.append(self.git("--text", base, tree, "--", *(f":(literal){name}" for name in hidden)))
        return "\n".join(texts)

    def counts(self, base: str, tree: str, *wanted: str) -> dict[str, tuple[str, str]]:
        rows = self.git("-z", "--numstat", base, tree, "--", *(wanted or self.wanted)).split("\0")
        return {name: (more, less) for more, less, name in (row.split("\t", 2) for row in rows if row)}

    def _is_text(self, name: str, base: str, tree: str) -> bool:
        texts = [git.run(self.folder, "cat-file", "blob", f"{one}:./{name}", failing="") for one in (base, tree)]
        return not any("\0" in text for text in texts)


def _parts(change: Change) -> list[_Part]:
    prefix = change.project.prefix
    parts = [_Part(os.path.join(change.tree, prefix), "", _NOT_OURS)]
    if prefix:
        up = "../" * len(prefix.strip("/").split("/"))
        parts.append(_Part(change.tree, up, (*_NOT_OURS, f":(exclude,literal){prefix}")))
    return parts
