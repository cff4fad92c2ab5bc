"""Every tool: its stages, what it is for, and its arguments. The work is loaded when a tool is first called."""

from dataclasses import dataclass
from enum import StrEnum

from agentd.domain import ChallengeVerdict, Layer, ReviewVerdict, Severity, TaskAction
from agentd.engine.tools.argument_shapes import (
    ArgumentShape,
    ChoiceArgument,
    FlagArgument,
    IntegerArgument,
    ListArgument,
    ObjectArgument,
    OneOrManyArgument,
    TextArgument,
    TextOrObjectArgument,
)


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
    arguments: ObjectArgument


_ID = TextArgument(1, 64, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}", like="add-oauth")
_CHANGE: dict[str, ArgumentShape] = {"change_id?": _ID}
_NAMED: dict[str, ArgumentShape] = {"change_id": _ID}
_LINE = TextArgument(1, 500, line=True)
_PATH = TextArgument(1, 1024, line=True)
_REFERENCE = TextArgument(
    1, 160, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}:[A-Za-z0-9.-]{1,64}", like="auth-flow:R1"
)
_RANGE: dict[str, ArgumentShape] = {"offset?": IntegerArgument(1, 100_000_000), "limit?": IntegerArgument(1, 2000)}
_RANGE_ABOUT = {"offset": "first line, from 1", "limit": "at most this many lines; 2000 if left out"}
_PRIORITY = ChoiceArgument(*Severity)
_ALL = tuple(Stage)

