"""Questions before planning, asked by the planner or in a person's own session; also answers to findings."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentd.change import Change, ChangeLocator, unique_id
from agentd.documents import (
    CLARIFICATIONS_FILE,
    Clarification,
    Clarifications,
    ReviewRecord,
    current_findings,
    render_clarifications,
    round_findings,
)
from agentd.domain import ChangeNotFound, Choice, ListOf, NotCheckedOut, Phase, Text, clock
from agentd.engine.tools.document_store import current_text, store_document
from agentd.engine.tools.tool import CHANGE, LINE, NAMED, Stage, ToolRefusal, fields, tool
from agentd.engine.tools.tool_scope import ToolScope
from agentd.project import git
from agentd.storage import files

ANSWERS = "answers.json"
GUARD_PREFIX = "agentd:guard"


@tool(
    (Stage.PLAN, Stage.IMPLEMENT),
    "Answer an open finding: fixed (after you changed a file) or disputed, with a note that says what was "
    "changed or why it is no fault. The judge decides whether it is closed.",
    fields(
        CHANGE
        | {
            "id": Text(1, 12, line=True),
            "answer": Choice("fixed", "disputed"),
            "note": Text(1, 1000),
        },
        {"id": "the id of an open finding, such as C1"},
    ),
)
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
    is_put_back = finding.by == GUARD_PREFIX  # agentd has already restored the files itself
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
    """Return what changed since the record was judged: documents by hash, code by git tree."""
    tree = record.judged.get("tree")
    if tree:
        root = os.path.join(change.tree, change.project.prefix)
        now = git.snapshot(change.tree)
        told = git.run(root, "diff", "--relative", "--no-renames", "--name-only", "-z", tree, now, "--", ".")
        return [name for name in told.split("\0") if name and not name.startswith("agentd/")]
    now_hashes = change.hashes()
    names = [*now_hashes, *(name for name in record.judged if name not in now_hashes)]
    return [name for name in names if now_hashes.get(name) != record.judged.get(name)]


QUESTIONS = "questions.json"


@tool(
    (Stage.CLARIFY,),
    "Ask the person what you must know before you plan: at most 5 questions, each with options, the one you "
    "recommend, and why it matters. If the description is clear, send an empty list.",
    fields(
        CHANGE
        | {
            "questions": ListOf(
                fields(
                    {
                        "topic": Text(1, 60, line=True),
                        "question": Text(1, 500),
                        "why": Text(1, 500),
                        "options": ListOf(LINE, 2, 5),
                        "recommended": Text(1, 500),
                    },
                    {"why": "what depends on the answer", "recommended": "one of the options, word for word"},
                ),
                0,
                5,
            )
        }
    ),
)
def ask_questions(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    questions = [_plain(one) for one in arguments["questions"]]
    for number, one in enumerate(questions):
        _check_options(one["options"], one["recommended"], f"questions[{number}]")
    with binding.writing(change):
        data = json.dumps(questions, ensure_ascii=False, indent=2)
        files.write(binding.run_file(QUESTIONS), data.encode())
    return {"accepted": len(questions)}


def _plain(question: dict[str, Any]) -> dict[str, Any]:
    """Strip whitespace around all texts of a question."""
    options = [text.strip() for text in question["options"]]
    return {name: text.strip() for name, text in question.items() if name != "options"} | {"options": options}


def _check_options(options: Sequence[str], recommended: str, where: str) -> None:
    if twice := next((text for text in options if options.count(text) > 1), None):
        raise ToolRefusal("bad-argument", f"{where}.options has {twice!r} twice", "send each option once")
    if recommended not in options:
        what = f"{where}.recommended is none of its options"
        raise ToolRefusal("bad-argument", what, f"send one of {', '.join(options)}")


@tool(
    (Stage.UNBOUND,),
    "Write clarifications.md: what the person was asked and answered, for a change that has no proposal yet.",
    fields(
        NAMED
        | {
            "questions": ListOf(
                fields(
                    {
                        "topic": Text(1, 60, line=True),
                        "question": Text(1, 500),
                        "answer": Text(1, 2000),
                        "rationale?": Text(0, 1000),
                    }
                ),
                1,
                5,
            )
        }
    ),
)
def create_clarifications(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = _unborn(binding, arguments["change_id"])
    name = CLARIFICATIONS_FILE
    text = render_clarifications(
        Clarifications(change.id, clock.now()[:10], clarifications_from_rows(arguments["questions"]))
    )
    with binding.writing(change):
        if (change.folder / "proposal.md").exists():
            raise _too_late(change.id)
        binding.settings()  # raises before the folder is created if the configuration cannot be read
        old = current_text(binding, change, name) if change.folder.is_dir() else None
        _make_folder(change)
        return store_document(binding, change, name, text, old is not None)


def clarifications_from_rows(rows: Sequence[dict[str, Any]]) -> tuple[Clarification, ...]:
    return tuple(
        Clarification(
            one["topic"].strip(), one["question"].strip(), one["answer"].strip(), one.get("rationale", "").strip()
        )
        for one in rows
    )


def _make_folder(change: Change) -> None:
    """Create the change's folder. Refuse if a link would lead outside the project."""
    changes = change.folder.parent
    root = os.path.realpath(change.tree)
    if os.path.realpath(changes) != os.path.join(root, change.project.prefix, "agentd", "changes"):
        raise ToolRefusal("outside", "agentd/changes is a link", "tell the person")
    change.folder.mkdir(parents=True, exist_ok=True)


def _unborn(binding: ToolScope, change_id: str) -> Change:
    """Return a change without a proposal: a new one, or one whose folder has only clarifications and state."""
    places = ChangeLocator(binding.project)
    try:
        found = places.find(change_id)
    except NotCheckedOut as error:
        raise ToolRefusal("id-taken", error.message, f"use {unique_id(change_id, places.taken_ids())}") from None
    except ChangeNotFound:
        folder = binding.project.changes_in(binding.project.tree) / change_id
        foreign = folder.is_dir() and {path.name for path in folder.iterdir()} - {CLARIFICATIONS_FILE}
        if foreign or places.find_archived(change_id):
            what = f"{change_id} is taken"
            raise ToolRefusal("id-taken", what, f"use {unique_id(change_id, places.taken_ids())}") from None
        return Change(binding.project, change_id, binding.project.tree, folder)
    if found.summary.phase in (Phase.COMPLETE, Phase.ARCHIVED, Phase.DROPPED):
        raise ToolRefusal("id-taken", f"{change_id} is finished", f"use {unique_id(change_id, places.taken_ids())}")
    if found.summary.phase is not Phase.DRAFTING:
        raise _too_late(change_id)
    return Change(binding.project, change_id, found.tree or "", Path(found.folder or ""))


def _too_late(change_id: str) -> ToolRefusal:
    instead = "ask the person to edit clarifications.md, or plan a new change"
    return ToolRefusal("too-late", f"{change_id} has a proposal already", instead)
