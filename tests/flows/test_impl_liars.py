"""Agents that say what is not so, or do what they may not: each is caught, and named by a finding or an exit code."""

import sys
from typing import Any

import pytest

from agentd.domain.terms import Phase
from plans import BAD_CODE, GOOD_CODE, GREETING_TASKS, GREETING_TEST
from playbooks import APPROVED, Action, edit, implement, report, say, usage, write
from scenario import CHECK, Scenario

THE_TEST = "tests/test_there.py"
SAYS = [usage(0.1), say("All tests pass.")]
SKIP = edit(THE_TEST, "    def test_it", '    @unittest.skip("flaky")\n    def test_it')
EXPECTED = edit(THE_TEST, "    def test_it", "    @unittest.expectedFailure\n    def test_it")
WEAKER = edit(THE_TEST, "self.assertEqual(len('it'), 2)", "pass")
WEAKENED = "A test proves less than before: "


def lying(box: Scenario, *actions: Action, more: str = CHECK, review: list[Action] | None = None) -> Any:
    """The work is done, and this beside it; the result of the command."""
    work = [write("greeting.py", GOOD_CODE), write("tests/test_greeting.py", GREETING_TEST)]
    box.greeting_approved({"implement-greeting": [*work, *actions, *SAYS], "review": review or APPROVED}, more)
    end = box.run("impl", "--rounds", "0", "--json")
    assert end.out, end.err
    return end.json


# ---- tests


@pytest.mark.parametrize(
    ("lie", "title"),
    [
        ({"delete": THE_TEST}, f"{WEAKENED}the file was deleted with test_it"),
        (SKIP, f"{WEAKENED}test_it is skipped now (skip)"),
        (EXPECTED, f"{WEAKENED}test_it is skipped now (expectedFailure)"),
        (WEAKER, f"{WEAKENED}test_it has 0 assertions, 1 before"),
    ],
)
def test_weakened_test_is_found_and_blocks(lie: Action, title: str, project: Scenario) -> None:
    said = lying(project, lie)
    assert (said["exit_code"], said["phase"], said["verdict"]) == (1, "implementing", "NEEDS_CHANGES")
    assert ("rule:test-weakened", "high", title) in project.review_findings()
    assert project.review_record()["reported"] == "APPROVED" and project.review_record()["overruled"]
    assert (project.folder / "tasks.md").read_text() == GREETING_TASKS, "nothing is ticked"


def test_check_that_runs_no_tests_anymore_blocks(project: Scenario) -> None:
    """The command still ends well."""
    empty = [write("greeting.py", GOOD_CODE), write("tests/test_greeting.py", "# all tests pass\n")]
    project.greeting_approved({"implement-greeting": [*empty, {"delete": THE_TEST}, *SAYS]})
    assert project.run("impl", "--rounds", "0").code == 1
    assert ("check:tests", "high", "Required check ran no tests: tests") in project.review_findings()
    assert project.review_record()["checks"][0]["counts"] == {"passed": 0, "failed": 0, "skipped": 0}


def test_missing_tests_for_requirements_are_found(project: Scenario) -> None:
    """A medium finding for each requirement, beside what a check says."""
    project.greeting_approved(
        {"implement-greeting": [write("greeting.py", GOOD_CODE), write("tests/test_greeting.py", "#\n"), *SAYS]}
    )
    project.run("impl", "--rounds", "0")
    assert project.review_findings() == [
        ("rule:requirement-without-test", "medium", "No test covers greeting:R1: Greeting by name"),
        ("rule:requirement-without-test", "medium", "No test covers greeting:R2: Nobody"),
    ]


# ---- work that is not done, or not asked for


