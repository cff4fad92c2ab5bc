"""What a person has read of a change; a decision counts only for that content."""

import json
import os
from collections.abc import Iterable, Mapping
from textwrap import indent

from agentd.change import Change, current_comments
from agentd.domain import Refusal
from agentd.engine.steps.step_context import JUDGE_SPECS, REVIEWER_SPEC
from agentd.engine.workflows.verdict_status import judge_spec_for, open_findings
from agentd.project import git
from agentd.storage import files

CODE_TREE_KEY = "the code"
FINDINGS_KEY = "the findings"
VERDICTS_KEY = tuple(f"{kind}s" for kind in JUDGE_SPECS)


def current_reading(change: Change) -> dict[str, str]:
    """Return hashes of documents and open findings, the number of verdicts, and the code tree during review."""
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
    """Return the names whose values differ."""
    return [name for name in {**new, **old} if old.get(name) != new.get(name)]


def describe_differences(changed: Iterable[str], now: Mapping[str, str]) -> str:
    """Describe the differences as a clause; a phase with another judge has no verdicts of the one before."""
    names = list(changed)
    others = [name for name in names if name not in VERDICTS_KEY]
    moved = "there is a new verdict" if all(name in now for name in names) else "the change has moved to another phase"
    parts = [f"{', '.join(others)} changed"] if others else []
    return " and ".join([*parts, moved] if len(others) < len(names) else parts)


def plan_hashes_of(shown: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of the plan's documents."""
    return {name: value for name, value in shown.items() if name.endswith(".md")}


def check_reading(change: Change, wanted: str) -> None:
    """Refuse if the content is not what was read. `wanted` is its digest, or "" if not given."""
    if wanted and reading_digest(current_reading(change)) != wanted:
        raise Refusal(f"{change.id} has changed since it was read, so nothing was decided", "read it again")


def open_findings_text(change: Change) -> str:
    """Return all open findings and comments as text; a comment reads the same after it has become a finding."""
    findings = {one.id: one for one in open_findings(change)}
    comments = current_comments(change)
    commented = {one.finding for one in comments}
    rows = [
        _entry(one.id, one.severity, one.state, one.by, f"{one.title}\n{one.what}")
        for one in findings.values()
        if one.id not in commented
    ]
    for one in comments:
        if one.is_open and one.words:
            finding = findings.get(one.finding or "")
            severity, state = (finding.severity, finding.state) if finding else (one.severity.severity, one.state)
            rows.append(_entry(one.id, severity, state, one.thread[0].by, one.words))
    return "\n".join(rows)


def _entry(id_: str, severity: str, state: str, by: str, words: str) -> str:
    """Indent the text, so that it cannot look like the head of another entry."""
    head = " ".join(f"{id_} ({severity}, {state}) by {by}".split())
    return f"{head}\n{indent(words.strip(), '  ')}\n"


def code_tree_without_agentd(change: Change, tree: str) -> str:
    """Return the git tree without agentd's own files, which every command writes."""
    import tempfile  # deferred: quick commands import this module but need no tree

    own = "/".join(filter(None, (change.project.prefix, "agentd")))
    with tempfile.TemporaryDirectory(prefix="agentd-") as folder:
        index = os.path.join(folder, "index")
        git.run(change.tree, "read-tree", tree, index=index)
        leave_out = ("rm", "-r", "-f", "-q", "--cached", "--sparse", "--ignore-unmatch", "--", f":(top,literal){own}")
        git.run(change.tree, *leave_out, index=index)
        return git.run(change.tree, "write-tree", index=index)
