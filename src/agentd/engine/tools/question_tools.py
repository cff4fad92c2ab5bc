"""Questions before planning: asked by the planner, or asked and answered in a person's own session."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentd.change import Change, ChangeLocator, unique_id
from agentd.documents import CLARIFICATIONS_FILE, Clarification, Clarifications, render_clarifications
from agentd.domain import ChangeNotFound, NotCheckedOut, Phase, clock
from agentd.engine.tools.document_store import current_text, store_document
from agentd.engine.tools.refusal import ToolRefusal
from agentd.engine.tools.tool_scope import ToolScope
from agentd.storage import files

QUESTIONS = "questions.json"


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
    """Without white space around any of its texts."""
    options = [text.strip() for text in question["options"]]
    return {name: text.strip() for name, text in question.items() if name != "options"} | {"options": options}


def _check_options(options: Sequence[str], recommended: str, where: str) -> None:
    if twice := next((text for text in options if options.count(text) > 1), None):
        raise ToolRefusal("bad-argument", f"{where}.options has {twice!r} twice", "send each option once")
    if recommended not in options:
        what = f"{where}.recommended is none of its options"
        raise ToolRefusal("bad-argument", what, f"send one of {', '.join(options)}")


def create_clarifications(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = _unborn(binding, arguments["change_id"])
    name = CLARIFICATIONS_FILE
    text = render_clarifications(
        Clarifications(change.id, clock.now()[:10], clarifications_from_rows(arguments["questions"]))
    )
    with binding.writing(change):
        if (change.folder / "proposal.md").exists():
            raise _too_late(change.id)
        binding.settings()  # before there is a folder
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
    """In the project, not behind a link that leads out of it."""
    changes = change.folder.parent
    root = os.path.realpath(change.tree)
    if os.path.realpath(changes) != os.path.join(root, change.project.prefix, "agentd", "changes"):
        raise ToolRefusal("outside", "agentd/changes is a link", "tell the person")
    change.folder.mkdir(parents=True, exist_ok=True)


def _unborn(binding: ToolScope, change_id: str) -> Change:
    """A change without a proposal: a new one, or one whose folder has no more than clarifications and state."""
    places = ChangeLocator(binding.project)
    try:
        found = places.find(change_id)
    except NotCheckedOut as error:
        raise ToolRefusal("id-taken", error.message, f"use {unique_id(change_id, places.taken())}") from None
    except ChangeNotFound:
        folder = binding.project.changes_in(binding.project.tree) / change_id
        foreign = folder.is_dir() and {path.name for path in folder.iterdir()} - {CLARIFICATIONS_FILE}
        if foreign or places.ended(change_id):
            what = f"{change_id} is taken"
            raise ToolRefusal("id-taken", what, f"use {unique_id(change_id, places.taken())}") from None
        return Change(binding.project, change_id, binding.project.tree, folder)
    if found.summary.phase in (Phase.COMPLETE, Phase.ARCHIVED, Phase.DROPPED):
        raise ToolRefusal("id-taken", f"{change_id} is finished", f"use {unique_id(change_id, places.taken())}")
    if found.summary.phase is not Phase.DRAFTING:
        raise _too_late(change_id)
    return Change(binding.project, change_id, found.tree or "", Path(found.folder or ""))


def _too_late(change_id: str) -> ToolRefusal:
    instead = "ask the person to edit clarifications.md, or plan a new change"
    return ToolRefusal("too-late", f"{change_id} has a proposal already", instead)
