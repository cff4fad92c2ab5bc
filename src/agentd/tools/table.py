"""Every tool: its stages, what it is for, and its arguments. The work is loaded when a tool is first called."""

from dataclasses import dataclass
from enum import StrEnum

from agentd.domain.terms import ChallengeVerdict, Layer, ReviewVerdict, Severity, TaskAction
from agentd.tools.shapes import Choice, Either, Flag, Integer, ListOf, Object, OneOrMany, Shape, Text


class Stage(StrEnum):
    CLARIFY = "clarify"
    PLAN = "plan"
    CHALLENGE = "challenge"
    IMPLEMENT = "implement"
    REVIEW = "review"
    UNBOUND = "unbound"


@dataclass(frozen=True)
class Tool:
    name: str
    stages: tuple[Stage, ...]
    module: str
    about: str
    arguments: Object


_ID = Text(1, 64, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}", like="add-oauth")
_CHANGE: dict[str, Shape] = {"change_id?": _ID}
_NAMED: dict[str, Shape] = {"change_id": _ID}
_LINE = Text(1, 500, line=True)
_PATH = Text(1, 1024, line=True)
_REFERENCE = Text(1, 160, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}:[A-Za-z0-9.-]{1,64}", like="auth-flow:R1")
_RANGE: dict[str, Shape] = {"offset?": Integer(1, 100_000_000), "limit?": Integer(1, 2000)}
_RANGE_ABOUT = {"offset": "first line, from 1", "limit": "at most this many lines; 2000 if left out"}
_PRIORITY = Choice(*Severity)
_ALL = tuple(Stage)

