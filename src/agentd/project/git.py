"""git: the layout is read from files (no process, so quick commands stay fast), the rest through the git command."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from agentd.domain import NoGit, SetupError

# Set by a hook: they redirect git to a repository, regardless of the folder a command runs in.
LOCATIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_object_folder: ContextVar[str] = ContextVar("object_folder", default="")


class GitFailed(SetupError):
    pass


class NestedRepository(GitFailed):
    """Raised for a repository without a commit inside the worktree: git cannot add it."""

    def __init__(self, folder: str) -> None:
        hint = f"commit something in {folder}, remove it, or name it in .gitignore; then run the command again"
        super().__init__(f"{folder} is a git repository of its own without a commit, and git cannot look into it", hint)
        self.folder = folder


class Worktree(NamedTuple):
    """A worktree and the branch it has checked out (None: detached)."""

    path: str
    branch: str | None


class Repository(NamedTuple):
    """The repository as seen from one of its worktrees."""

    top: str  # the current worktree
    common: str  # the git directory that all worktrees share
    main: str  # the main worktree; for a bare repository, its parent folder


def find_repository(start: str) -> Repository:
    folder = os.path.realpath(start)
    while True:
        entry = os.path.join(folder, ".git")
        if os.path.isdir(entry):
            return Repository(folder, entry, folder)
        if os.path.isfile(entry):
            return _linked(folder, entry)
        parent = os.path.dirname(folder)
        if parent == folder:
            if os.path.isfile(os.path.join(start, "HEAD")) and os.path.isdir(os.path.join(start, "objects")):
                raise NoGit(f"{start} is a bare repository", "git worktree add ../work, then run agentd there")
            raise NoGit(f"{start} is not in a git repository, and agentd keeps its work in one")
        folder = parent


def git_folder(tree: str) -> str:
    """Return the worktree's own git directory: the repository's, or the one a linked worktree points to."""
    entry = os.path.join(tree, ".git")
    if os.path.isfile(entry):
        return _join(tree, _read(entry).removeprefix("gitdir:").strip())
    return os.path.realpath(entry)


def _linked(top: str, entry: str) -> Repository:
    """Resolve a `.git` file: a linked worktree, a submodule, or a git directory kept elsewhere."""
    own = git_folder(top)
    if not os.path.isdir(own):
        raise NoGit(f"{entry} points to {own}, which is not there", "git worktree repair, run in the main work tree")
    shared = _read(os.path.join(own, "commondir")).strip()
    if not shared:
        return Repository(top, own, top)
    common = _join(own, shared)
    return Repository(top, common, os.path.dirname(common))


def worktrees(repo: Repository) -> list[Worktree]:
    """Return all existing worktrees, the main one first. Worktrees deleted by hand are left out."""
    found = []
    if repo.main == repo.top or os.path.join(repo.main, ".git") == repo.common:
        found.append(Worktree(repo.main, _branch(repo.main, repo.common)))
    registry = os.path.join(repo.common, "worktrees")
    names = sorted(os.listdir(registry)) if os.path.isdir(registry) else []
    for name in names:
        own = os.path.join(registry, name)
        entry = _join(own, _read(os.path.join(own, "gitdir")).strip())
        if os.path.isfile(entry):
            path = os.path.realpath(os.path.dirname(entry))
            found.append(Worktree(path, _branch(path, own)))
    return found


def _branch(tree: str, own: str) -> str | None:
    ref = _head_ref(tree, own)
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else None


def head_ref(tree: str) -> str:
    """Return the full name of the checked-out branch; empty if HEAD is detached."""
    return _head_ref(tree, git_folder(tree))


def _head_ref(tree: str, own: str) -> str:
    head = _read(os.path.join(own, "HEAD")).strip()
    if head == "ref: refs/heads/.invalid":  # the reftable format stores HEAD elsewhere
        return run(tree, "symbolic-ref", "--quiet", "HEAD", failing="")
    return head.removeprefix("ref: ") if head.startswith("ref: ") else ""


def resolve(tree: str, *names: str) -> list[str]:
    """Return the object ids of these names, using one process; empty for a name that does not resolve."""
    if any("\n" in name for name in names):  # the batch input has one name per line
        return [run(tree, "rev-parse", "--verify", "--quiet", name, failing="") for name in names]
    found = run(tree, "cat-file", "--batch-check=%(objectname)", stdin="".join(f"{name}\n" for name in names))
    return ["" if row.endswith((" missing", " ambiguous")) else row for row in found.split("\n")]


def branches(repo: Repository) -> set[str]:
    return set(run(repo.top, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split("\n")) - {""}


def merged_branches(tree: str) -> dict[str, str]:
    """Return the branches whose commits are all contained in the worktree's HEAD, with their tips."""
    if not head_commit(tree):
        return {}
    rows = run(tree, "for-each-ref", "--merged", "HEAD", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")
    return {name: tip for tip, _, name in (row.partition(" ") for row in rows.splitlines())}


def head_commit(tree: str) -> str | None:
    """Return the commit of HEAD, or None before the first commit."""
    return run(tree, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", failing="") or None


def snapshot(tree: str) -> str:
    """Return the worktree as a git tree, untracked files included, without touching the index or any file."""
    import tempfile  # deferred: only code authors and judges need it

    with tempfile.TemporaryDirectory(prefix="agentd-") as folder:
        index = os.path.join(folder, "index")
        run(tree, "read-tree", "HEAD", index=index, failing="")  # fails before the first commit, when there is no HEAD
        try:
            run(tree, "add", "--all", "--", ".", index=index)
        except GitFailed as error:
            if nested := re.search(r"'(.+?)/?' does not have a commit checked out", error.message):
                raise NestedRepository(nested[1]) from None
            raise
        return run(tree, "write-tree", index=index)


@contextmanager
def new_objects_in(folder: str) -> Iterator[None]:
    """Write objects to this folder instead of the repository. Its info/alternates must name the repository's own."""
    token = _object_folder.set(folder)
    try:
        yield
    finally:
        _object_folder.reset(token)


def user_name(tree: str) -> str:
    name = run(tree, "config", "user.name", failing="") or os.environ.get("USER") or "unknown"
    return name.encode(errors="surrogateescape").decode(errors="replace")  # it may be in another encoding


def run(
    tree: str, *arguments: str, failing: str | None = None, index: str | None = None, stdin: str | None = None
) -> str:
    """Return git's output without trailing newlines. A failure raises GitFailed, or returns `failing` if given."""
    import subprocess  # deferred: read-only commands rarely need it

    command = ["git", "-C", tree, *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env=environment(index),
            input=stdin,
            check=False,
        )
    except FileNotFoundError:
        raise GitFailed("git is not installed", "install git, then run the command again") from None
    if done.returncode == 0:
        return done.stdout.rstrip("\n")
    if failing is not None:
        return failing
    words = done.stderr.strip() or f"exit code {done.returncode}"
    raise GitFailed(f"git {' '.join(arguments)}: {words}", f"run it by hand in {tree} to see more")


def run_bytes(tree: str, *arguments: str) -> bytes:
    """Return git's output byte for byte: text mode would convert carriage returns."""
    import subprocess  # deferred: see above

    done = subprocess.run(["git", "-C", tree, *arguments], capture_output=True, env=environment(), check=False)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise GitFailed(f"git {' '.join(arguments)}: {words}", f"run it by hand in {tree} to see more")
    return done.stdout


def succeeds(tree: str, *arguments: str) -> bool:
    """Return whether the command succeeds, for commands whose exit code is the answer."""
    import subprocess  # deferred: see above

    command = ["git", "-C", tree, *arguments]
    return subprocess.run(command, capture_output=True, env=environment(), check=False).returncode == 0


def environment(index: str | None = None) -> dict[str, str]:
    """Return the environment for git: English, no prompts, and no redirection by a hook's GIT_DIR."""
    kept = {name: value for name, value in os.environ.items() if name not in LOCATIONS}
    own = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"} | ({"GIT_INDEX_FILE": index} if index else {})
    if folder := _object_folder.get():
        own["GIT_OBJECT_DIRECTORY"] = folder
    return {**kept, **own}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _join(folder: str, path: str) -> str:
    return os.path.realpath(os.path.join(folder, path))
