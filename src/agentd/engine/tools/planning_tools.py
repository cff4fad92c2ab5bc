"""The planner's tools: proposal, tasks, and exact edits of its documents."""

from typing import Any

from agentd.change import Change
from agentd.documents import (
    PROPOSAL_FILE,
    TASKS_FILE,
    AffectedSpec,
    Impact,
    InvalidDocument,
    Proposal,
    Scope,
    Task,
    TaskList,
    cycle_message,
    decode_text,
    dependency_cycle,
    find_blocks,
    parse_document,
    parse_proposal,
    parse_spec,
    parse_tasks,
    read_frontmatter,
    read_spec,
    render_proposal,
    render_tasks,
    revise_proposal,
    revise_tasks,
    spec_order,
    tasks_from_rows,
    text_before_blocks,
    unknown_dependencies,
)
from agentd.domain import Choice, Layer, ListOf, TaskAction, TaskStatus, Text, TextOrTable, clock
from agentd.engine.tools.document_store import (
    current_text,
    read_main_specs,
    read_or_refuse,
    require_once,
    store_document,
)
from agentd.engine.tools.tool import (
    CHANGE,
    ID,
    LINE,
    PATH,
    REFERENCE,
    Stage,
    ToolRefusal,
    fields,
    integer,
    nearest_names,
    tool,
)
from agentd.engine.tools.tool_scope import ToolScope
from agentd.validation import path_problem


def refuse_edit(name: str, before: str, after: str) -> None:
    fault = _fault(name, after)
    if fault and _fault(name, before) is None:
        raise ToolRefusal("invalid-document", fault, "send text that leaves the document readable")
    if name == PROPOSAL_FILE and find_blocks(after) != find_blocks(before):
        what = "with this edit there would be other review blocks"
        raise ToolRefusal("review-block", what, "leave review tags out, and close every fence and comment")
    if name == TASKS_FILE:
        _refuse_status(before, after)


def _fault(name: str, text: str) -> str | None:
    """Return why the document cannot be parsed, or None if it can."""
    try:
        document = parse_document(text, name)
        front = read_frontmatter(document)
        if name == PROPOSAL_FILE:
            parse_proposal(text)
        elif name != TASKS_FILE:
            read_spec(document, front)
    except InvalidDocument as error:
        return error.message
    return None


def _refuse_status(before: str, after: str) -> None:
    """Refuse edits that change a task's status, because only agentd sets it."""
    known: dict[str, set[TaskStatus]] = {}
    for one in parse_tasks(before).tasks:
        known.setdefault(one.id, set()).add(one.status)
    for one in parse_tasks(after).tasks:
        if one.status not in known.get(one.id, {TaskStatus.PENDING}):
            raise ToolRefusal("not-writable", f"the status of task {one.id} is agentd's to set", "leave it as it was")