TOOLS = (
    Tool(
        "ask_questions",
        (Stage.CLARIFY,),
        "asking",
        "Ask the person what you must know before you plan: at most 5 questions, each with options, the one you "
        "recommend, and why it matters. If the description is clear, send an empty list.",
        Object(
            _CHANGE
            | {
                "questions": ListOf(
                    Object(
                        {
                            "topic": Text(1, 60, line=True),
                            "question": Text(1, 500),
                            "why": Text(1, 500),
                            "options": ListOf(_LINE, 2, 5),
                            "recommended": Text(1, 500),
                        },
                        {"why": "what depends on the answer", "recommended": "one of the options, word for word"},
                    ),
                    0,
                    5,
                )
            }
        ),
    ),
    Tool(
        "create_clarifications",
        (Stage.UNBOUND,),
        "asking",
        "Write clarifications.md: what the person was asked and answered, for a change that has no proposal yet.",
        Object(
            _NAMED
            | {
                "questions": ListOf(
                    Object(
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
    ),
    Tool(
        "create_proposal",
        (Stage.PLAN,),
        "planning",
        "Write proposal.md: what changes and why, and which specs it affects. Sent again, it revises the document.",
        Object(
            _CHANGE
            | {
                "summary": Text(10, 1000),
                "why": Text(10, 4000),
                "what_changes": ListOf(_LINE, 1, 30),
                "impact": Object(
                    {
                        "scope": Choice("patch", "minor", "major"),
                        "affected_specs": ListOf(
                            Either(_ID, Object({"id": _ID, "depends?": ListOf(_ID, 0, 20)})), 0, 20
                        ),
                        "affected_files": Integer(0, 10_000),
                        "affected_code?": ListOf(_PATH, 0, 50),
                        "breaking_changes?": Text(0, 2000),
                    },
                    {
                        "affected_specs": "ids of the specs this change writes, each with the specs it depends on",
                        "affected_files": "how many files of code will change",
                    },
                ),
            }
        ),
    ),
    Tool(
        "create_spec",
        (Stage.PLAN,),
        "specs",
        "Write specs/<spec_id>.md: checkable requirements and the scenarios that show them. If agentd/specs has "
        "this spec, send only what changes: a new requirement with a free id, a changed one with its whole new text.",
        Object(
            _CHANGE
            | {
                "spec_id": _ID,
                "title": Text(1, 100, line=True),
                "overview": Text(10, 4000),
                "requirements": ListOf(
                    Object(
                        {
                            "id": Text(1, 12, line=True, pattern=r"R[1-9][0-9]*", like="R1"),
                            "title": Text(1, 100, line=True),
                            "description": Text(1, 4000),
                            "priority?": _PRIORITY,
                        }
                    ),
                    0,
                    50,
                ),
                "scenarios": ListOf(
                    Object(
                        {
                            "name": Text(1, 100, line=True),
                            "requirement?": Text(1, 12, line=True),
                            "given?": OneOrMany(_LINE, 0, 10),
                            "when": OneOrMany(_LINE, 1, 10),
                            "then": OneOrMany(_LINE, 1, 10),
                        },
                        {"requirement": "the id of the requirement it shows, such as R1"},
                    ),
                    0,
                    100,
                ),
                "flow_diagram?": Text(0, 8000),
                "removed?": ListOf(
                    Object(
                        {"id?": Text(1, 20, line=True), "scenario?": Text(1, 100, line=True), "reason": Text(1, 1000)}
                    ),
                    0,
                    50,
                ),
                "renamed?": ListOf(Object({"from": Text(1, 140, line=True), "to": Text(1, 140, line=True)}), 0, 50),
            },
            {
                "flow_diagram": "Mermaid",
                "removed": "only where agentd/specs has the spec: requirements by id or scenarios by name",
                "renamed": "only where agentd/specs has the spec: `R4: Old title` to `R4: New title`",
            },
        ),
    ),
    Tool(
        "write_spec",
        (Stage.PLAN,),
        "specs",
        "Write specs/<spec_id>.md as plain Markdown, with the same content as create_spec. Frontmatter is added.",
        Object(_CHANGE | {"spec_id": _ID, "content": Text(1, 200_000)}),
    ),
    Tool(
        "create_tasks",
        (Stage.PLAN,),
        "planning",
        "Write tasks.md: small tasks by layer (data, logic, integration, testing), each with one file and the "
        "requirement it works on. Task data.1 is the same as 1.1.",
        Object(
            _CHANGE
            | {
                "tasks": ListOf(
                    Object(
                        {
                            "layer": Choice(*Layer),
                            "number": Integer(1, 99),
                            "title": Text(1, 100, line=True),
                            "file": Object({"path": _PATH, "action": Choice(*TaskAction)}),
                            "spec_ref?": _REFERENCE,
                            "description": Text(1, 2000),
                            "depends?": ListOf(Text(1, 20, line=True), 0, 50),
                            "depends_on?": ListOf(Text(1, 20, line=True), 0, 50),
                        },
                        {"spec_ref": "required if the change has specs: <spec>:R1", "depends": "ids such as data.1"},
                    ),
                    1,
                    200,
                )
            }
        ),
    ),
    Tool(
        "edit_file",
        (Stage.PLAN,),
        "planning",
        "Replace one exact text in proposal.md, specs/*.md or tasks.md; everything else stays as it is. The text "
        "must occur exactly once: copy it from read_file.",
        Object(_CHANGE | {"path": _PATH, "old_text": Text(1, 50_000), "new_text": Text(0, 50_000)}),
    ),
    Tool(
        "answer_finding",
        (Stage.PLAN, Stage.IMPLEMENT),
        "answering",
        "Answer an open finding: fixed (after you changed a file) or disputed, with a note that says what was "
        "changed or why it is no fault. The judge decides whether it is closed.",
        Object(
            _CHANGE | {"id": Text(1, 12, line=True), "answer": Choice("fixed", "disputed"), "note": Text(1, 1000)},
            {"id": "the id of an open finding, such as C1"},
        ),
    ),
    Tool(
        "validate_change",
        (Stage.PLAN, Stage.IMPLEMENT, Stage.UNBOUND),
        "reading",
        "Check the documents of the change against the rules: format, references, dependencies. Changes nothing.",
        Object(_CHANGE | {"strict?": Flag()}),
    ),
    Tool(
        "read_file",
        _ALL,
        "reading",
        "Read a text file of the project. Paths are relative to the project root; the change's own documents also by "
        "short name, such as proposal.md or specs/auth-flow.md.",
        Object(_CHANGE | {"path": _PATH} | _RANGE, _RANGE_ABOUT),
    ),
    Tool(
        "list_directory",
        _ALL,
        "reading",
        "List a folder of the project; without a path, the project root.",
        Object(_CHANGE | {"path?": _PATH}),
    ),
    Tool(
        "append_review",
        (Stage.CHALLENGE, Stage.REVIEW),
        "judging",
        "Report your verdict. Send new findings only, each with evidence (file, line, a quote copied from the file), "
        "and in `previous` your word on every finding of earlier rounds. APPROVED needs every high finding settled; "
        "any other verdict needs an open finding. Sent again, the last accepted report counts.",
        Object(
            _CHANGE
            | {
                "verdict": Text(1, 40, line=True),
                "summary": Text(1, 2000),
                "findings": ListOf(
                    Object(
                        {
                            "severity": Choice(*Severity),
                            "title": Text(1, 120, line=True),
                            "what": Text(1, 2000),
                            "suggestion": Text(1, 2000),
                            "requirement?": _REFERENCE,
                            "evidence?": Object(
                                {
                                    "file": _PATH,
                                    "line?": Integer(1, 100_000_000),
                                    "quote?": Text(1, 500, line=True),
                                }
                            ),
                        }
                    ),
                    0,
                    50,
                ),
                "previous?": ListOf(
                    Object(
                        {
                            "id": Text(1, 12, line=True),
                            "state": Choice("fixed", "open", "withdrawn"),
                            "note": Text(1, 1000),
                        }
                    ),
                    0,
                    200,
                ),
            },
            {
                "verdict": f"challenge: {', '.join(ChallengeVerdict)}; review: {', '.join(ReviewVerdict)}",
                "findings": "new ones only; an empty array if there are none",
                "previous": "findings of earlier rounds; one that is not mentioned stays open",
            },
        ),
    ),
    Tool(
        "get_diff",
        (Stage.REVIEW,),
        "reading",
        "What the implementation changed, as a unified diff; with a path only that file, without one a list of all "
        "changed files first.",
        Object(_CHANGE | {"path?": _PATH} | _RANGE, _RANGE_ABOUT),
    ),
    Tool(
        "list_changes",
        (Stage.UNBOUND,),
        "overview",
        "List the changes of this project with phase, open findings, cost and the next command.",
        Object({"all?": Flag()}, {"all": "archived and dropped ones too"}),
    ),
    Tool(
        "get_change",
        (Stage.UNBOUND,),
        "overview",
        "Show one change: phase, documents, open findings, tasks and the next command.",
        Object(_NAMED),
    ),
)


def tools_of(stage: Stage) -> tuple[Tool, ...]:
    return tuple(tool for tool in TOOLS if stage in tool.stages)
