"""What a person has read of a change when they decide: a decision counts only for that."""

import json
from collections.abc import Iterator, Mapping

from agentd import files, git
from agentd.change.folder import Change
from agentd.errors import AnswerIsNo
from agentd.steps.bench import CODE
from agentd.workflows.verdict import bench_of

CODE_TREE = "the code"


def seen(change: Change) -> dict[str, str]:
    """Documents by hash, how many verdicts there are, and the code once it is what is judged."""
    bench = bench_of(change.read().phase)
    found = {**change.hashes(), f"{bench.kind}s": str(len(change.records(bench.kind)))}
    return {**found, CODE_TREE: _code(change)} if bench is CODE else found


def digest(shown: Mapping[str, str]) -> str:
    return files.digest(json.dumps(dict(shown), sort_keys=True).encode()).removeprefix("sha256:")


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Names of what is not the same in both, or in one of them only."""
    return [name for name in {**new, **old} if old.get(name) != new.get(name)]


def documents(shown: Mapping[str, str]) -> dict[str, str]:
    """Those of the plan among it, as `Change.hashes` has them."""
    return {name: value for name, value in shown.items() if name.endswith(".md")}


def check(change: Change, wanted: str) -> None:
    """`wanted` is the digest of what was read, or "" where nobody says."""
    if wanted and digest(seen(change)) != wanted:
        raise AnswerIsNo(f"{change.id} is not what was read any more, so nothing was decided", "read it again")


def _code(change: Change) -> str:
    """The work tree without agentd's own files, which every command writes."""
    own = "/".join(filter(None, (change.project.prefix, "agentd")))
    rows = "\0".join(_rows(change.tree, git.snapshot(change.tree), own))
    return files.digest(rows.encode(errors="surrogateescape"))


def _rows(repository: str, tree: str, without: str) -> Iterator[str]:
    """Each entry of a git tree; the folder in which something is left out, entry by entry too."""
    first, _, rest = without.partition("/")
    for row in git.run(repository, "ls-tree", "-z", tree).split("\0"):
        known, _, name = row.partition("\t")
        if name != first:
            yield row
        elif rest:
            yield from _rows(repository, known.split()[2], rest)