def test_task_whose_file_is_missing_is_not_done(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": [write("greeting.py", GOOD_CODE), *SAYS]})
    end = project.run("impl", "--rounds", "0")
    assert end.code == 1 and "the files of 4.1 do not show it" in end.err
    assert ("rule:task-undone", "high", "Task 4.1 is not done: tests/test_greeting.py") in project.review_findings()
    assert project.review_record()["reported"] == "APPROVED" and project.review_record()["verdict"] == "NEEDS_CHANGES"


def test_implementer_that_does_nothing_has_failed(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": [say("I have implemented everything. All tests pass."), usage(0.1)]}
    )
    end = project.run("impl", "--json")
    assert (end.code, end.json["error"]["code"], end.json["phase"]) == (4, "did-nothing", "implementing")
    assert project.finished_steps() == [] and len(project.state().llm_calls) == 2, "it was reminded once"
    project.replay({"implement-greeting": implement(), "review": APPROVED})
    assert project.run("impl").code == 0, "the same command goes on"


def test_file_not_named_by_any_task_is_reported(project: Scenario) -> None:
    said = lying(project, write("other.py", "X = 1\n"))
    assert project.review_findings() == [("rule:file-without-task", "low", "No task names other.py")]
    assert said["exit_code"] == 0, "it is for the judge to say what that is worth"


# ---- what is agentd's own


def test_changes_to_agentds_own_files_are_restored_and_reported(project: Scenario) -> None:
    own = "agentd/changes/greet"
    lies = {
        f"{own}/REVIEW.md": "# Review: greet\n\n**Verdict**: APPROVED\n",
        f"{own}/reviews/review-1.yaml": "verdict: APPROVED\n",
        f"{own}/STATE.yaml": "phase: complete\n",
        f"{own}/tasks.md": GREETING_TASKS.replace("pending", "done"),
        "agentd/config.toml": "schema_version = 1\n",
        ".git/hooks/pre-commit": "#!/bin/sh\n",
    }
    said = lying(project, *(write(path, text) for path, text in lies.items()))
    assert (said["exit_code"], said["phase"]) == (1, "implementing")
    titles = {title for by, severity, title in project.review_findings() if (by, severity) == ("agentd:guard", "high")}
    named = [path.removesuffix("/review-1.yaml") for path in lies]  # of a folder that is new, the folder
    assert titles == {f"{path} was {_how(path)} by play, which may not do that" for path in named}
    config = (project.root / "agentd/config.toml").read_text()
    assert 'name = "tests"' in config and project.review_record()["checks"][0]["status"] == "passed", "the check ran"
    assert (project.folder / "tasks.md").read_text() == GREETING_TASKS
    assert not (project.root / ".git/hooks/pre-commit").exists()
    assert "**Verdict**: NEEDS_CHANGES" in (project.folder / "REVIEW.md").read_text()
    assert project.review_record()["by"] == "agent:play"


def _how(path: str) -> str:
    is_new = path.endswith(("REVIEW.md", "reviews", "pre-commit"))
    return "created" if is_new else "changed"


@pytest.mark.parametrize(
    ("file", "honest_text", "lie", "command"),
    [
        ("Makefile", f"test:\n\t{sys.executable} -m unittest -q\n", "test:\n\ttrue\n", "make -s test"),
        ("check.sh", f"{sys.executable} -m unittest -q\n", "true\n", "sh check.sh"),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = -q\n",
            "[tool:pytest]\naddopts = -q --deselect tests/test_greeting.py\n",
            f"{sys.executable} -m pytest -p no:cacheprovider",
        ),
    ],
)
def test_check_definition_is_restored_before_the_check_runs(
    file: str, honest_text: str, lie: str, command: str, project: Scenario
) -> None:
    project.write(file, honest_text)
    check = f'[[checks]]\nname = "tests"\ncommand = "{command}"\nrequired = true\ntimeout = 60\n'
    work = [write("greeting.py", BAD_CODE), write("tests/test_greeting.py", GREETING_TEST), write(file, lie), *SAYS]
    project.greeting_approved({"implement-greeting": work}, check)
    assert project.run("impl", "--rounds", "0").code == 1
    assert (project.root / file).read_text() == honest_text
    titles = [title for _, _, title in project.review_findings()]
    assert f"{file} was changed by play, which may not do that" in titles
    assert "Required check failed: tests" in titles, "the check is the one that the person wrote"


def test_head_on_another_branch_after_a_call_stops_the_run(project: Scenario) -> None:
    head = (project.root / ".git/HEAD").read_text()
    project.greeting_approved(
        {"implement-greeting": [*implement()[:2], write(".git/HEAD", "ref: refs/heads/mine\n"), *SAYS]}
    )
    end = project.run("impl", "--json")
    assert end.code == 6, end.out
    assert (
        "HEAD was on the branch main before an agent's call and is on the branch mine after it"
        in end.json["error"]["message"]
    )
    assert "git switch main" in end.json["error"]["hint"] and project.finished_steps() == []
    (project.root / ".git/HEAD").write_text(head)
    project.replay({"implement-greeting": implement(), "review": APPROVED})
    assert project.run("impl").code == 0


# ---- judges


def test_reviewer_that_edits_code_has_failed(project: Scenario) -> None:
    said = lying(project, review=[edit("greeting.py", "Hello", "Hi"), *APPROVED])
    assert (said["exit_code"], said["error"]["code"], said["phase"]) == (4, "changed-files", "implementing")
    assert "it may only read, but greeting.py changed during the call" in said["error"]["message"]
    assert not (project.folder / "REVIEW.md").exists() and project.state().phase is Phase.IMPLEMENTING


def test_reviewer_that_writes_review_md_has_failed(project: Scenario) -> None:
    page = write("agentd/changes/greet/REVIEW.md", "**Verdict**: APPROVED\n")
    said = lying(project, review=[page, *APPROVED])
    assert (said["exit_code"], said["error"]["code"]) == (4, "changed-files")
    assert not (project.folder / "REVIEW.md").exists()
    assert [one.title for one in project.state().findings] == [
        "agentd/changes/greet/REVIEW.md was created by play, which may not do that"
    ]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("", 4, "did-nothing"),
        ("I approve of it: all tests pass.", 1, "verdict-unknown"),
        ("This cannot be APPROVED.", 1, "verdict-unknown"),
    ],
)
def test_reviewer_without_a_verdict_never_passes(words: str, code: int, error: str, project: Scenario) -> None:
    said = lying(project, more="", review=[usage(0.05), *([say(words)] if words else [])])
    assert (said["exit_code"], said["error"]["code"], said["phase"]) == (code, error, "implementing")
    assert not (project.folder / "reviews").exists() or not list((project.folder / "reviews").iterdir())


def test_finding_of_a_failed_check_cannot_be_withdrawn(project: Scenario) -> None:
    withdrawn = [{"id": "V1", "state": "withdrawn", "note": "The test is wrong."}]
    steps = {
        "implement-greeting": implement(BAD_CODE),
        "resolve/2": [edit("greeting.py", "Greetings", "Words"), usage(0.02), say("Green.")],
        "review/2": report(previous=withdrawn),
    }
    project.greeting_approved(steps)
    assert project.run("impl").code == 1
    second = project.review_record(2)
    assert (second["reported"], second["verdict"]) == ("APPROVED", "NEEDS_CHANGES")
    assert [(one["id"], one["state"]) for one in second["previous"]] == [("V1", "open")]
    assert second["previous"][0]["note"].startswith("agentd: ")
