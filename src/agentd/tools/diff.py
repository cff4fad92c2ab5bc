"""What an implementation changed: two git trees compared, seen from the project's root, without what is agentd's."""

import os
from typing import NamedTuple

from agentd import git
from agentd.change.folder import Change
from agentd.terms import TaskAction

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative")
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
    """By path, from the project's root."""
    status = _git(change, "-z", "--name-status", base, tree, "--", *_NOT_OURS).split("\0")
    counts = _git(change, "-z", "--numstat", base, tree, "--", *_NOT_OURS).split("\0")
    letters = dict(zip(status[1::2], (word[:1] for word in status[::2]), strict=False))
    found = {}
    for row in filter(None, counts):
        more, less, name = row.split("\t", 2)
        found[name] = Changed(_ACTIONS.get(letters.get(name, ""), TaskAction.MODIFY), more, less)
    return found


def diff(change: Change, base: str, tree: str, path: str | None = None) -> str:
    """To be read: bytes that are no UTF-8 are replaced. A path is one of the files that changed."""
    wanted = [f":(literal){path}"] if path else _NOT_OURS
    text = _git(change, base, tree, "--", *wanted)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _git(change: Change, *arguments: str) -> str:
    return git.run(os.path.join(change.tree, change.project.prefix), "diff", *_PLAIN, *arguments)
