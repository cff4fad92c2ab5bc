"""The planner's tools for specs: from data, or as plain Markdown."""

from typing import Any

from agentd.change import Change
from agentd.documents import (
    PROPOSAL_FILE,
    InvalidDocument,
    Priority,
    RemovedItem,
    RenamedRequirement,
    Requirement,
    Scenario,
    Spec,
    fill_removed_titles,
    named_requirement,
    parse_document,
    parse_proposal,
    read_frontmatter,
    render_spec,
    revise_spec,
    set_frontmatter_keys,
    unfence_code,
)
from agentd.domain import Choice, ListOf, Severity, Text
from agentd.engine.tools.document_store import (
    check_documents,
    current_text,
    read_main_specs,
    read_or_refuse,
    require_once,
    store_document,
)
from agentd.engine.tools.tool import CHANGE, ID, LINE, Stage, ToolRefusal, fields, nearest_names, tool
from agentd.engine.tools.tool_scope import ToolScope


@tool(
    (Stage.PLAN,),
    "Write specs/<spec_id>.md: checkable requirements and the scenarios that show them. If agentd/specs has "
    "this spec, send only what changes: a new requirement with a free id, a changed one with its whole new text.",
    fields(
        CHANGE
        | {
            "spec_id": ID,
            "title": Text(1, 100, line=True),
            "overview": Text(10, 4000),
            "requirements": ListOf(
                fields(
                    {
                        "id": Text(1, 12, line=True, pattern=r"R[1-9][0-9]*", like="R1"),
                        "title": Text(1, 100, line=True),
                        "description": Text(1, 4000),
                        "priority?": Choice(*Severity),
                    }
                ),
                0,
                50,
            ),
            "scenarios": ListOf(
                fields(
                    {
                        "name": Text(1, 100, line=True),
                        "requirement?": Text(1, 12, line=True),
                        "given?": ListOf(LINE, 0, 10, accepts_one=True),
                        "when": ListOf(LINE, 1, 10, accepts_one=True),
                        "then": ListOf(LINE, 1, 10, accepts_one=True),
                    },
                    {"requirement": "the id of the requirement it shows, such as R1"},
                ),
                0,
                100,
            ),
            "flow_diagram?": Text(0, 8000),
            "removed?": ListOf(
                fields(
                    {
                        "id?": Text(1, 20, line=True),
                        "scenario?": Text(1, 100, line=True),
                        "reason": Text(1, 1000),
                    }
                ),
                0,
                50,
            ),
            "renamed?": ListOf(
                fields({"from": Text(1, 140, line=True), "to": Text(1, 140, line=True)}),
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
)
def create_spec(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    name, main = _spec_target(binding, change, arguments["spec_id"])
    new = _spec(arguments, main)
    if main:
        new = fill_removed_titles(new, main)
    with binding.writing(change):
        old = current_text(binding, change, name)
        text = render_spec(new) if old is None else read_or_refuse(lambda: revise_spec(old, new, name))
        return store_document(binding, change, name, text, old is not None)


@tool(
    (Stage.PLAN,),
    "Write specs/<spec_id>.md as plain Markdown, with the same content as create_spec. Frontmatter is added.",
    fields(CHANGE | {"spec_id": ID, "content": Text(1, 200_000)}),
)
def write_spec(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    name, main = _spec_target(binding, change, arguments["spec_id"])
    with binding.writing(change):
        old = current_text(binding, change, name)
        text = _with_front(arguments["content"], old, name, arguments["spec_id"], main)
        high = [one for one in check_documents(binding, change, {name: text.encode()}) if one.file == name]
        high = [one for one in high if one.severity is Severity.HIGH]
        if high:
            told = ", ".join(f"line {one.line}: {one.rule}, {one.message}" for one in high[:10])
            raise ToolRefusal("invalid-document", told, "repair it and send the whole text again")
        return store_document(binding, change, name, text, old is not None)


def _with_front(content: str, old: str | None, name: str, spec_id: str, main: Spec | None) -> str:
    """Return the text with frontmatter: its own, otherwise the previous document's, otherwise a new one."""
    content = content if content.endswith("\n") else content + "\n"
    try:
        document = parse_document(content, name)
        if read_frontmatter(document).values:
            return content
        if old is not None:
            before = parse_document(old, name)
            if before.frontmatter:
                return before.text_at(before.frontmatter) + before.newline + content
    except InvalidDocument as error:
        raise ToolRefusal("invalid-document", error.message, "repair it and send the whole text again") from None
    version = {"base_version": main.version or 1} if main else {"version": 1}
    return set_frontmatter_keys(content, {"id": spec_id, "type": "spec", **version}, name)


def _spec_target(binding: ToolScope, change: Change, spec_id: str) -> tuple[str, Spec | None]:
    """Return the file of a spec that the proposal names, and the project's own spec with that id."""
    text = current_text(binding, change, PROPOSAL_FILE)
    if text is None:
        raise ToolRefusal("spec-unnamed", "there is no proposal yet", "call create_proposal first")
    named = [one.id for one in read_or_refuse(lambda: parse_proposal(text)).impact.affected_specs]
    if spec_id not in named:
        near = nearest_names(spec_id, named) or named[:5]
        instead = (
            f"use {', '.join(near)}, or name it in the proposal first" if near else "name it in the proposal first"
        )
        raise ToolRefusal("spec-unnamed", f"the proposal does not name {spec_id}", instead)
    return f"specs/{spec_id}.md", read_main_specs(binding, change).get(spec_id)


def _spec(data: dict[str, Any], main: Spec | None) -> Spec:
    removed, renamed = _removed(data, main), _renamed(data, main)
    requirements = tuple(
        Requirement(one["id"], one["title"].strip(), one["description"].strip(), _priority(one))
        for one in data["requirements"]
    )
    takes_away = bool(main and (removed or renamed)) and not requirements
    if not requirements and not takes_away:
        raise ToolRefusal("bad-argument", "requirements is empty", "send at least one requirement")
    if not data["scenarios"] and not takes_away:
        raise ToolRefusal("bad-argument", "scenarios is empty", "send at least one scenario with when and then")
    require_once([one.id for one in requirements], "requirement-duplicate", "give each requirement its own id")
    require_once([one["name"] for one in data["scenarios"]], "bad-argument", "give each scenario its own name")
    known = {one.id for one in requirements} | ({one.id for one in main.requirements} if main else set())
    return Spec(
        id=data["spec_id"],
        title=data["title"].strip(),
        overview=data["overview"].strip(),
        requirements=requirements,
        scenarios=tuple(_scenario(one, known) for one in data["scenarios"]),
        removed=removed,
        renamed=renamed,
        flow=unfence_code(data.get("flow_diagram") or ""),
        version=None if main else 1,
        base_version=(main.version or 1) if main else None,
    )


def _priority(data: dict[str, Any]) -> Priority | None:
    return Priority(data["priority"]) if data.get("priority") else None


def _scenario(data: dict[str, Any], known: set[str]) -> Scenario:
    requirement = data.get("requirement", "")
    if requirement and requirement not in known:
        raise _unknown(f"the scenario '{data['name']}' names {requirement}, which", known)
    return Scenario(
        data["name"].strip(), tuple(data["when"]), tuple(data["then"]), tuple(data.get("given", ())), requirement
    )


def _removed(data: dict[str, Any], main: Spec | None) -> tuple[RemovedItem, ...]:
    found = []
    for one in data.get("removed", ()):
        if bool(one.get("id")) == bool(one.get("scenario")):
            raise ToolRefusal(
                "bad-argument", "removed names neither or both", "send either id or scenario, with a reason"
            )
        there = _needs_main(main)
        if one.get("id") and there.requirement(one["id"]) is None:
            raise _unknown(f"removed names {one['id']}, which", {each.id for each in there.requirements})
        titles = {each.name for each in there.scenarios}
        if one.get("scenario") and one["scenario"] not in titles:
            raise _unknown(f"removed names the scenario '{one['scenario']}', which", titles)
        found.append(RemovedItem(one.get("id", ""), one.get("scenario", ""), one["reason"].strip()))
    return tuple(found)


def _renamed(data: dict[str, Any], main: Spec | None) -> tuple[RenamedRequirement, ...]:
    found = []
    for one in data.get("renamed", ()):
        there = _needs_main(main)
        old, new = named_requirement(one["from"]), named_requirement(one["to"])
        if old is None or new is None or not new.title:
            raise ToolRefusal("bad-argument", "renamed has no id and title", "send both as `R4: Title`")
        if there.requirement(old.id) is None:
            raise _unknown(f"renamed names {old.id}, which", {each.id for each in there.requirements})
        found.append(RenamedRequirement(old, new))
    return tuple(found)


def _needs_main(main: Spec | None) -> Spec:
    if main is None:
        raise ToolRefusal("not-a-delta", "agentd/specs has no such spec yet", "leave removed and renamed out")
    return main


def _unknown(what: str, known: set[str]) -> ToolRefusal:
    return ToolRefusal(
        "requirement-unknown", f"{what} is not there", f"use one of {', '.join(sorted(known)[:20]) or 'none'}"
    )
