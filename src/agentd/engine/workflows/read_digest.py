"""What a person has read of a change when they decide: a decision counts only for that."""

import json
import os
from collections.abc import Iterable, Mapping
from textwrap import indent

from agentd.change import Change, current_comments
from agentd.documents import Finding
from agentd.domain import Refusal
from agentd.engine.steps.step_context import JUDGE_SPECS, REVIEWER_SPEC
from agentd.engine.workflows.verdict_status import judge_spec_for, open_findings
from agentd.project import git
from agentd.storage import files

CODE_TREE_KEY = "the code"
FINDINGS_KEY = "the findings"
VERDICTS_KEY = tuple(f"{kind}s" for kind in JUDGE_SPECS)


def current_reading(change: Change) -> dict[str, str]:
    """Documents by hash, how many verdicts there are, what is open, and the code once it is what is judged."""
    judge = judge_spec_for(change.read().phase)
    found = {**change.hashes(), f"{judge.kind}s": str(len(change.records(judge.kind)))}
    found[FINDINGS_KEY] = files.hash_bytes(open_findings_text(change).encode())
    return (
        {**found, CODE_TREE_KEY: code_tree_without_agentd(change, git.snapshot(change.tree))}
        if judge is REVIEWER_SPEC
        else found
    )


def reading_digest(shown: Mapping[str, str]) -> str:
    return files.hash_bytes(json.dumps(dict(shown), sort_keys=True).encode()).removeprefix("sha256:")


def differing_names(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Names of what is not the same in both, or in one of them only."""
    return [name for name in {**new, **old} if old.get(name) != new.get(name)]


def describe_differences(changed: Iterable[str], now: Mapping[str, str]) -> str:
    """What differs, as half a sentence; a phase with another judge has no verdicts of the one before."""
    names = list(changed)
    others = [name for name in names if name not in VERDICTS_KEY]
    moved = "there is a new verdict" if all(name in now for name in names) else "the change has moved on"
    parts = [f"{', '.join(others)} changed"] if others else []
    return " and ".join([*parts, moved] if len(others) < len(names) else parts)


def plan_hashes_of(shown: Mapping[str, str]) -> dict[str, str]:
    """Those of the plan among it, as `Change.hashes` has them."""
    return {name: value for name, value in shown.items() if name.endswith(".md")}


def check_reading(change: Change, wanted: str) -> None:
    """`wanted` is the digest of what was read, or "" where nobody says."""
    if wanted and reading_digest(current_reading(change)) != wanted:
        raise Refusal(f"{change.id} is not what was read any more, so nothing was decided", "read it again")


def open_findings_text(change: Change) -> str:
    """All that is open, as a text; a comment says the same before and after it has become a finding."""
    left, said = open_findings(change), current_comments(change)
    told = {one.finding: one for one in said if one.finding}
    rows = [_row(one, one.id, f"{one.title}\n{one.what}") for one in left if one.id not in told]
    made = {one.id: one for one in left}
    for one in said:
        if one.is_open and one.words:
            finding = made.get(one.finding or "")
            severity, state = (finding.severity, finding.state) if finding else (one.severity.severity, one.state)
            rows.append(_told(one.id, severity, state, one.thread[0].by, one.words))
    return "\n".join(rows)


def _row(one: Finding, id_: str, words: str) -> str:
    return _told(id_, one.severity, one.state, one.by, words)


def _told(id_: str, severity: str, state: str, by: str, words: str) -> str:
    """Nothing that is said can look like the head of another one."""
    head = " ".join(f"{id_} ({severity}, {state}) by {by}".split())
    return f"{head}\n{indent(words.strip(), '  ')}\n"


def code_tree_without_agentd(change: Change, tree: str) -> str:
    """A git tree without agentd's own files, which every command writes."""
    import tempfile  # late: a quick command gets here with the questions, and needs no tree

    own = "/".join(filter(None, (change.project.prefix, "agentd")))
    with tempfile.TemporaryDirectory(prefix="agentd-") as folder:
        index = os.path.join(folder, "index")
        git.run(change.tree, "read-tree", tree, index=index)
        leave_out = ("rm", "-r", "-f", "-q", "--cached", "--sparse", "--ignore-unmatch", "--", f":(top,literal){own}")
        git.run(change.tree, *leave_out, index=index)
        return git.run(change.tree, "write-tree", index=index)
