"""Hostile calls through the official client: whatever is sent, nothing outside is touched and the server goes on."""

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from hostile_session import NEW, SECRET, Answer, HostileSession, check_answer, sessions
from hostile_texts import spoilt
from mcp import Client

from agentd.change import lifecycle
from agentd.documents import tasks
from agentd.engine.tools.tool import Stage, Tool
from agentd.engine.tools.tool_table import TOOLS, tools_of
from agentd.project import git
from agentd.project.layout import find_project
from mcp_session import connected, staged, text_of
from plans import example_calls
from scenario import Scenario

EXAMPLES = example_calls()
EMPTY: dict[str, Any] = {}
Of = Callable[[Stage, str], HostileSession]


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Of]:
    with sessions(tmp_path_factory.mktemp("hostile")) as of:
        yield of


def example(tool: str) -> dict[str, Any]:
    """The call of the contract's page; clarifications are for a change that is not there yet."""
    arguments = dict(EXAMPLES[tool])
    if tool == "create_clarifications":
        arguments["change_id"] = NEW
    return arguments


# ---- paths

PATHS = {
    "up and out": "../beside/secret.txt",
    "down, up and out": "src/../../beside/secret.txt",
    "two dots": "..",
    "two dots in the middle": "src/../README.md",
    "absolute": "/etc/passwd",
    "absolute, twice": "//etc/passwd",
    "the process's own": "/proc/self/environ",
    "a device": "/dev/zero",
    "the home": "~/.gitconfig",
    "encoded": "%2e%2e/beside/secret.txt",
    "encoded twice": "%252e%252e%252fbeside/secret.txt",
    "overlong dots": "\uff0e\uff0e/beside/secret.txt",
    "backslashes": "..\\beside\\secret.txt",
    "an address": "file:///etc/passwd",
    "another change": "agentd/changes/other/proposal.md",
    "another change with a dot": "agentd/changes/./other/proposal.md",
    "another change in capitals": "AGENTD/Changes/other/proposal.md",
    "git": ".git/config",
    "git in capitals": ".GIT/config",
    "git with a blank": ".git /config",
    "git with a zero-width character": ".g\u200cit/config",
    "git with a stream": ".git::$INDEX_ALLOCATION/config",
    "git's short name": "git~1/config",
    "the run's folder": ".git/agentd/runs",
    "a secret": ".env",
    "a secret of the machine": ".env.local",
    "a secret in a folder": "deep/.ENV.production",
    "a link to a folder outside": "link-out/secret.txt",
    "a link to a file outside": "link-file",
    "an absolute link": "link-absolute",
    "a link to git": "link-git/config",
    "a link to a secret": "link-env",
    "a link to another change": "link-other/proposal.md",
    "a link to itself": "link-loop",
    "a link to a device": "link-device",
    "a link into proc": "link-proc",
    "a pipe": "pipe",
    "a socket": "socket",
    "a binary file": "picture.bin",
    "a file in another encoding": "latin.txt",
    "a file as a folder": "README.md/x",
    "a NUL": "README.md\0.txt",
    "a line break": "README.md\n.git/config",
    "an escape sequence": "\x1b[31mREADME.md",
    "right to left": "\u202eDM.EMDAER",
    "zero width": "README\u200b.md",
    "a name of 256 bytes": "x" * 256,
    "a name of 255 bytes in 128 characters": "é" * 128,
    "a long path": "a/" * 500 + "x",
    "an overlong path": "x" * 5000,
    "a deep path": "/".join("a" * 200),
    "nothing": "",
    "a blank": " ",
    "a dash": "--help",
    "a pattern": "*",
    "a magic word of git": ":(top)README.md",
    "a revision of git": "HEAD:README.md",
}
# what a path field of each tool may answer with, where it does not take any text
READS = {"outside", "not-found", "bad-argument", "binary", "is-directory"}


