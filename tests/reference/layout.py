"""files.md: what lies where, and the shape of the files that programs read."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agentd
from agentd.change import state
from agentd.change.state import ChangeState
from agentd.documents import comments, records
from agentd.documents.anchors import Anchor
from agentd.documents.comments import Comment, CommentEntry, CommentSeverity, CommentState
from agentd.domain import yaml12
from agentd.project.config.template import default_tree
from reference.markdown import code, paragraphs, plain, table
from reference.types_in_words import rows_of

_HEAD = """# Files

## In the repository

Committed, plain, and readable without agentd. Losing the local room (below) loses reading matter, never work.

"""
_COMMITTED = {
    "agentd/config.toml": "how agentd works here: [config.md](config.md)",
    "agentd/specs/<spec>.md": "what the project promises: the specs of everything that was archived",
    "agentd/specs/CHANGELOG.md": "an entry for every archived change",
    "agentd/prompts/<name>.md": "your own prompts; each goes before agentd's of the same name, once it is trusted",
    "agentd/changes/<id>/": "an open change",
    "agentd/archive/<date>-<id>/": "a change that ended: archived or dropped",
}
_CHANGE = {
    "STATE.yaml": "its phase, steps, history and cost; written by agentd alone",
    "clarifications.md": "what you were asked, and answered",
    "proposal.md": "what changes and why, and which specs it affects; a block for every challenge at its end",
    "specs/<spec>.md": "the requirements and scenarios; of a spec that the project has, only what changes",
    "tasks.md": "small tasks by layer, each with a file and the requirement it works on",
    "CHALLENGE.md": "the latest verdict on the plan; your edits of states, severities and findings count",
    "REVIEW.md": "the latest verdict on the code; likewise",
    "reviews/challenge-<n>.yaml": "the record of a round",
    "reviews/review-<n>.yaml": "the record of a round",
    "comments.yaml": "what people said about places in its documents",
    "base/<spec>.md": "the project's spec as it was when the change began, for the merge",
    "imported/": "files of another tool's project that were not carried over whole",
    "GEMINI.md, AGENTS.md": "what an agent is given to read first; ignored by git, gone with the archive",
}
ROOM = {
    "archived": "how to take an archive back",
    "archiving": "an archive or import that is under way; the next command completes it",
    "calls": "what the calls under way have cost so far",
    "comments": "the comments that count while an agent works",
    "detached": "what a run in the background prints",
    "inbox": "questions of a run that waits, and the answers",
    "index.json": "makes listings quick; always checked against STATE.yaml",
    "journal": "everything that happened, a file per change: [events.md](events.md)",
    "kept": "what the guard took away",
    "locks": "held by the kernel while something runs or writes",
    "mcp": "where `agentd mcp --http` listens, and its token",
    "outcomes": "how the last run of a change ended",
    "questions": "of the planner, until they are answered",
    "runs": "a folder for each run",
    "sessions": "which agent sessions were made on this machine",
    "spend": "what was spent, a file per day",
    "stations": "folders that agents are started in, where there is no home to put them",
    "texts": "documents as they were when they were judged, to show what changed",
    "transcripts": "what agents were told and said, redacted",
}
_DOCUMENTS = """## Documents

Markdown with YAML frontmatter. What agentd does not change keeps its bytes. A whole change, as it should look, is in
[tests/data/example](../../tests/data/example). These second-level headings must be there:

"""
_STATE = """## STATE.yaml

Keys that agentd does not know survive. A file of a newer agentd is refused (exit code 6), an older one is read.

"""
_RECORD = """## reviews/&lt;kind&gt;-&lt;n&gt;.yaml

Written once, when a judge has spoken; only `answers` and `edits` are filled in later. How a finding stands is the last
word on it over all records.

"""
_COMMENTS = """## comments.yaml

A list, in the order in which they were made. A comment follows its text through edits by its quote and what stands
around it. Open ones go to the next round as findings: a blocker as high, a should as medium, a note as low.

