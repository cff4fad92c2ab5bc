"""tasks.md: both forms are read, faults are data, only the status is ever edited."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents.task import Task, TaskFile, canonical_task_id, layered_task_id
from agentd.documents.tasks import TaskList, parse_tasks, render_tasks, revise_tasks, set_task_status, tasks_from_rows
from agentd.documents.text import InvalidDocument
from agentd.domain.errors import AgentdError
from agentd.domain.terms import Layer, TaskAction, TaskStatus
from assertions import assert_grows_linearly

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
TEXT = (EXAMPLE / "tasks.md").read_bytes().decode()

BOXES = """# Tasks: add-oauth

## 1. Data Layer

- [ ] 1.1 Store users
  - File: `src/user.py` (CREATE), src/base.py (MODIFY)
  - **Spec**: user-model:R1, R2
  - Depends: none

  Keep the `email` unique.
- [x] **data.2** **Store identities**
  - **Files**:
    - CREATE src/identity.py
    - `src/old.py` - DELETE
  - **Depends**: data.1 (the user)
  - Link it to a user
  - [ ] with a test

## 2. Logic Layer

* [-] 2.3b: Start the sign-in
  File: src/start.py
  Action: modify
  Depends on: 1.1 and data.2
"""


def block(body: str, heading: str = "### Task 1.1: Title") -> str:
    return f"{heading}\n\n```yaml\n{body}```\n\nWords.\n"


def only(text: str) -> Task:
    (task,) = parse_tasks(text).tasks
    return task


def faults(text: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.rule) for fault in parse_tasks(text).faults]


# ---- reading


def test_example_is_parsed_completely() -> None:
    found = parse_tasks(TEXT)
    assert (found.change_id, found.version, found.faults) == ("add-oauth", 1, ())
    assert [task.id for task in found.tasks] == ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2", "4.1"]
    task = found.tasks[3]
    assert task.title == "Handle the callback"
    assert task.layer is Layer.LOGIC
    assert task.files == (TaskFile("src/notes/auth/callback.py", TaskAction.CREATE),)
    assert task.spec_refs == ("auth-flow:R2",)
    assert task.depends_on == ("1.2", "2.1")
    assert task.status is TaskStatus.PENDING
    assert task.description.startswith("Check the `state`, exchange")
    lines = TEXT.splitlines()
    assert lines[task.line - 1] == "### Task 2.2: Handle the callback"
    for key in ("id", "file", "action", "spec_ref", "depends_on", "status"):
        assert lines[task.at(key) - 1].startswith(key)


def test_checkbox_tasks_are_parsed() -> None:
    found = parse_tasks(BOXES)
    assert found.faults == ()
    first, second, third = found.tasks
    assert first.files == (
        TaskFile("src/user.py", TaskAction.CREATE),
        TaskFile("src/base.py", TaskAction.MODIFY),
    )
    assert first.spec_refs == ("user-model:R1", "user-model:R2")
    assert (first.depends_on, first.description) == ((), "Keep the `email` unique.")
    assert (second.id, second.title, second.status) == ("1.2", "Store identities", TaskStatus.DONE)
    assert [(file.path, file.action) for file in second.files] == [
        ("src/identity.py", TaskAction.CREATE),
        ("src/old.py", TaskAction.DELETE),
    ]
    assert second.depends_on == ("1.1",)
    assert second.description == "- Link it to a user\n- [ ] with a test"
    assert (third.id, third.title, third.layer) == ("2.3b", "Start the sign-in", Layer.LOGIC)
    assert third.status is TaskStatus.WAIVED
    assert third.files == (TaskFile("src/start.py", TaskAction.MODIFY),)
    assert third.depends_on == ("1.1", "1.2")
    assert (first.line, first.at("file"), third.at("depends_on")) == (5, 6, 24)


@pytest.mark.parametrize(
    ("line", "path", "action"),
    [
        ("File: src/a.py (CREATE)", "src/a.py", "CREATE"),
        ("- **File**: `src/a b.py` (modify)", "src/a b.py", "MODIFY"),
        ("- File: DELETE `src/a.py`", "src/a.py", "DELETE"),
        ("- File: CREATE: src/a.py", "src/a.py", "CREATE"),
        ("- File: src/a.py - CREATE", "src/a.py", "CREATE"),
        ("- File: app/(auth)/[id].tsx [CREATE]", "app/(auth)/[id].tsx", "CREATE"),
        ("- File: app/[id] (CREATE)", "app/[id]", "CREATE"),
        ("- File: **a.py** (CREATE)", "a.py", "CREATE"),
        ("- File: __init__.py (CREATE)", "__init__.py", "CREATE"),
        ("- File: `_config.yml` CREATE", "_config.yml", "CREATE"),
    ],
)
def test_file_formats_are_parsed(line: str, path: str, action: str) -> None:
    task = only(f"- [ ] 1.1 Title\n  {line}\n")
    assert task.files == (TaskFile(path, TaskAction(action)),)


def test_action_applies_to_the_files_before_it() -> None:
    task = only("- [ ] 1.1 Title\n  - Files: a.py, b.py (CREATE), c.py (DELETE)\n")
    assert [str(file.action) for file in task.files] == ["CREATE", "CREATE", "DELETE"]


@pytest.mark.parametrize(
    "heading",
    [
        "### Task 1.1: Title",
        "## Task 1.1 - Title",
        "#### 1.1 Title",
        "### **Task 1.1**: Title",
        "### Task data.1: Title",
        "### TASK 1.1 Title ###",
    ],
)
def test_heading_names_its_task(heading: str) -> None:
    task = only(block('id: "1.1"\nfile: a.py\naction: CREATE\n', heading))
    assert (task.id, task.title, task.layer) == ("1.1", "Title", Layer.DATA)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("auth-flow:R1, R2", ("auth-flow:R1", "auth-flow:R2")),
        ("auth-flow:r1", ("auth-flow:R1",)),
        ("auth-flow:AUTH-R1, AUTH-R2", ("auth-flow:AUTH-R1", "auth-flow:AUTH-R2")),
        ("auth-flow:FR-1 and FR-2", ("auth-flow:FR-1", "auth-flow:FR-2")),
        ("specs/auth-flow.md#REQ-1.2", ("auth-flow:REQ-1.2",)),
        ("auth-flow:login-works", ("auth-flow:login-works",)),
    ],
)
def test_spec_reference_formats_are_parsed(value: str, expected: tuple[str, ...]) -> None:
    found = parse_tasks(f"- [ ] 1.1 Title\n  - File: a.py (CREATE)\n  - Spec: {value}\n")
    assert (found.tasks[0].spec_refs, found.faults) == (expected, ())


@pytest.mark.parametrize("value", ["R1", "auth-flow:R1 the login", "auth-flow:", "auth flow:/R1"])
def test_invalid_spec_reference_is_a_fault(value: str) -> None:
    assert faults(f"- [ ] 1.1 Title\n  - File: a.py (CREATE)\n  - Spec: {value}\n") == [(3, "task-spec-ref")]


def test_heading_with_an_id_and_bullets_is_a_task() -> None:
    text = (
        "## 1. Data Layer\n\n### 1.1 Store users\n\n- **File**: `a.py` (CREATE)\n- Spec: user-model:R1\n"
        "- Depends: none\n\nWords.\n\n### 1.2 Store more\n\n- File: b.py (MODIFY)\n- Depends: 1.1\n"
    )
    found = parse_tasks(text)
    assert found.faults == ()
    assert [(task.id, task.title, task.depends_on) for task in found.tasks] == [
        ("1.1", "Store users", ()),
        ("1.2", "Store more", ("1.1",)),
    ]
    assert (found.tasks[0].spec_refs, found.tasks[0].description) == (("user-model:R1",), "Words.")


def test_heading_above_checkboxes_is_not_a_task() -> None:
    found = parse_tasks("### 1.1 Models\n\n- [ ] 1.1.1 Store users\n  - File: a.py (CREATE)\n")
    assert ([task.id for task in found.tasks], found.faults) == (["1.1.1"], ())
    assert faults(BOXES + "\n### 2.1 Notes\n\nWords.\n") == []


@pytest.mark.parametrize("body", ['id: "1.1"\nfile: a.py\naction: CREATE\n', "file: a.py\naction: CREATE\n"])
def test_yaml_block_without_a_language_is_read(body: str) -> None:
    text = block(body).replace("```yaml", "```")
    assert only(text) == only(block(body))
    assert set_task_status(text, "1.1", TaskStatus.DONE) == block(body + "status: done\n").replace("```yaml", "```")


@pytest.mark.parametrize("code", ["Error: x\nfile: not found", "print(1)", "action: x"])
def test_other_code_block_is_not_the_task_block(code: str) -> None:
    task = only(f"### Task 1.1: Title\n\n- File: a.py (CREATE)\n\n```\n{code}\n```\n")
    assert (task.block, task.files) == (None, (TaskFile("a.py", TaskAction.CREATE),))
    assert faults(TEXT + "\n## Example\n\n```\nid: x\n```\n") == []


@pytest.mark.parametrize("heading", ["## Testing", "## 5. Tests"])
def test_testing_checklist_is_not_a_task_list(heading: str) -> None:
    checklist = f"\n{heading}\n\n- [ ] all tests pass\n- [x] by hand\n"
    assert faults(BOXES + checklist) == []
    assert faults(TEXT + checklist) == []
    assert [rule for _, rule in faults(checklist)] == ["task-id", "task-id"]
    among = f"{checklist}- [ ] 4.1 T\n  - File: a.py (CREATE)\n"
    assert [rule for _, rule in faults(BOXES + among)] == ["task-id", "task-id"]
    assert [rule for _, rule in faults(f"{BOXES}{checklist}  - File: a.py (CREATE)\n")] == ["task-id"]


def test_ids_are_not_parsed_as_numbers() -> None:
    body = "id: 1.10\nfile: a.py\naction: CREATE\ndepends_on: [1.20, '1.1', \"2.30\"]\n"
    task = only(block(body, "### Task 1.10: Title"))
    assert task.depends_on == ("1.20", "1.1", "2.30")
    listed = "file: a.py\naction: CREATE\ndepends:\n  - 1.20 # first\n  - data.3\n"
    assert only(block(listed)).depends_on == ("1.20", "1.3")


def test_block_may_have_several_files_and_references() -> None:
    body = "files:\n  - path: a.py\n    action: CREATE\n  - b.py (DELETE)\nspec_refs: [x:R1, 'y:R2']\n"
    task = only(block(body))
    assert [file.path for file in task.files] == ["a.py", "b.py"]
    assert task.spec_refs == ("x:R1", "y:R2")


def test_fences_and_comments_hide_tasks() -> None:
    hidden = "```text\n### Task 1.2: No\n- [ ] 1.3 No\n```\n\n<!--\n- [ ] 1.4 No\n-->\n"
    assert [task.id for task in parse_tasks(BOXES + "\n" + hidden).tasks] == ["1.1", "1.2", "2.3b"]
    assert [task.id for task in parse_tasks(TEXT + "\n" + hidden).tasks][-1] == "4.1"


def test_yaml_example_is_not_the_task_block() -> None:
    text = "### Task 1.1: Title\n\nWrite this:\n\n```yaml\nport: 1\n```\n\n- File: a.py (CREATE)\n"
    task = only(text)
    assert task.block is None
    assert task.files == (TaskFile("a.py", TaskAction.CREATE),)


def test_section_with_yaml_is_not_a_task() -> None:
    assert len(parse_tasks(TEXT + "\n## Settings\n\n```yaml\nfile: x\n```\n").tasks) == 7
    assert faults(TEXT + "\n## Settings\n\n```yaml\nfile: x\n```\n") == []
    assert only(block('id: "1.1"\nfile: a.py\naction: CREATE\n', "### Title")).title == "Title"


def test_checklist_in_another_section_is_not_a_task_list() -> None:
    assert faults(BOXES + "\n## Done when\n\n- [ ] all is green\n") == []


# ---- faults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (block("file: [a\n"), (4, "task-yaml")),
        (block("- a\n- b\n"), (3, "task-yaml")),
        ("### Task 1.1: Title\n\n```yaml\nfile: a.py\n", (3, "task-yaml")),
        ("### Task 1.1: Title\n\nWords.\n", (1, "task-yaml")),
        (block("file: a.py\naction: WRITE\n"), (5, "task-action")),
        (block("file: a.py\n"), (4, "task-action")),
        (block("file: a.py\naction: CREATE\nstatus: half\n"), (6, "task-status")),
        (block("file: a.py\naction: CREATE\nspec_ref: R1\n"), (6, "task-spec-ref")),
        (block("file: a.py\naction: CREATE\ndepends_on: the first\n"), (6, "task-depends")),
        (block('id: "1.2"\nfile: a.py\naction: CREATE\n'), (4, "task-id")),
        (block("action: CREATE\n"), (1, "task-file")),
        (block("file: a.py\naction: CREATE\n", "### Task: Title"), (1, "task-id")),
        (block("file: a.py\naction: CREATE\n", "### Task 5: Title"), (1, "task-id")),
        (block("file: a.py\naction: CREATE\n", "### Task 1.1"), (1, "task-title")),
        (block("file: {a: b}\naction: CREATE\n"), (4, "task-file")),
        ("## 1. Data Layer\n\n- [ ] Title\n", (3, "task-id")),
        ("- [ ] 1.1 Title\n  - File: a.py (NEW)\n", (2, "task-action")),
        ("- [ ] 1.1 Title\n  - File: the new model\n", (2, "task-file")),
        ("## 2. Logic Layer\n\n- [ ] 1.1 Title\n  - File: a.py (CREATE)\n", (3, "task-layer")),
        ("---\nid: [a\n---\n" + block("file: a.py\naction: CREATE\n"), (2, "frontmatter")),
        ("# Tasks\n\nNone yet.\n", (1, "task-missing")),
    ],
)
def test_fault_has_its_line_and_rule(text: str, expected: tuple[int, str]) -> None:
    assert faults(text) == [expected]


def test_duplicate_id_is_a_fault() -> None:
    (fault,) = parse_tasks(BOXES.replace("data.2", "data.1")).faults
    assert fault.message == "task 1.1 appears twice, first on line 5"


def test_ids_can_be_written_by_layer_or_number() -> None:
    assert [canonical_task_id(word) for word in ("data.1", "LOGIC.2b", "1.1", "5.1", "other")] == [
        "1.1",
        "2.2b",
        "1.1",
        "5.1",
        "other",
    ]
    assert [layered_task_id(word) for word in ("1.1", "4.2b", "5.1", "7")] == ["data.1", "testing.2b", "5.1", "7"]


# ---- the status


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_status_change_edits_one_word(ending: str, mark: str) -> None:
    text = mark + TEXT.replace("\n", ending)
    done = set_task_status(text, "logic.2", TaskStatus.DONE)
    at = text.index("status: pending", text.index("### Task 2.2"))
    assert done == text[:at] + "status: done" + text[at + len("status: pending") :]
    assert set_task_status(done, "2.2", TaskStatus.PENDING) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("status:   pending   # mine", "status:   done   # mine"),
        ('status: "pending"', 'status: "done"'),
        ("'status': 'pending' ", "'status': 'done' "),
        ("status:", "status: done"),
        ("status:  ", "status:  done"),
    ],
)
def test_spacing_and_comments_of_a_status_line_are_kept(before: str, after: str) -> None:
    text = block(f"file: a.py\naction: CREATE\n{before}\nowner: me\n")
    assert set_task_status(text, "1.1", TaskStatus.DONE) == text.replace(before, after)


def test_missing_status_line_is_added() -> None:
    text = block("  file: a.py\n  action: CREATE\n\n")
    assert set_task_status(text, "1.1", TaskStatus.PENDING) == block(
        "  file: a.py\n  action: CREATE\n  status: pending\n\n"
    )


def test_status_change_sets_the_checkbox() -> None:
    done = set_task_status(BOXES, "data.1", TaskStatus.DONE)
    assert done == BOXES.replace("- [ ] 1.1", "- [x] 1.1")
    assert set_task_status(BOXES, "1.1", TaskStatus.WAIVED) == BOXES.replace("- [ ] 1.1", "- [-] 1.1")
    assert set_task_status(BOXES, "2.3b", TaskStatus.PENDING) == BOXES.replace("[-] 2.3b", "[ ] 2.3b")
    assert set_task_status(BOXES, "1.2", TaskStatus.DONE) == BOXES


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (TEXT, "9.9"),
        (BOXES + "* [ ] 1.1 Again\n", "1.1"),
        (block('{id: "1.1", file: a.py, action: CREATE}\n'), "1.1"),
        ("### Task 1.1: Title\n\n- File: a.py (CREATE)\n", "1.1"),
        (block("file: a.py\nstatus: |\n  pending\n"), "1.1"),
    ],
)
def test_task_that_cannot_be_updated_is_refused(text: str, id_: str) -> None:
    with pytest.raises(InvalidDocument):
        set_task_status(text, id_, TaskStatus.DONE)


# ---- writing


def test_example_is_rendered_byte_for_byte() -> None:
    assert render_tasks(parse_tasks(TEXT)) == TEXT


def call() -> list[dict[str, object]]:
    tools = (EXAMPLE / "tools.md").read_text()
    after = tools[tools.index("## create_tasks") :]
    start = after.index("```json\n") + len("```json\n")
    rows: list[dict[str, object]] = json.loads(after[start : after.index("\n```\n", start)])["tasks"]
    return rows


def test_tool_call_renders_the_example() -> None:
    rows = call()
    assert render_tasks(TaskList("add-oauth", tasks_from_rows(rows))) == TEXT
    # The order in which tasks are sent does not matter.
    assert render_tasks(TaskList("add-oauth", tasks_from_rows(rows[::-1]))) == TEXT


def test_revision_keeps_status_and_unknown_frontmatter() -> None:
    old = TEXT.replace("version: 1\n", "version: 3 # third\nowner: me\n")
    old = set_task_status(set_task_status(old, "1.1", TaskStatus.DONE), "1.2", TaskStatus.WAIVED)
    new = list(tasks_from_rows(call()))
    new[1] = replace(new[1], title="Store other things")
    text = revise_tasks(old.replace("\n", "\r\n"), TaskList("add-oauth", tuple(new)))
    assert text.startswith("---\r\nid: add-oauth\r\ntype: tasks\r\nversion: 3 # third\r\nowner: me\r\n---\r\n\r\n#")
    assert text.count("\n") == text.count("\r\n")
    statuses = {task.id: task.status for task in parse_tasks(text).tasks}
    assert statuses["1.1"] is TaskStatus.DONE
    assert statuses["1.2"] is TaskStatus.PENDING


def test_revision_of_an_unreadable_document_starts_over() -> None:
    assert revise_tasks("---\nid: [\n---\n", parse_tasks(TEXT)) == TEXT


def test_description_cannot_end_its_task() -> None:
    words = "## 2. Logic Layer\n### Task 1.2: Not one\n```yaml\nid: x"
    task = Task("1.1", "A title #", Layer.DATA, (TaskFile("a.py", TaskAction.CREATE),), description=words)
    found = parse_tasks(render_tasks(TaskList("x", (task, replace(task, id="1.2", description="")))))
    assert [one.id for one in found.tasks] == ["1.1", "1.2"]
    assert found.tasks[0].title == "A title #"
    assert found.faults == ()


# ---- properties

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)
titles = words.map(lambda text: " ".join(text.split())).filter(
    lambda text: bool(text) and not text.startswith("**") and not text.endswith(("**", "\\#"))
)
paths = words.map(str.strip).filter(bool)


@st.composite
def task_lists(draw: st.DrawFn) -> TaskList:
    keys = st.tuples(st.integers(1, 5), st.integers(1, 30), st.sampled_from(["", "b"]))
    chosen = sorted(draw(st.sets(keys, min_size=1, max_size=8)))
    ids = [f"{first}.{second}{letter}" for first, second, letter in chosen]
    layers = [None, *Layer, None]
    return TaskList(
        draw(st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z]", fullmatch=True)),
        tuple(
            Task(
                id=id_,
                title=draw(titles),
                layer=layers[int(id_[0])],
                files=tuple(
                    TaskFile(draw(paths), draw(st.sampled_from(TaskAction))) for _ in range(draw(st.integers(1, 3)))
                ),
                spec_refs=tuple(f"spec-{number}:R{number}" for number in range(draw(st.integers(0, 2)))),
                depends_on=tuple(draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))),
                status=draw(st.sampled_from(TaskStatus)),
                description=draw(st.sampled_from(["", "Words.", "Two\n\n- lines", "```python\n# code\n```"])),
            )
            for id_ in ids
        ),
        draw(st.integers(1, 9)),
    )


@given(task_lists())
def test_task_list_round_trips(tasks_: TaskList) -> None:
    text = render_tasks(tasks_)
    found = parse_tasks(text)
    assert found.faults == ()
    assert found == tasks_
    assert render_tasks(found) == text


@given(task_lists(), st.data())
def test_status_change_keeps_all_other_bytes(tasks_: TaskList, data: st.DataObject) -> None:
    text = render_tasks(tasks_).replace("\n", data.draw(st.sampled_from(["\n", "\r\n"])))
    task = data.draw(st.sampled_from(tasks_.tasks))
    status = data.draw(st.sampled_from(TaskStatus))
    edited = set_task_status(text, task.id, status)
    start = text.index(f"status: {task.status}", text.index(f'id: "{task.id}"')) + len("status: ")
    assert edited == text[:start] + str(status) + text[start + len(task.status) :]


def mutate(text: str, data: st.DataObject) -> str:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 40))
        junk = [
            "",
            "```",
            "\n",
            "---\n",
            "### Task",
            "- [ ] ",
            "\x00",
            "\ud800",
            "<!--",
            ": [",
            "\t",
            '"',
            "#",
            "1.1",
        ]
        text = text[:at] + data.draw(st.sampled_from(junk)) + text[at + cut :]
    return text


@given(st.data())
def test_broken_document_raises_only_agentd_errors(data: st.DataObject) -> None:
    text = mutate(data.draw(st.sampled_from([TEXT, BOXES])), data)
    try:
        found = parse_tasks(text)
        if found.tasks:
            set_task_status(text, data.draw(st.sampled_from(found.tasks)).id, data.draw(st.sampled_from(TaskStatus)))
        revise_tasks(text, parse_tasks(TEXT))
    except AgentdError:
        return


@pytest.mark.parametrize(
    ("start", "unit", "end", "count"),
    [
        ("- [ ] 1.1 ", "*`[(", "", 20_000),
        ("- [ ] 1.1 T\n  - File: ", "`a` ", "", 20_000),
        ("- [ ] 1.1 T\n  - Depends: ", "((", "", 40_000),
        ("### Task 1.1: T", " #", "", 40_000),
        ("", "### Task 1.1: T\n", "", 500),
        ("", "- [ ] 1.1 T\n", "", 500),
        ("### Task 1.1: T\n\n```yaml\nid: ", "1.1 ", "\n```\n", 10_000),
        ("### Task 1.1: T\n\n", "```yaml\nx: 1\n```\n", "", 500),
    ],
)
def test_parsing_takes_linear_time(start: str, unit: str, end: str, count: int) -> None:
    assert_grows_linearly(parse_tasks, start, unit, end, count)