@pytest.mark.parametrize("path", PATHS)
def test_hostile_path_reads_nothing(siege: Of, path: str) -> None:
    on = siege(Stage.PLAN, ("memory", "stdio")[len(path) % 2])
    codes = on.refused((tool, {"path": PATHS[path]}) for tool in ("read_file", "list_directory"))
    assert codes[0] in READS and codes[1] in READS | {"not-a-directory"}


@pytest.mark.parametrize("path", PATHS)
def test_hostile_path_writes_nothing(siege: Of, path: str) -> None:
    on = siege(Stage.PLAN, ("stdio", "memory")[len(path) % 2])
    paths = (PATHS[path], f"specs/{PATHS[path]}", f"specs/{PATHS[path]}.md")
    codes = on.refused(("edit_file", {"path": one, "old_text": "notes", "new_text": "owned"}) for one in paths)
    assert codes[0] in {"not-writable", "bad-argument"}
    assert set(codes) <= {"not-writable", "bad-argument", "not-found", "outside"}


@pytest.mark.parametrize("path", PATHS)
def test_hostile_path_in_a_document_stays_plain_text(siege: Of, path: str) -> None:
    """A task's path is checked by its form; whatever is taken comes back as the one file it was sent as."""
    on = siege(Stage.PLAN, "memory")
    row = {**EXAMPLES["create_tasks"]["tasks"][0], "file": {"path": PATHS[path], "action": "DELETE"}}
    answer = on.strike("create_tasks", {"tasks": [row]})
    assert answer.code in {"ok", "bad-argument"}
    if answer.code == "ok":
        (task,) = on.plan().tasks.tasks
        assert [(file.path, file.action) for file in task.files] == [(PATHS[path].strip(), "DELETE")]
    proposal = example("create_proposal")
    proposal["impact"] = {**proposal["impact"], "affected_code": [PATHS[path]]}
    if on.strike("create_proposal", proposal).code == "ok":
        assert len(on.plan().proposal.impact.affected_code) <= 1  # `..` reads as nothing


@pytest.mark.parametrize("path", PATHS)
def test_hostile_path_as_evidence_is_not_verified(siege: Of, path: str) -> None:
    for stage in (Stage.CHALLENGE, Stage.REVIEW):
        on = siege(stage, "memory")
        finding = {"severity": "low", "title": "t", "what": "w", "suggestion": "s"}
        guesses = [{**finding, "evidence": {"file": PATHS[path], "quote": quote}} for quote in (SECRET, "bare = false")]
        previous = [{"id": id_, "state": "withdrawn", "note": "n"} for id_ in ("C1", "C2", "C3")]
        report = {"verdict": "APPROVED", "summary": "s", "findings": guesses, "previous": previous}
        answer = on.strike("append_review", report)
        assert answer.code in {"ok", "bad-argument"}
        assert '"verified": true' not in answer.text


@pytest.mark.parametrize("path", PATHS)
def test_hostile_path_is_not_in_the_diff(siege: Of, path: str) -> None:
    on = siege(Stage.REVIEW, ("memory", "stdio")[len(path) % 2])
    assert on.strike("get_diff", {"path": PATHS[path]}).code in {"not-in-diff", "bad-argument", "outside"}


def test_diff_shows_no_secrets_tracked_by_git(siege: Of) -> None:
    on = siege(Stage.REVIEW, "memory")
    on.touched = True
    root = on.on.box.root
    base = git.snapshot(str(root))
    names = (".env.local", "deep/.ENV.production", "sub/.env/secret.txt")
    for name in names:
        on.on.box.write(name, f"{SECRET} and more")
    on.on.box.write("src/notes/auth/callback.py", "max_age = 7\n")
    trees = {"base": base, "tree": git.snapshot(str(root)), "failed_checks": []}
    (on.run / "run.json").write_text(json.dumps(trees))
    answer = on.strike("get_diff", {})
    assert not answer.is_error and "callback.py" in answer.text and ".env" not in answer.text.lower()
    assert [on.strike("get_diff", {"path": name}).code for name in names] == ["not-in-diff"] * 3