TOOLS = (
    Tool(
        "ask_questions",
        (Stage.CLARIFY,),
        "question_tools",
        "Ask the person what you must know before you plan: at most 5 questions, each with options, the one you "
        "recommend, and why it matters. If the description is clear, send an empty list.",
        ObjectArgument(
            _CHANGE
            | {
                "questions": ListArgument(
                    ObjectArgument(
                        {
                            "topic": TextArgument(1, 60, line=True),
                            "question": TextArgument(1, 500),
                            "why": TextArgument(1, 500),
                            "options": ListArgument(_LINE, 2, 5),
                            "recommended": TextArgument(1, 500),
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
        "question_tools",
        "Write clarifications.md: what the person was asked and answered, for a change that has no proposal yet.",
        ObjectArgument(
            _NAMED
            | {
                "questions": ListArgument(
                    ObjectArgument(
                        {
                            "topic": TextArgument(1, 60, line=True),
                            "question": TextArgument(1, 500),
                            "answer": TextArgument(1, 2000),
                            "rationale?": TextArgument(0, 1000),
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
        "planning_tools",
        "Write proposal.md: what changes and why, and which specs it affects. Sent again, it revises the document.",
        ObjectArgument(
            _CHANGE
            | {
                "summary": TextArgument(10, 1000),
                "why": TextArgument(10, 4000),
                "what_changes": ListArgument(_LINE, 1, 30),
                "impact": ObjectArgument(
                    {
                        "scope": ChoiceArgument("patch", "minor", "major"),
                        "affected_specs": ListArgument(
                            TextOrObjectArgument(
                                _ID, ObjectArgument({"id": _ID, "depends?": ListArgument(_ID, 0, 20)})
                            ),
                            0,
                            20,
                        ),
                        "affected_files": IntegerArgument(0, 10_000),
                        "affected_code?": ListArgument(_PATH, 0, 50),
                        "breaking_changes?": TextArgument(0, 2000),
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
        "spec_tools",
        "Write specs/<spec_id>.md: checkable requirements and the scenarios that show them. If agentd/specs has "
        "this spec, send only what changes: a new requirement with a free id, a changed one with its whole new text.",
        ObjectArgument(
            _CHANGE
            | {
                "spec_id": _ID,
                "title": TextArgument(1, 100, line=True),
                "overview": TextArgument(10, 4000),
                "requirements": ListArgument(
                    ObjectArgument(
                        {
                            "id": TextArgument(1, 12, line=True, pattern=r"R[1-9][0-9]*", like="R1"),
                            "title": TextArgument(1, 100, line=True),
                            "description": TextArgument(1, 4000),
                            "priority?": _PRIORITY,
                        }
                    ),
                    0,
                    50,
                ),
                "scenarios": ListArgument(
                    ObjectArgument(
                        {
                            "name": TextArgument(1, 100, line=True),
                            "requirement?": TextArgument(1, 12, line=True),
                            "given?": OneOrManyArgument(_LINE, 0, 10),
                            "when": OneOrManyArgument(_LINE, 1, 10),
                            "then": OneOrManyArgument(_LINE, 1, 10),
                        },
                        {"requirement": "the id of the requirement it shows, such as R1"},
                    ),
                    0,
                    100,
                ),
                "flow_diagram?": TextArgument(0, 8000),
                "removed?": ListArgument(
                    ObjectArgument(
                        {
                            "id?": TextArgument(1, 20, line=True),
                            "scenario?": TextArgument(1, 100, line=True),
                            "reason": TextArgument(1, 1000),
                        }
                    ),
                    0,
                    50,
                ),
                "renamed?": ListArgument(
                    ObjectArgument({"from": TextArgument(1, 140, line=True), "to": TextArgument(1, 140, line=True)}),
                    0,
                    50,
                ),
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
        "spec_tools",
        "Write specs/<spec_id>.md as plain Markdown, with the same content as create_spec. Frontmatter is added.",
        ObjectArgument(_CHANGE | {"spec_id": _ID, "content": TextArgument(1, 200_000)}),
    ),
    Tool(
        "create_tasks",
        (Stage.PLAN,),
        "planning_tools",
        "Write tasks.md: small tasks by layer (data, logic, integration, testing), each with one file and the "
        "requirement it works on. Task data.1 is the same as 1.1.",
        ObjectArgument(
            _CHANGE
            | {
                "tasks": ListArgument(
                    ObjectArgument(
                        {
                            "layer": ChoiceArgument(*Layer),
                            "number": IntegerArgument(1, 99),
                            "title": TextArgument(1, 100, line=True),
                            "file": ObjectArgument({"path": _PATH, "action": ChoiceArgument(*TaskAction)}),
                            "spec_ref?": _REFERENCE,
                            "description": TextArgument(1, 2000),
                            "depends?": ListArgument(TextArgument(1, 20, line=True), 0, 50),
                            "depends_on?": ListArgument(TextArgument(1, 20, line=True), 0, 50),
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
        "planning_tools",
        "Replace one exact text in proposal.md, specs/*.md or tasks.md; everything else stays as it is. The text "
        "must occur exactly once: copy it from read_file.",
        ObjectArgument(
            _CHANGE | {"path": _PATH, "old_text": TextArgument(1, 50_000), "new_text": TextArgument(0, 50_000)}
        ),
    ),
    Tool(
        "answer_finding",
        (Stage.PLAN, Stage.IMPLEMENT),
        "question_tools",
        "Answer an open finding: fixed (after you changed a file) or disputed, with a note that says what was "
        "changed or why it is no fault. The judge decides whether it is closed.",
        ObjectArgument(
            _CHANGE
            | {
                "id": TextArgument(1, 12, line=True),
                "answer": ChoiceArgument("fixed", "disputed"),
                "note": TextArgument(1, 1000),
            },
            {"id": "the id of an open finding, such as C1"},
        ),
    ),
    Tool(
        "validate_change",
        (Stage.PLAN, Stage.IMPLEMENT, Stage.UNBOUND),
        "reading_tools",
        "Check the documents of the change against the rules: format, references, dependencies. Changes nothing.",
        ObjectArgument(_CHANGE | {"strict?": FlagArgument()}),
    ),
    Tool(
        "read_file",
        _ALL,
        "reading_tools",
        "Read a text file of the project. Paths are relative to the project root; the change's own documents also by "
        "short name, such as proposal.md or specs/auth-flow.md.",
        ObjectArgument(_CHANGE | {"path": _PATH} | _RANGE, _RANGE_ABOUT),
    ),
    Tool(
        "list_directory",
        _ALL,
        "reading_tools",
        "List a folder of the project; without a path, the project root.",
        ObjectArgument(_CHANGE | {"path?": _PATH}),
    ),
    Tool(
        "append_review",
        (Stage.CHALLENGE, Stage.REVIEW),
        "judge_tools",
        "Report your verdict. Send new findings only, each with evidence (file, line, a quote copied from the file), "
        "and in `previous` your word on every finding of earlier rounds. APPROVED needs every high finding settled; "
        "any other verdict needs an open finding. Sent again, the last accepted report counts.",
        ObjectArgument(
            _CHANGE
            | {
                "verdict": TextArgument(1, 40, line=True),
                "summary": TextArgument(1, 2000),
                "findings": ListArgument(
                    ObjectArgument(
                        {
                            "severity": ChoiceArgument(*Severity),
                            "title": TextArgument(1, 120, line=True),
                            "what": TextArgument(1, 2000),
                            "suggestion": TextArgument(1, 2000),
                            "requirement?": _REFERENCE,
                            "evidence?": ObjectArgument(
                                {
                                    "file": _PATH,
                                    "line?": IntegerArgument(1, 100_000_000),
                                    "quote?": TextArgument(1, 500, line=True),
                                }
                            ),
                        }
                    ),
                    0,
                    50,
                ),
                "previous?": ListArgument(
                    ObjectArgument(
                        {
                            "id": TextArgument(1, 12, line=True),
                            "state": ChoiceArgument("fixed", "open", "withdrawn"),
                            "note": TextArgument(1, 1000),
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
        "reading_tools",
        "What the implementation changed, as a unified diff; with a path only that file, without one a list of all "
        "changed files first.",
        ObjectArgument(_CHANGE | {"path?": _PATH} | _RANGE, _RANGE_ABOUT),
    ),
    Tool(
        "list_changes",
        (Stage.UNBOUND,),
        "reading_tools",
        "List the changes of this project with phase, open findings, cost and the next command.",
        ObjectArgument({"all?": FlagArgument()}, {"all": "archived and dropped ones too"}),
    ),
    Tool(
        "get_change",
        (Stage.UNBOUND,),
        "reading_tools",
        "Show one change: phase, documents, open findings, tasks and the next command.",
        ObjectArgument(_NAMED),
    ),
)


def tools_of(stage: Stage) -> tuple[Tool, ...]:
    return tuple(tool for tool in TOOLS if stage in tool.stages)
