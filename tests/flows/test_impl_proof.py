"""What "complete" rests on: tests that ran, tasks that are done, and nobody's word instead."""

from agentd.change.inbox import Inbox
from plans import BAD_CODE, greeting_plan, task
from playbooks import edit, implement, write
from scenario import Scenario

SILENT = "import os\n\nos._exit(0)\n"
RUNNER = 'print("OK")\n'
BROKEN = '[[checks]]\nname = "tests"\ncommand = "no-such-runner --all"\nrequired = true\ntimeout = 60\n'


def test_check_that_reports_no_tests_anymore_blocks(project: Scenario) -> None:
    files = [*implement(BAD_CODE), write("tests/test_greeting.py", SILENT)]
    project.greeting_approved({"implement-greeting": files})
    ended = project.run("impl", "--rounds", "0", "--json")
    assert (ended.code, ended.json["phase"]) == (1, "implementing")
    assert "Required check ran no tests: tests" in [one["title"] for one in ended.json["findings"]["list"]]


def test_file_shadowing_the_test_runner_is_removed(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": [*implement(BAD_CODE), write("unittest.py", RUNNER)]})
    ended = project.run("impl", "--rounds", "0", "--json")
    assert ended.code == 1 and not (project.root / "unittest.py").exists()
    titles = [one["title"] for one in ended.json["findings"]["list"]]
    assert any(one.startswith("unittest.py was created") for one in titles) and "Required check failed: tests" in titles


def test_closed_check_finding_is_reopened_while_the_check_fails(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(BAD_CODE)})
    assert project.run("impl", "--rounds", "0").code == 1
    page = project.root / "agentd/changes/greet/REVIEW.md"
    page.write_text(page.read_text().replace("- **State**: open", "- **State**: accepted"))
    ended = project.run("impl", "--review", "--rounds", "0", "--json")
    assert (ended.code, ended.json["phase"]) == (1, "implementing")
    (one,) = ended.json["findings"]["list"]
    assert (one["id"], one["state"]) == ("V1", "open")


def test_unknown_task_is_refused_before_anything_runs(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    refused = project.run("impl", "--tasks", "9.9", "--json")
    assert (refused.code, refused.json["error"]["code"], refused.json["phase"]) == (2, "usage-error", "challenged")
    assert not project.state().steps


def test_known_failures_cannot_excuse_a_check_that_could_not_run(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(BAD_CODE)}, BROKEN)
    ended = project.run("impl", "--known-failures", "It never worked.", "--rounds", "0", "--json")
    assert ended.code == 1 and ended.json["phase"] != "complete"


def test_review_without_tasks_is_refused(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.agentd("implement", "greet").code == 0
    (project.root / "agentd/changes/greet/tasks.md").unlink()
    refused = project.agentd("review", "greet", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "format-invalid")


def test_send_back_reason_without_a_record_becomes_a_finding_of_the_next_review(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.agentd("implement", "greet").code == 0
    assert project.run("impl", "--accept", "Good enough.").code == 0
    assert project.run("impl", "--send-back", "It must say hi.").code == 0
    ended = project.run("impl", "--rounds", "0", "--json")
    assert ended.code == 1
    assert [(one["id"], one["title"]) for one in ended.json["findings"]["list"]] == [("P1", "It must say hi.")]


def test_decision_about_code_does_not_answer_a_question_about_the_plan(project: Scenario) -> None:
    """`agentd run` asks about the plan, and somebody accepts the code elsewhere."""
    change = project.greeting_proposed({}).change
    with change.running("agentd run greet"):
        Inbox(change).open({"id": "after-challenge-1", "at": "2999-01-01T00:00:00Z"})
        refused = project.run("impl", "--accept", "The code is fine.", "--json")
        assert (refused.code, refused.json["error"]["code"]) == (5, "busy")
        assert Inbox(change).take() is None


# ---- tests that are kept from running


LOADED = """import unittest


class There(unittest.TestCase):
    def test_it(self):
        self.assertEqual(len('it'), 2)

    def test_that(self):
        self.assertEqual(len('that'), 4)
"""
DROPS = "\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"


def test_existing_tests_that_no_longer_run_are_found(project: Scenario) -> None:
    lie = edit(
        "tests/test_there.py", "self.assertEqual(len('that'), 4)\n", "self.assertEqual(len('that'), 4)\n" + DROPS
    )
    project.greeting_approved({"implement-greeting": [*implement(tests=""), lie]})
    project.write("tests/test_there.py", LOADED)
    project.write("tests/test_more.py", LOADED)
    ended = project.run("impl", "--rounds", "0", "--json")
    assert (ended.code, ended.json["phase"]) == (1, "implementing")
    assert ("rule:test-weakened", "high", "Fewer tests run than before: tests") in project.review_findings()
    what = next(one["what"] for one in project.review_record()["findings"] if one["title"].startswith("Fewer tests"))
    assert "ran 4 before the first edit and 2 now, although no test was removed from a file." in what


def test_tests_deleted_with_their_file_by_a_task_are_allowed(project: Scenario) -> None:
    rows = (task("2.1", "greeting.py"), task("4.1", "tests/test_greeting.py", ref="greeting:R2"))
    goes = task("4.2", "tests/test_more.py", action="DELETE")
    gone = {"delete": "tests/test_more.py"}
    project.greeting_approved({"implement-greeting": [*implement(), gone]}, documents=greeting_plan(*rows, goes))
    project.write("tests/test_more.py", LOADED + LOADED.replace("There", "More").replace("import unittest", ""))
    ended = project.run("impl", "--json")
    assert (ended.code, project.review_findings()) == (0, []), ended.out