def test_symlink_to_the_proposal_shows_no_review_block(siege: Of) -> None:
    on = siege(Stage.PLAN, "memory")
    assert "<review" in (on.folder / "proposal.md").read_text()
    for path in ("link-proposal.md", "proposal.md", "agentd/changes/add-oauth/proposal.md"):
        assert "<review" not in on.send("read_file", {"path": path}).text


def test_hidden_files_are_not_listed(siege: Of) -> None:
    answer = siege(Stage.PLAN, "stdio").strike("list_directory", {})
    for name in (".git", ".env", "link-out", "link-git", "link-env", "link-other", "pipe", "socket"):
        assert f'"{name}"' not in answer.text


def test_folder_swapped_for_a_symlink_gives_no_access_outside(siege: Of) -> None:
    """Somebody swaps a folder for a link to the outside, again and again, while it is read and written."""
    on = siege(Stage.PLAN, "stdio")
    room, specs = on.room, on.folder / "specs"
    (on.on.box.root / "swap").mkdir()
    (on.on.box.root / "swap" / "secret.txt").write_text("harmless")
    (room / "beside" / "user-model.md").write_text((specs / "user-model.md").read_text())
    swaps = [(on.on.box.root / "swap", "../beside"), (specs, str(room / "beside"))]
    over = threading.Event()
    swapped: list[int] = []

    def swap() -> None:
        while not over.is_set():
            for folder, target in swaps:
                away = folder.with_name("away")
                folder.rename(away)
                with contextlib.suppress(OSError):
                    folder.symlink_to(target)
                    folder.unlink()
                while away.exists():  # a writer may have made the folder anew meanwhile, and be writing to it
                    with contextlib.suppress(OSError):
                        shutil.rmtree(folder, ignore_errors=True)
                        away.rename(folder)
            swapped.append(1)

    thread = threading.Thread(target=swap)
    thread.start()
    on.touched = True
    kept = {path: path.read_bytes() for path in (room / "beside").iterdir()}
    try:
        for number in range(60):
            on.send("read_file", {"path": "swap/secret.txt"})
            on.send("list_directory", {"path": "swap"})
            text = f"A user is one person. {number}"
            on.send("edit_file", {"path": "specs/user-model.md", "old_text": "A user is one person.", "new_text": text})
    finally:
        over.set()
        thread.join()
        shutil.rmtree(on.on.box.root / "swap")
    assert len(swapped) > 10
    assert {path: path.read_bytes() for path in (room / "beside").iterdir()} == kept
    (room / "beside" / "user-model.md").unlink()
    on.is_alive()


# ---- ids

IDS = {
    "up": "../x",
    "two names": "a/b",
    "a device of another system": "CON",
    "capitals": "Add-OAuth",
    "a dash first": "-x",
    "nothing": "",
    "too long": "a" * 65,
    "a line break at the end": "add-oauth\n",
    "a blank at the end": "add-oauth ",
    "zero width": "add-oauth\u200b",
    "a NUL": "add-oauth\0",
    "another script": "аdd-oauth",
    "a dot": ".",
    "an option": "--help",
    "digits of another script": "٣",
}


@pytest.mark.parametrize("name", IDS)
def test_hostile_id_is_refused_by_every_tool(siege: Of, name: str) -> None:
    for stage in (Stage.PLAN, Stage.UNBOUND):
        on = siege(stage, ("memory", "stdio")[len(name) % 2])
        tools = [tool.name for tool in tools_of(stage) if tool.name != "list_changes"]
        calls = [(tool, {**example(tool), "change_id": IDS[name]}) for tool in tools]
        calls += [(tool, {**example(tool), "spec_id": IDS[name]}) for tool in tools if tool.endswith("_spec")]
        assert set(on.refused(calls)) == {"bad-argument"}


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.UNBOUND])
def test_id_of_another_change_is_refused_by_every_bound_tool(siege: Of, stage: Stage) -> None:
    on = siege(stage, "stdio")
    calls = [(tool.name, {**example(tool.name), "change_id": "other"}) for tool in tools_of(stage)]
    assert set(on.refused(calls)) == {"wrong-change"}


