"""Honest work of many shapes: it is done, it is proved, and nothing at all is found."""

from typing import Any

import pytest

from agentd.domain.terms import Phase
from plans import GOOD_CODE, GREETING_DOCUMENTS, GREETING_TEST, greeting_plan, task
from playbooks import Action, edit, say, usage, write
from scenario import CHECK, Scenario

NODE = '[[checks]]\nname = "tests"\ncommand = "node --test"\nrequired = true\ntimeout = 60\n'
OLD = """import unittest


class Old(unittest.TestCase):
    def test_one(self):
        self.assertEqual(1, 1)

    def test_two(self):
        self.assertEqual(2, 2)
        self.assertTrue(2)
"""
BINARY = "\x89PNG\r\n\x00\x01\x02"


def works(
    box: Scenario, *acts: Action, more: str = CHECK, documents: dict[str, str] | None = None, step: str = ""
) -> None:
    """The implementer does that, the reviewer approves it, and agentd has nothing to say."""
    name = step or "implement"
    box.greeting_approved({name: [*acts, usage(0.1), say("Done.")]}, more, documents=documents or GREETING_DOCUMENTS)
    end = box.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out + end.err
    assert box.review_findings() == [] and box.state().findings == ()
    assert end.json["findings"]["list"] == [] and box.state().phase is Phase.COMPLETE
    assert "status: pending" not in (box.folder / "tasks.md").read_text()


def bare(*rows: str) -> dict[str, str]:
    """A plan without specs: nothing has to be covered."""
    return greeting_plan(*rows, specs=())


def change(file: str, action: str = "MODIFY", id_: str = "2.1") -> str:
    return task(id_, file, action, ref="")


def test_bug_fix_with_a_renamed_test_has_no_findings(project: Scenario) -> None:
    project.write("greeting.py", GOOD_CODE.replace("name or 'world'", "name or 'word'"))
    project.write("tests/test_greeting.py", GREETING_TEST.replace("Hello, world!", "Hello, word!"))
    renamed = edit("tests/test_greeting.py", "def test_nobody(self):", "def test_the_world_is_greeted(self):")
    better = edit("tests/test_greeting.py", "Hello, word!", "Hello, world!")
    rows = (task("2.1", "greeting.py", "MODIFY"), task("4.1", "tests/test_greeting.py", "MODIFY", "greeting:R2"))
    mend = edit("greeting.py", "'word'", "'world'")
    works(project, mend, renamed, better, documents=greeting_plan(*rows), step="implement-greeting")


def test_tests_moved_to_another_file_have_no_findings(project: Scenario) -> None:
    project.write("tests/test_old.py", OLD)
    head, two = OLD[: OLD.index("    def test_two")], OLD[OLD.index("    def test_two") :]
    rows = (change("tests/test_old.py"), change("tests/test_new.py", "CREATE", "2.2"))
    new = OLD[: OLD.index("class Old")] + "class New(unittest.TestCase):\n" + two
    works(
        project,
        write("tests/test_old.py", head.rstrip() + "\n"),
        write("tests/test_new.py", new),
        documents=bare(*rows),
    )


def test_planned_deletion_with_its_tests_has_no_findings(project: Scenario) -> None:
    project.write("old.py", "OLD = 1\n")
    project.write("tests/test_old.py", OLD)
    rows = (change("old.py", "DELETE"), change("tests/test_old.py", "DELETE", "2.2"))
    works(project, {"delete": "old.py"}, {"delete": "tests/test_old.py"}, documents=bare(*rows))


def test_renamed_file_has_no_findings(project: Scenario) -> None:
    project.write("old.py", GOOD_CODE)
    rows = (change("old.py", "DELETE"), change("new.py", "CREATE", "2.2"))
    works(project, {"delete": "old.py"}, write("new.py", GOOD_CODE), documents=bare(*rows))


def test_documentation_change_has_no_findings(project: Scenario) -> None:
    works(project, edit("README.md", "notes", "Notes, and how to take them."), documents=bare(change("README.md")))


def test_generated_file_next_to_its_source_has_no_findings(project: Scenario) -> None:
    rows = (change("schema.json", "CREATE"), change("src/generated/schema.py", "CREATE", "2.2"))
    generated = write("src/generated/schema.py", "# Generated from schema.json. Do not edit.\n" + "X = 1\n" * 500)
    works(project, write("schema.json", '{"x": 1}\n'), generated, documents=bare(*rows))


def test_change_of_many_files_has_no_findings(project: Scenario) -> None:
    names = [f"src/part_{number}/module_{number}.py" for number in range(30)]
    rows = [change(name, "CREATE", f"2.{number}") for number, name in enumerate(names, 1)]
    works(project, *(write(name, f"X = {name!r}\n") for name in names), documents=bare(*rows))


@pytest.mark.parametrize(
    ("name", "before", "act"),
    [
        ("logo.png", "", write("logo.png", BINARY)),
        ("logo.png", BINARY, write("logo.png", BINARY * 2)),
        ("notes.bat", "echo one\r\necho two\r\n", edit("notes.bat", "two", "three")),
        ("two words \u00e4.txt", "a\n", write("two words \u00e4.txt", "b\n")),
    ],
    ids=["new binary", "changed binary", "crlf", "odd name"],
)
def test_binary_and_crlf_files_have_no_findings(name: str, before: str, act: Action, project: Scenario) -> None:
    if before:
        (project.root / name).write_bytes(before.encode())
    works(project, act, documents=bare(change(name, "MODIFY" if before else "CREATE")))
    if name == "notes.bat":
        assert (project.root / name).read_bytes() == b"echo one\r\necho three\r\n"


def node(box: Scenario) -> tuple[list[Action], dict[str, Any]]:
    box.write("package.json", '{"name": "greet", "version": "1.0.0", "type": "module"}\n')
    box.write("old.test.js", "import test from 'node:test';\n\ntest('it is there', () => {});\n")
    code = "export const greet = (name) => `Hello, ${name || 'world'}!`;\n"
    tests = (
        "import test from 'node:test';\nimport assert from 'node:assert';\nimport { greet } from './greet.js';\n\n"
        "// covers: greeting:R1\ntest('by name', () => assert.equal(greet('Ann'), 'Hello, Ann!'));\n\n"
        "// covers: greeting:R2\ntest('nobody', () => assert.equal(greet(), 'Hello, world!'));\n"
    )
    rows = (task("2.1", "greet.js"), task("4.1", "greet.test.js", ref="greeting:R2", needs=["2.1"]))
    return [write("greet.js", code), write("greet.test.js", tests)], greeting_plan(*rows)


def test_node_project_has_no_findings(project: Scenario) -> None:
    acts, documents = node(project)
    works(project, *acts, more=NODE, documents=documents, step="implement-greeting")
    (row,) = project.state().checks
    assert row["counts"]["passed"] >= 2 and row["counts"]["failed"] == 0


def test_node_project_whose_first_code_fails_is_fixed_in_round_two(project: Scenario) -> None:
    """The reviewer approves it all the same; agentd does not."""
    acts, documents = node(project)
    bad = [acts[0] | {"text": acts[0]["text"].replace("name || 'world'", "name")}, acts[1]]
    mend = [edit("greet.js", "{name}", "{name || 'world'}"), usage(0.02), say("Mended.")]
    project.greeting_approved({"implement-greeting": [*bad, usage(0.1)], "resolve/2": mend}, NODE, documents=documents)
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"], end.json["round"]) == (0, "complete", 2), end.out
    assert project.review_findings() == [("check:tests", "high", "Required check failed: tests")]
