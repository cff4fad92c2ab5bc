"""What git has to tell about two trees: which files changed, which files there are, and what they hold."""

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentd.domain import Refusal
from agentd.project import git

LARGEST = 1_000_000  # bytes of a file that is looked into
MOST_FILES = 20_000
MOST_BYTES = 300_000_000  # of all of them together

_FILES = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class ChangedBlob:
    """From the top of the tree. A side that was not there, or is no plain file, has no blob."""

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
    """Every plain file of a tree."""
    found = []
    for row in filter(None, git.run(tree, "ls-tree", "-r", "-l", "-z", now).split("\0")):
        head, _, path = row.partition("\t")
        mode, _, blob, size = head.split()
        if mode in _FILES:
            found.append(ListedFile(path, blob, int(size)))
    return found


def blob_texts(tree: str, blobs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each blob with its text, in order, by one process; a binary or large one is left out."""
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
                    continue  # it is missing, and git says so in a line
                size = int(head[2])
                data = process.stdout.read(size + 1)[:size]
                if size <= LARGEST and b"\0" not in data[:8000]:
                    yield blob, data.decode("utf-8", "replace")