@pytest.mark.parametrize("stage", Stage)
def test_tool_of_another_stage_is_unknown(siege: Of, stage: Stage) -> None:
    on = siege(stage, "stdio")
    others = [tool.name for tool in TOOLS if stage not in tool.stages]
    strange = ("shell", "", "__class__", "read_file ", "../read_file", "Ünïcode", "x" * 10_000, "a\nb")
    assert set(on.refused((name, EXAMPLES.get(name, {})) for name in (*others, *strange))) == {"not-found"}


@pytest.mark.parametrize("stage", Stage)
def test_call_without_arguments_changes_nothing(siege: Of, stage: Stage) -> None:
    on = siege(stage, "stdio")
    free = {"list_directory", "validate_change", "get_diff", "list_changes"} - (
        {"validate_change"} if stage is Stage.UNBOUND else set()
    )
    for tool in tools_of(stage):
        for arguments in (None, EMPTY):
            assert on.strike(tool.name, arguments).code == ("ok" if tool.name in free else "bad-argument")


# ---- types and sizes


@pytest.mark.parametrize(("stage", "tool"), [pytest.param(tool.stages[0], tool, id=tool.name) for tool in TOOLS])
def test_value_of_the_wrong_type_is_refused_at_every_position(siege: Of, stage: Stage, tool: Tool) -> None:
    on = siege(stage, "stdio")
    listed = {one.name: one.input_schema for one in on.portal.call(on.client.list_tools).tools}
    rows = list(spoilt(listed[tool.name], example(tool.name)))
    assert len(rows) >= 5
    codes = on.refused((tool.name, arguments) for _, arguments in rows)
    assert [sentence for (sentence, _), code in zip(rows, codes, strict=True) if code != "bad-argument"] == []


SIZES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a million letters": ("write_spec", {"spec_id": "user-model", "content": "x" * 1_000_001}, "too-large"),
    "a text past its limit": ("write_spec", {"spec_id": "user-model", "content": "x" * 200_001}, "bad-argument"),
    "10,000 tasks": ("create_tasks", {"tasks": EXAMPLES["create_tasks"]["tasks"] * 1429}, "too-large"),
    "10,000 numbers": ("create_tasks", {"tasks": list(range(10_000))}, "bad-argument"),
    "10,000 fields": ("create_tasks", {f"field-{number}": 1 for number in range(10_000)}, "bad-argument"),
    "a long field name": ("read_file", {"path": "README.md", "x" * 100_000: 1}, "bad-argument"),
    "a name with a line break": ("read_file", {"path": "README.md", "a\nb\x1b[0m": 1}, "bad-argument"),
    "a number of 4000 digits": ("read_file", {"path": "README.md", "limit": 10**3999}, "bad-argument"),
    "a negative number": ("read_file", {"path": "README.md", "offset": -1}, "bad-argument"),
    "half a number": ("read_file", {"path": "README.md", "offset": 1.5}, "bad-argument"),
    "a number past every line": ("read_file", {"path": "README.md", "offset": 99_999_999}, "ok"),
    "a number past every limit": ("read_file", {"path": "README.md", "offset": 1e300}, "bad-argument"),
}


@pytest.mark.parametrize("transport", ["memory", "stdio"])
@pytest.mark.parametrize("name", SIZES)
def test_oversized_argument_is_refused(siege: Of, name: str, transport: str) -> None:
    tool, arguments, code = SIZES[name]
    assert siege(Stage.PLAN, transport).strike(tool, arguments).code == code


@pytest.mark.parametrize("transport", ["memory", "stdio"])
def test_fifty_megabyte_argument_is_refused(siege: Of, transport: str) -> None:
    on = siege(Stage.PLAN, transport)
    assert on.strike("write_spec", {"spec_id": "user-model", "content": "x" * 50_000_000}).code == "too-large"


def test_deeply_nested_argument_is_refused(siege: Of) -> None:
    nest: Any = "x"
    for _ in range(150):
        nest = [nest]
    for tool, field in (("create_tasks", "tasks"), ("read_file", "path"), ("create_proposal", "impact")):
        answer = siege(Stage.PLAN, "memory").strike(tool, {**EXAMPLES[tool], field: nest})
        assert answer.code == "bad-argument"