@tool(
    (Stage.PLAN,),
    "Write proposal.md: what changes and why, and which specs it affects. Sent again, it revises the document.",
    fields(
        CHANGE
        | {
            "summary": Text(10, 1000),
            "why": Text(10, 4000),
            "what_changes": ListOf(LINE, 1, 30),
            "impact": fields(
                {
                    "scope": Choice("patch", "minor", "major"),
                    "affected_specs": ListOf(
                        TextOrTable(ID, fields({"id": ID, "depends?": ListOf(ID, 0, 20)})),
                        0,
                        20,
                    ),
                    "affected_files": integer(0, 10_000),
                    "affected_code?": ListOf(PATH, 0, 50),
                    "breaking_changes?": Text(0, 2000),
                },
                {
                    "affected_specs": "ids of the specs this change writes, each with the specs it depends on",
                    "affected_files": "how many files of code will change",
                },
            ),
        }
    ),
)
def create_proposal(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    impact = _impact(arguments["impact"])
    main = read_main_specs(binding, change)
    order = spec_order(impact, tuple(main))
    if order.unknown:
        one, other = order.unknown[0]
        what = f"{one} depends on {other}, which is neither affected nor in agentd/specs/"
        raise ToolRefusal("dependency-unknown", what, f"name {other} among the affected specs, or drop the dependency")
    if order.cycle:
        what = f"Circular dependency detected: {' → '.join(order.cycle)}"
        raise ToolRefusal("dependency-cycle", what, "drop one arrow")
    new = Proposal(
        id=change.id,
        summary=arguments["summary"].strip(),
        why=arguments["why"].strip(),
        what_changes=tuple(arguments["what_changes"]),
        impact=impact,
        created=clock.now(),
    )
    with binding.writing(change):
        old = current_text(binding, change, PROPOSAL_FILE)
        text = render_proposal(new) if old is None else read_or_refuse(lambda: revise_proposal(old, new))
        result = store_document(binding, change, PROPOSAL_FILE, text, old is not None)
    return {**result, "specs": [{"id": one, "delta": one in main} for one in order.ids]}


def _impact(data: dict[str, Any]) -> Impact:
    specs = [one if isinstance(one, dict) else {"id": one} for one in data["affected_specs"]]
    ids = [one["id"] for one in specs]
    if len(set(ids)) < len(ids):
        raise ToolRefusal("bad-argument", "impact.affected_specs names a spec twice", "name each spec once")
    return Impact(
        scope=Scope(data["scope"]),
        affected_specs=tuple(AffectedSpec(one["id"], tuple(one.get("depends", ()))) for one in specs),
        affected_files=data["affected_files"],
        affected_code=tuple(data.get("affected_code", ())),
        breaking_changes=(data.get("breaking_changes") or "").strip() or None,
    )


@tool(
    (Stage.PLAN,),
    "Write tasks.md: small tasks by layer (data, logic, integration, testing), each with one file and the "
    "requirement it works on. Task data.1 is the same as 1.1.",
    fields(
        CHANGE
        | {
            "tasks": ListOf(
                fields(
                    {
                        "layer": Choice(*Layer),
                        "number": integer(1, 99),
                        "title": Text(1, 100, line=True),
                        "file": fields({"path": PATH, "action": Choice(*TaskAction)}),
                        "spec_ref?": REFERENCE,
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
)
def create_tasks(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    rows = [{**row, "depends": row.get("depends") or row.get("depends_on") or []} for row in arguments["tasks"]]
    for row in rows:
        row.pop("depends_on", None)
        problem = path_problem(row["file"]["path"])
        if problem:
            what = f"{row['file']['path'][:200]} {problem}"
            raise ToolRefusal("bad-argument", what, "send a path from the project root, such as src/app.py")
    tasks = tasks_from_rows(rows)
    _check_tasks(binding, change, tasks)
    with binding.writing(change):
        old = current_text(binding, change, "tasks.md")
        new = TaskList(change.id, tasks)
        text = render_tasks(new) if old is None else read_or_refuse(lambda: revise_tasks(old, new))
        return store_document(binding, change, "tasks.md", text, old is not None)


def _check_tasks(binding: ToolScope, change: Change, tasks: tuple[Task, ...]) -> None:
    ids = [one.id for one in tasks]
    require_once(ids, "task-duplicate", "give each task its own layer and number")
    for one, other in unknown_dependencies(tasks):
        instead = f"use one of {', '.join(ids[:40])}"
        raise ToolRefusal("dependency-unknown", f"task {one.id} depends on {other}, which is no task", instead)
    circle = dependency_cycle(tasks)
    if circle:
        raise ToolRefusal("dependency-cycle", cycle_message(circle), "drop one of these dependencies")
    known = sorted(_references(binding, change))
    for one in tasks:
        missing = [reference for reference in one.spec_refs if reference not in known]
        if missing or (known and not one.spec_refs):
            what = f"task {one.id}: {missing[0]} is not there" if missing else f"task {one.id} has no spec_ref"
            raise ToolRefusal(
                "spec-ref-unknown", what, f"use one of {', '.join(known[:60]) or 'none: leave spec_ref out'}"
            )


def _references(binding: ToolScope, change: Change) -> set[str]:
    """Return every requirement in the change's specs, including removed ones."""
    pattern = binding.settings().requirement_pattern
    found: set[str] = set()
    for path in sorted((change.folder / "specs").glob("*.md")):
        if not path.is_file():
            continue  # opening a pipe would block forever
        try:
            one = parse_spec(decode_text(path.read_bytes(), path.name), path.name, pattern)
        except InvalidDocument:
            continue  # validation reports it
        found |= {f"{path.stem}:{each.id}" for each in one.requirements}
        found |= {f"{path.stem}:{each.id}" for each in one.removed if each.id}
    return found


@tool(
    (Stage.PLAN,),
    "Replace one exact text in proposal.md, specs/*.md or tasks.md; everything else stays as it is. The text "
    "must occur exactly once: copy it from read_file.",
    fields(CHANGE | {"path": PATH, "old_text": Text(1, 50_000), "new_text": Text(0, 50_000)}),
)
def edit_file(binding: ToolScope, arguments: dict[str, Any]) -> dict[str, Any]:
    change = binding.change_of(arguments)
    name = _editable(arguments["path"], change)
    old, new = arguments["old_text"], arguments["new_text"]
    if old == new:
        raise ToolRefusal("no-change", "old_text and new_text are equal", "send the text as it should be")
    with binding.writing(change):
        text = current_text(binding, change, name)
        if text is None:
            raise ToolRefusal("not-found", f"there is no {name}", "create it first")
        own = text_before_blocks(text) if name == PROPOSAL_FILE else text
        edited = _replaced(own, text[len(own) :], old, new)
        refuse_edit(name, text, edited)
        return store_document(binding, change, name, edited, revised=True)


def _editable(path: str, change: Change) -> str:
    name = path.removeprefix("./").removeprefix(f"agentd/changes/{change.id}/")
    inside = name.removeprefix("specs/")
    if name in (PROPOSAL_FILE, "tasks.md") or (name != inside and "/" not in inside and inside.endswith(".md")):
        return name
    raise ToolRefusal(
        "not-writable", f"{path[:200]} is no document of the plan", "edit proposal.md, specs/*.md or tasks.md"
    )


def _replaced(own: str, rest: str, old: str, new: str) -> str:
    if "\r\n" in own and old not in own:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = own.count(old)
    if count == 1:
        return own.replace(old, new, 1) + rest
    if count == 0 and old in rest:
        raise ToolRefusal("review-block", "that text is in a review block", "answer findings with answer_finding")
    if count == 0:
        first = next((line for line in old.splitlines() if line.strip()), "")
        near = nearest_names(first, [line for line in own.splitlines() if line.strip()][:5000], 1)
        instead = (
            f"copy the text from read_file; the nearest line is: {near[0][:200]}" if near else "copy it from read_file"
        )
        raise ToolRefusal("no-match", "old_text is not in the document", instead)
    lines: list[str] = []
    start = own.find(old)
    while start >= 0 and len(lines) < 20:
        lines.append(str(own.count("\n", 0, start) + 1))
        start = own.find(old, start + 1)
    raise ToolRefusal(
        "many-matches", f"old_text occurs {count} times, in lines {', '.join(lines)}", "send more text around it"
    )
