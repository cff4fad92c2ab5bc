"""What a reviewer is shown of the work: what the checks said, which files changed, and the diff where it fits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentd.change import Change
from agentd.documents import one_line
from agentd.domain import CheckStatus
from agentd.engine.context.quotes import fence_text
from agentd.engine.tools.tree_diff import changed_files, tree_diff
from agentd.project import printable

DIFF = 40_000  # characters
CHECKS = 10_000
CHANGED = 4_000
TAIL = 2_500  # of one check
PASSED_TAIL = 500  # enough to see that something ran
_LINE = 300
_EMPTY = "Nothing: the two trees are the same."


def diff_fits(change: Change, base: str, tree: str) -> bool:
    """Whether the context file holds the whole diff."""
    return len(tree_diff(change, base, tree)) <= DIFF


def review_parts(change: Change, checks: Sequence[Mapping[str, Any]], base: str, tree: str, diffing: str) -> list[str]:
    """`diffing` is what the agent calls get_diff. The diff stands last."""
    changed = changed_files(change, base, tree)
    parts = [
        f"## Check results\n\n{_checks(checks)}",
        f"## Changed files\n\n{_listed([one.row(printable(name)) for name, one in changed.items()], diffing)}",
    ]
    return [*parts, f"## The diff\n\n{_diff(tree_diff(change, base, tree), diffing)}"] if changed else parts


def _diff(text: str, diffing: str) -> str:
    if len(text) <= DIFF:
        return fence_text(text)
    return f"It has {len(text)} characters, too many for this file: read it file by file with `{diffing}`."


def _listed(rows: Sequence[str], diffing: str) -> str:
    if not rows:
        return _EMPTY
    kept = list(_fitting(rows, CHANGED))
    left = len(rows) - len(kept)
    more = f"\n\n[cut here: {left} more; `{diffing}` lists them all]" if left else ""
    return (fence_text("\n".join(kept)) if kept else "") + more


def _fitting(rows: Sequence[str], room: int) -> Iterator[str]:
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return
        yield row


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return "No checks are configured, so nothing was run on this tree: only your reading speaks for it."
    parts = ["agentd ran them on the tree under review. What they printed is cut at its beginning."]
    room = CHECKS
    for check in checks:
        line, tail = _result(check), _tail(check)
        whole = f"{line}\n\n{fence_text(tail)}" if tail and len(line) + len(tail) <= room else line
        room -= len(whole)
        parts.append(whole)
    return "\n\n".join(parts)


def _result(check: Mapping[str, Any]) -> str:
    """`tests` (required): failed, exit code 1; 41 passed, 1 failed."""
    name = printable(one_line(str(check["name"])))[:_LINE].replace("`", "'")
    required = "required" if check.get("required") else "not required"
    words = str(check["status"]).replace("-", " ")
    code = check.get("exit_code")
    counts = ", ".join(f"{count} {kind}" for kind, count in (check.get("counts") or {}).items())
    ended = f", exit code {code}" if code is not None else ""
    return f"`{name}` ({required}): {words}{ended}{f'; {counts}' if counts else ''}."


def _tail(check: Mapping[str, Any]) -> str:
    most = PASSED_TAIL if check["status"] == CheckStatus.PASSED else TAIL
    return str(check.get("tail") or "").strip()[-most:]