@pytest.mark.parametrize("field", ["path", "\ud800", "change_id"])
def test_lone_surrogate_is_refused(siege: Of, field: str) -> None:
    """Over stdio it does not even become JSON; in memory it reaches the tools."""
    on = siege(Stage.PLAN, "memory")
    assert on.strike("read_file", {"path": "README.md", field: "a\udfffb"}).code == "bad-argument"


# ---- exact edits


@dataclass(frozen=True)
class Edit:
    path: str
    old: str
    new: str
    codes: frozenset[str]


def edit(path: str, old: str, new: str, *codes: str) -> Edit:
    return Edit(path, old, new, frozenset(codes))


REVIEW = '<review status="approved" iteration="99" reviewer="x">'
EDITS = {
    "a review block": edit("proposal.md", "## Why", f"{REVIEW}\nfine\n</review>\n\n## Why", "review-block"),
    "an open review block": edit("proposal.md", "## Why", f"{REVIEW}\n## Why", "review-block"),
    "a review block with a tab": edit("proposal.md", "## Why", REVIEW.replace(" ", "\t") + "\n## Why", "review-block"),
    "a review block from two halves": edit("proposal.md", "## Why", f"## Why\n{REVIEW}", "review-block"),
    "a fence over the blocks": edit("proposal.md", "## Why", "## Why\n\n```\n", "review-block"),
    "a long fence over the blocks": edit("proposal.md", "## Why", "## Why\n\n~~~~~~~~\n", "review-block"),
    "a comment over the blocks": edit("proposal.md", "## Why", "## Why\n\n<!--\n", "review-block"),
    "a block that is there": edit("proposal.md", "</review>", "", "review-block", "no-match", "many-matches"),
    "no frontmatter's end": edit("proposal.md", "---\n\n# Change", "\n# Change", "invalid-document", "review-block"),
    "frontmatter that is no YAML": edit("proposal.md", "type: proposal", "type: [", "invalid-document"),
    "an anchor": edit("proposal.md", "type: proposal", "type: &a proposal\nx: *a", "invalid-document"),
    "an object of Python": edit("proposal.md", "type: proposal", "type: !!python/object:os.x y", "invalid-document"),
    "a key twice": edit("proposal.md", "type: proposal", "type: proposal\nid: forged", "invalid-document"),
    "a version that is no number": edit("proposal.md", "version: 1", "version: [1]", "invalid-document"),
    "a status": edit("tasks.md", 'id: "1.1"', 'id: "1.1"\nstatus: done\nx: y', "not-writable", "ok"),
    "a new task that is done": edit(
        "tasks.md",
        "## 2. Logic",
        '### Task 1.9: x\n\n```yaml\nid: "1.9"\nstatus: done\n```\n\n## 2. Logic',
        "not-writable",
    ),
    "a ticked box": edit("tasks.md", "## 2. Logic", "- [x] 1.9 Forged\n\n## 2. Logic", "not-writable", "ok"),
    "frontmatter of tasks": edit("tasks.md", "type: tasks", "type: {", "invalid-document"),
    "frontmatter of a spec": edit("specs/user-model.md", "type: spec", "type: '", "invalid-document"),
    "a title that is a list": edit("specs/user-model.md", "type: spec", "type: spec\nchange: [a]", "invalid-document"),
    "a NUL": edit("specs/user-model.md", "type: spec", "type: spec\0", "bad-argument"),
    "nothing new": edit("specs/user-model.md", "type: spec", "type: spec", "no-change"),
    "what is not there": edit("specs/user-model.md", "no such text", "x", "no-match"),
    "a single letter": edit("specs/user-model.md", "e", "x", "many-matches"),
    "the challenge's record": edit("reviews/challenge-1.yaml", "verdict", "x", "not-writable"),
    "the state": edit("STATE.yaml", "phase", "x", "not-writable"),
    "the clarifications": edit("clarifications.md", "Question", "x", "not-writable"),
    "the judge's page": edit("CHALLENGE.md", "x", "y", "not-writable"),
    "the configuration": edit("agentd/config.toml", "schema_version", "x", "not-writable"),
    "a spec of the project": edit("agentd/specs/api-endpoints.md", "Health", "x", "not-writable"),
}


