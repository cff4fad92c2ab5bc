"""`agentd impl` in a Node project, proved by `node --test`: scripted agents, the real program and the real runner."""

from agentd.documents import tasks
from plans import GREETING_DOCUMENTS
from playbooks import Action, answer, edit, report, say, usage, write
from scenario import Result, Scenario

CHECK = '[[checks]]\nname = "tests"\ncommand = "node --test"\nrequired = true\ntimeout = 60\n'
PLAN = {
    name: text.replace("tests/test_greeting.py", "test/greeting.test.js").replace("greeting.py", "greeting.js")
    for name, text in GREETING_DOCUMENTS.items()
}
GOOD = """export function greet(name) {
  return `Hello, ${name || "world"}!`;
}
"""
BAD = GOOD.replace('name || "world"', "name")
TEST = """import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { greet } from "../greeting.js";

describe("the greeting", () => {
  // covers: greeting:R1
  it("is by name", () => {
    assert.equal(greet("Ann"), "Hello, Ann!");
  });

  // covers: greeting:R2
  it("is to the world", () => {
    assert.equal(greet(), "Hello, world!");
  });
});
"""
THERE = """import assert from "node:assert/strict";
import test from "node:test";

test("it is there", () => {
  assert.equal(1 + 1, 2);
});
"""
FAILED = "test/greeting.test.js > the greeting > is to the world"
MEND = edit("greeting.js", "${name}", '${name || "world"}')
MENDED = [MEND, answer("V1"), usage(0.02), say("Mended.")]


def made(code: str = GOOD) -> list[Action]:
    return [write("greeting.js", code), write("test/greeting.test.js", TEST), usage(0.1), say("All tests pass.")]


def run(box: Scenario, steps: dict[str, list[Action]], *flags: str, there: str = THERE) -> Result:
    """The reviewer approves, whatever there is."""
    box.write("package.json", '{"name": "greetings", "type": "module"}\n')
    box.write("test/there.test.js", there)
    box.greeting_approved({"review": report(), **steps}, CHECK, documents=PLAN)
    return box.run("impl", "--json", *flags)


def test_approval_with_a_failing_test_is_overruled_and_fixed_code_completes(project: Scenario) -> None:
    end = run(project, {"implement-greeting": made(BAD), "resolve": MENDED})
    assert (end.code, end.json["phase"], end.json["round"]) == (0, "complete", 2), end.out + end.err
    assert project.finished_steps() == ["implement-greeting", "review", "resolve", "review"]
    first, last = project.review_record(), project.review_record(2)
    assert (first["reported"], first["verdict"]) == ("APPROVED", "NEEDS_CHANGES")
    assert first["overruled"] == "The required check tests failed, so the verdict is NEEDS_CHANGES."
    assert project.review_findings() == [("check:tests", "high", "Required check failed: tests")]
    assert FAILED in first["findings"][0]["what"]
    (check,) = first["checks"]
    assert (check["status"], check["counts"], check["failed_tests"]) == (
        "failed",
        {"passed": 2, "failed": 1, "skipped": 0},
        [FAILED],
    )
    assert (last["reported"], last["verdict"], last["overruled"], last["findings"]) == (
        "APPROVED",
        "APPROVED",
        None,
        [],
    )
    assert [(one["id"], one["answer"], one["state"]) for one in last["previous"]] == [("V1", "fixed", "fixed")]
    assert last["checks"][0]["counts"] == {"passed": 3, "failed": 0, "skipped": 0}
    listed = tasks.parse_tasks((project.folder / "tasks.md").read_text()).tasks
    assert [(one.id, str(one.status)) for one in listed] == [("2.1", "done"), ("4.1", "done")]
    page = (project.folder / "REVIEW.md").read_text()
    assert "**Verdict**: APPROVED" in page and "3 passed, 0 failed" in page
    assert (project.root / "greeting.js").read_text() == GOOD
    asked = project.agentd("log", "greet", "--transcript", "--step", "resolve").out
    assert FAILED in asked and "not ok 2 - is to the world" in asked, "the implementer is told what failed"


def test_failure_from_before_the_first_edit_does_not_block(project: Scenario) -> None:
    end = run(project, {"implement-greeting": made()}, there=THERE.replace("1 + 1, 2", "1 + 1, 3"))
    assert (end.code, end.json["phase"]) == (0, "complete"), end.out + end.err
    (check,) = project.review_record()["checks"]
    assert (check["status"], check["failed_tests"]) == ("failed", ["test/there.test.js > it is there"])
    assert project.review_findings() == []


def test_skipped_test_is_found(project: Scenario) -> None:
    skipping = edit("test/there.test.js", 'test("it', 'test.skip("it')
    end = run(project, {"implement-greeting": [skipping, *made()]}, "--rounds", "0")
    assert (end.code, end.json["phase"]) == (1, "implementing"), end.out + end.err
    words = "A test proves less than before: it is there is skipped now (skip)"
    assert ("rule:test-weakened", "high", words) in project.review_findings()
    assert (
        project.review_record()["checks"][0]["status"] == "passed" and project.review_record()["reported"] == "APPROVED"
    )