"""
_SAMPLE = Comment(
    "K1",
    Anchor("specs/auth-flow.md", "valid for 7 days", "a cookie that is ", ".", ("Requirements", "R2: Session"), 31, 24),
    CommentSeverity.SHOULD,
    CommentState.OPEN,
    "sha256:…",
    (CommentEntry("person:you", "2026-01-31T09:15:00Z", "Who can end it earlier?"),),
)
# What the source says in a class's own words, or takes for granted.
SAID: dict[type[Any], dict[str, str]] = {
    ChangeState: {
        "change_id": "the name of its folder",
        "description": "the sentence it began with",
        "created_at": "UTC",
        "updated_at": "UTC",
        "phase": "left out while drafting",
        "session_id": "the planner's session, to resume it",
        "round": "of the judge who spoke last",
        "lane": "how its documents are written",
        "run": "while a command is under way, and after it was interrupted",
        "git": "where it lives",
        "base": "what it began from",
        "steps": "what was done, with the hashes of what came of it",
        "history": "every move from phase to phase, and every decision",
        "llm_calls": "every agent call, also one that reported no usage",
        "checks": "how each check ended last",
        "budget": "where a person has raised it",
    },
    records.ReviewRecord: {
        "change_id": "whose it is",
        "round": "counted from 1",
        "verdict": "what counts",
        "reported": "what the judge said",
        "overruled": "why the two differ",
        "summary": "in the judge's words",
        "by": "who judged",
        "model": "which one it used",
        "session": "in which it judged",
        "made_by": "whose work was judged",
        "at": "UTC",
        "judged": "the hash of every document, or the tree of the code",
        "findings": "new in this round",
        "previous": "the judge's word on those of earlier rounds",
        "answers": "of the maker",
        "edits": "of a person, by hand",
        "checks": "of a review: how each ended on that tree",
    },
}
_STATES = (
    state.RunState,
    state.GitLocation,
    state.BaseSnapshot,
    state.StepRecord,
    state.TransitionRecord,
    state.CallRecord,
    state.BudgetIncrease,
)
_RECORDS = (records.Finding, records.Evidence, records.PreviousFinding, records.FindingAnswer, records.FindingEdit)


def page() -> str:
    lists = [_HEAD + _places(_COMMITTED), f"## In a change\n\n{_places(_CHANGE)}", _room()]
    shapes = [
        _STATE + _keys(ChangeState, _state_only()),
        *map(_part, _STATES),
        _RECORD + _keys(records.ReviewRecord),
        *map(_part, _RECORDS),
    ]
    sample = f"{_COMMENTS}```yaml\n{comments.render_comments([_SAMPLE])}```\n"
    return "\n".join([*lists, _documents(), *shapes, sample])


def rooms_used() -> set[str]:
    """The first part of every path in the local room that the source names."""
    return {name for path in Path(agentd.__path__[0]).rglob("*.py") for name in _rooms(ast.parse(path.read_text()))}


def _rooms(tree: ast.Module) -> Iterator[str]:
    known: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            known |= _constants(node)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "local_state_path":
            first = call.args[0] if call.args else None
            name = first.value if isinstance(first, ast.Constant) else known.get(getattr(first, "id", ""))
            if isinstance(name, str):
                yield name


def _constants(node: ast.Assign) -> dict[str, object]:
    """`A, B = "a", "b"` too."""
    [target] = node.targets
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    pairs = zip(names, values, strict=False)
    return {n.id: v.value for n, v in pairs if isinstance(n, ast.Name) and isinstance(v, ast.Constant)}


def _places(found: dict[str, str]) -> str:
    return table(("path", "holds"), [[code(path), words] for path, words in found.items()])


def _room() -> str:
    words = (
        "`.git/agentd/`, shared by all work trees and never committed; for a project in a sub-folder "
        "`.git/agentd/projects/<folder>/`. Yours on this machine: `~/.config/agentd/config.toml` and `trust.json`."
    )
    return f"## The local room\n\n{words}\n\n{_places(ROOM)}"


def _documents() -> str:
    found = default_tree()["validation"]
    rows = [
        [kind, ", ".join(headings), str(found["max_lines"][kind])]
        for kind, headings in found["required_headings"].items()
    ]
    return _DOCUMENTS + table(("document", "headings", "readable up to lines"), rows)


def _state_only() -> list[str]:
    """Keys of the file that are made from the others."""
    fields = {name for name, *_ in rows_of(ChangeState)}
    return [key for key in yaml12.load(state.render_state(ChangeState("id", "", "", ""))) if key not in fields]


def _keys(cls: type[Any], made: list[str] | None = None) -> str:
    own = SAID.get(cls, {})
    rows = [
        [code("from" if name == "origin" else name), kind, words or own.get(name, "")]
        for name, kind, words in rows_of(cls)
    ]
    rows += [
        [code(name), "whole number" if name != "total_cost" else "number", "made by agentd"] for name in made or ()
    ]
    return table(("key", "value", "meaning"), rows)


def _part(cls: type[Any]) -> str:
    own = cls.__doc__ if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}(") else ""
    lead = f"{paragraphs(inspect.cleandoc(own))}\n\n" if own else ""
    return f"### {plain(cls.__name__)}\n\n{lead.replace('None', '`null`')}{_keys(cls)}"