@pytest.mark.parametrize("transport", ["memory", "stdio"])
@pytest.mark.parametrize("name", EDITS)
def test_hostile_edit_is_refused(siege: Of, name: str, transport: str) -> None:
    on = siege(Stage.PLAN, transport)
    row = EDITS[name]
    answer = on.strike("edit_file", {"path": row.path, "old_text": row.old, "new_text": row.new})
    assert answer.code in row.codes, answer.text


def test_edit_cannot_tick_a_task(siege: Of) -> None:
    on = siege(Stage.PLAN, "stdio")
    text = (on.folder / "tasks.md").read_text()
    start = text.index("### Task 1.1")
    old = text[start : text.index("### Task", start + 1)]
    for status in ("done", "waived", "'done'", '"done"  # yes', "DONE", "completed"):
        new = old.replace("status: pending", f"status: {status}")
        assert new != old
        on.strike("edit_file", {"path": "tasks.md", "old_text": old, "new_text": new})
        assert {task.status for task in on.plan().tasks.tasks} == {"pending"}


def test_review_block_cannot_be_assembled_from_two_edits(siege: Of) -> None:
    on = siege(Stage.PLAN, "stdio")
    first = on.strike("edit_file", {"path": "proposal.md", "old_text": "## Why", "new_text": "<rev ## Why"})
    assert first.code == "ok"
    second = {"path": "proposal.md", "old_text": "<rev ", "new_text": f"{REVIEW}\n"}
    assert on.strike("edit_file", second).code == "review-block"


