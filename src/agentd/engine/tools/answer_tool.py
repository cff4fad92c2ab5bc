"""The maker's answer to a finding. It closes nothing: judges and people do."""

import json
import os
from typing import Any

from agentd.change import Change
from agentd.documents import ReviewRecord, current_findings, round_findings
from agentd.domain import clock
from agentd.engine.tools.refusal import ToolRefusal
from agentd.engine.tools.tool_scope import ToolScope
from agentd.engine.tools.tool_table import Stage
from agentd.project import git
from agentd.storage import files

ANSWERS = "answers.json"
GUARD_PREFIX = "agentd:guard"


def answer_finding(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    records = change.records("review" if binding.stage is Stage.IMPLEMENT else "challenge")
    all_findings = {one.id: one for one in current_findings(records)}
    open_ids = [id_ for id_, one in all_findings.items() if one.state.is_open]
    finding = all_findings.get(arguments["id"])
    if finding is None:
        known = ", ".join(open_ids) or "none"
        raise ToolRefusal("finding-unknown", f"there is no finding {arguments['id']}", f"these are open: {known}")
    if not finding.state.is_open:
        raise ToolRefusal("finding-closed", f"{finding.id} is {finding.state}", "answer only open findings")
    changed = _changed_since(change, _record_of(records, finding.id))
    is_put_back = finding.by == GUARD_PREFIX  # agentd has done that itself
    if arguments["answer"] == "fixed" and not changed and not is_put_back:
        what = f"no file changed since {finding.id} was made"
        raise ToolRefusal("nothing-changed", what, "edit first, or send disputed")
    answer = {
        "id": finding.id,
        "answer": arguments["answer"],
        "note": arguments["note"].strip(),
        "files": changed if arguments["answer"] == "fixed" else [],
        "at": clock.now(),
    }
    with binding.writing(change):
        answers = {**(binding.run_data(ANSWERS) or {}), finding.id: answer}
        files.write(binding.run_file(ANSWERS), json.dumps(answers, ensure_ascii=False, indent=2).encode())
    return {
        "id": finding.id,
        "answer": answer["answer"],
        "files": answer["files"],
        "unanswered": [id_ for id_ in open_ids if id_ not in answers],
    }


def _record_of(records: tuple[ReviewRecord, ...], id_: str) -> ReviewRecord:
    return next(record for record in reversed(records) if any(one.id == id_ for one in round_findings(record)))


def _changed_since(change: Change, record: ReviewRecord) -> list[str]:
    """What differs from what was judged then: documents by hash, code by git tree."""
    tree = record.judged.get("tree")
    if tree:
        root = os.path.join(change.tree, change.project.prefix)
        now = git.snapshot(change.tree)
        told = git.run(root, "diff", "--relative", "--no-renames", "--name-only", "-z", tree, now, "--", ".")
        return [name for name in told.split("\0") if name and not name.startswith("agentd/")]
    now_hashes = change.hashes()
    names = [*now_hashes, *(name for name in record.judged if name not in now_hashes)]
    return [name for name in names if now_hashes.get(name) != record.judged.get(name)]