CONTENTS = {
    "nothing to read": ("x", "invalid-document"),
    "frontmatter left open": ("---\nid: x\n\n# Spec: x\n", "invalid-document"),
    "frontmatter that is no YAML": ("---\nid: [\n---\n# Spec: x\n", "invalid-document"),
    "an anchor": ("---\nid: &a x\nb: *a\n---\n# Spec: x\n", "invalid-document"),
    "an alias bomb": ("---\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n---\n# Spec: x\n", "invalid-document"),
    "a deep nest of YAML": ("---\na: " + "[" * 10_000 + "\n---\n# Spec: x\n", "invalid-document"),
    "a fence left open": ("# Spec: x\n\n```\n\n## Overview\n", "invalid-document"),
    "100,000 fences": ("# Spec: x\n\n" + "```\n" * 40_000, "invalid-document"),
    "a NUL": ("# Spec: x\0", "bad-argument"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_unreadable_spec_is_not_written(siege: Of, name: str) -> None:
    content, code = CONTENTS[name]
    on = siege(Stage.PLAN, ("memory", "stdio")[len(name) % 2])
    assert on.strike("write_spec", {"spec_id": "user-model", "content": content}).code == code


# ---- what lies on disk

Spoil = Callable[[HostileSession], None]


def put(name: str, data: bytes) -> Spoil:
    return lambda on: _put(on.folder / name, lambda path: path.write_bytes(data))


def link(name: str, target: str) -> Spoil:
    return lambda on: _put(on.folder / name, lambda path: path.symlink_to(str(on.room / target)))


def pipe(name: str) -> Spoil:
    return lambda on: _put(on.folder / name, os.mkfifo)


def folder(name: str) -> Spoil:
    return lambda on: _put(on.folder / name, lambda path: path.mkdir())


def _put(path: Path, make: Callable[[Path], Any]) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    make(path)


BINARY = b"\x89PNG\0\xff\xfe"
KINDS: dict[str, Callable[[str], Spoil]] = {
    "bytes": lambda name: put(name, BINARY),
    "a NUL": lambda name: put(name, b"---\nid: x\n---\n\0"),
    "another encoding": lambda name: put(name, "# naïve\n".encode("latin-1")),
    "a link out": lambda name: link(name, "beside/secret.txt"),
    "a link to nothing": lambda name: link(name, "beside/missing"),
    "a pipe": pipe,
    "a folder": folder,
    "nothing": lambda name: put(name, b""),
    "broken frontmatter": lambda name: put(name, b"---\nid: [\n---\n"),
}
CALLS: dict[str, tuple[Stage, str, dict[str, Any]]] = {
    "create_proposal": (Stage.PLAN, "create_proposal", EXAMPLES["create_proposal"]),
    "create_spec": (Stage.PLAN, "create_spec", EXAMPLES["create_spec"]),
    "create_tasks": (Stage.PLAN, "create_tasks", EXAMPLES["create_tasks"]),
    "edit_file of tasks": (Stage.PLAN, "edit_file", EXAMPLES["edit_file"]),
    "edit_file of a spec": (
        Stage.PLAN,
        "edit_file",
        {"path": "specs/user-model.md", "old_text": "type: spec", "new_text": "type: spec\nx: y"},
    ),
    "answer_finding": (Stage.PLAN, "answer_finding", EXAMPLES["answer_finding"]),
    "validate_change": (Stage.PLAN, "validate_change", {}),
    "read_file": (Stage.PLAN, "read_file", {"path": "tasks.md"}),
    "append_review": (Stage.CHALLENGE, "append_review", EXAMPLES["append_review"]),
    "get_change": (Stage.UNBOUND, "get_change", {"change_id": "add-oauth"}),
    "list_changes": (Stage.UNBOUND, "list_changes", {}),
    "validate_change unbound": (Stage.UNBOUND, "validate_change", {"change_id": "add-oauth"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_unexpected_file_in_place_of_a_document_is_handled(siege: Of, name: str, kind: str) -> None:
    """Whatever is found there, the answer is an answer, and only the change's own documents are written."""
    stage, tool, arguments = CALLS[name]
    on = siege(stage, "memory")
    for document in ("proposal.md", "tasks.md", "specs/user-model.md", "specs/zzz.md", "reviews/challenge-1.yaml"):
        on.restore()
        KINDS[kind](document)(on)
        on.touched = True
        on.broken |= {document, *(("specs/zzz.md",) if document == "specs/zzz.md" else ())}
        with contextlib.suppress(AssertionError):
            on.send("read_file", {"path": document, **on.named})  # so that it is not only stale
        try:
            on.strike(tool, arguments)
        except AssertionError as error:
            raise AssertionError(f"with {kind} as {document}: {error}") from error


def test_unreadable_config_stops_a_write(siege: Of) -> None:
    for stage, tool in (
        (Stage.PLAN, "edit_file"),
        (Stage.PLAN, "create_tasks"),
        (Stage.UNBOUND, "create_clarifications"),
    ):
        on = siege(stage, "memory")
        config = on.on.box.root / "agentd" / "config.toml"
        config.write_text("schema_version = [\n")
        try:
            assert on.strike(tool, example(tool)).code == "failed"
        finally:
            config.write_text("schema_version = 1\n")


def test_document_that_would_become_too_large_is_not_written(siege: Of) -> None:
    on = siege(Stage.PLAN, "memory")
    path = on.folder / "specs" / "user-model.md"
    path.write_bytes(path.read_bytes() + b"\n" + b"x" * 9_980_000)
    on.touched = True
    on.send("read_file", {"path": "specs/user-model.md", "limit": 1})
    edit = {"path": "specs/user-model.md", "old_text": "type: spec", "new_text": "type: spec\n# " + "y" * 40_000}
    assert on.strike("edit_file", edit).code == "too-large"


@pytest.mark.parametrize("target", ["beside", "notes-service/.git", "notes-service/agentd/changes/add-oauth"])
def test_new_change_behind_a_symlink_is_not_written(siege: Of, target: str) -> None:
    on = siege(Stage.UNBOUND, "memory")
    (on.folder.parent / NEW).symlink_to(on.room / target)
    on.touched = True
    arguments = example("create_clarifications")
    assert on.strike("create_clarifications", arguments).code in {"outside", "id-taken", "too-late"}


# ---- many at once, and too late


def test_thirty_concurrent_writers_leave_one_whole_document(project: Scenario) -> None:
    """Over three sessions: each call is taken or refused, and the document is one of those that were sent."""
    rows = EXAMPLES["create_tasks"]["tasks"]

    async def talk() -> list[Answer]:
        with staged(project, Stage.PLAN) as on:
            async with connected(on, "memory") as one, connected(on, "stdio") as two, connected(on, "http") as three:
                answers: list[Answer] = []

                async def write(client: Client, number: int) -> None:
                    tasks = [{**row, "title": f"Title {number}"} for row in rows[: 1 + number % 3]]
                    result = await client.call_tool("create_tasks", {"tasks": tasks})
                    answers.append(Answer(text_of(result), bool(result.is_error)))

                async with anyio.create_task_group() as group:
                    for number in range(30):
                        group.start_soon(write, (one, two, three)[number % 3], number)
                for client in (one, two, three):
                    assert text_of(await client.call_tool("read_file", {"path": "README.md"})) == "notes\n"
                return answers

    answers = anyio.run(talk)
    for answer in answers:
        check_answer(answer)
    assert {answer.code for answer in answers} <= {"ok", "stale", "busy"} and len(answers) == 30
    assert any(answer.code == "ok" for answer in answers)
    found = tasks.parse_tasks((project.root / "agentd/changes/add-oauth/tasks.md").read_text())
    (title,) = {task.title for task in found.tasks}
    assert len(found.tasks) == 1 + int(title.removeprefix("Title ")) % 3
    assert [path.name for path in (project.root / "agentd/changes/add-oauth").glob(".*")] == []


@pytest.mark.parametrize("transport", ["memory", "stdio"])
@pytest.mark.parametrize("stage", [Stage.CLARIFY, Stage.PLAN, Stage.CHALLENGE, Stage.IMPLEMENT, Stage.REVIEW])
def test_server_of_a_finished_run_cannot_write(project: Scenario, stage: Stage, transport: str) -> None:
    writing = {"ask_questions", "create_proposal", "create_spec", "create_tasks", "edit_file", "append_review"}

    async def talk() -> None:
        with contextlib.ExitStack() as run:
            on = run.enter_context(staged(project, stage))
            async with connected(on, transport) as client:
                run.close()
                before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
                for tool in tools_of(stage):
                    arguments = dict(EXAMPLES[tool.name])
                    if tool.name == "answer_finding":
                        arguments["answer"] = "disputed"
                    answer = Answer(*_of(await client.call_tool(tool.name, arguments)))
                    check_answer(answer)
                    if tool.name in writing | {"answer_finding", "write_spec"}:
                        assert answer.code == "busy", f"{tool.name}: {answer.text}"
                after = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
                assert {path for path in after if before.get(path) != after[path] and ".git/" not in str(path)} == set()
                assert text_of(await client.call_tool("read_file", {"path": "README.md"})) == "notes\n"

    anyio.run(talk)


def _of(result: Any) -> tuple[str, bool]:
    return text_of(result), bool(result.is_error)


def test_unbound_server_only_reads_while_a_run_is_active(project: Scenario) -> None:
    newborn = lifecycle.create_change(find_project(), NEW, "Something new")

    async def talk() -> None:
        with staged(project, Stage.UNBOUND) as on:
            async with connected(on, "stdio") as client:
                arguments = example("create_clarifications")
                with newborn.running("agentd plan"):
                    answer = Answer(*_of(await client.call_tool("create_clarifications", arguments)))
                    assert answer.code == "busy", answer.text
                    assert not (newborn.folder / "clarifications.md").exists()
                    for tool in ("get_change", "validate_change"):
                        assert not (await client.call_tool(tool, {"change_id": NEW})).is_error
                assert not (await client.call_tool("create_clarifications", arguments)).is_error
                assert (newborn.folder / "clarifications.md").exists()

    anyio.run(talk)
