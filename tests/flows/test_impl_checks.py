"""What the project's checks say about code: what failed before, what could not run, and what blocks."""

from pathlib import Path

import pytest

from agentd.change.lifecycle import open_change
from agentd.domain import events
from agentd.domain.terms import Phase
from agentd.project.layout import find_project
from plans import BAD_CODE, GREETING_TEST
from playbooks import APPROVED, NEEDS_CHANGES, edit, implement, say, usage
from scenario import CHECK, Scenario, journal_of

OLD = "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_broken(self):\n        self.assertEqual(1, 2)\n"
BROKEN = "tests.test_old.Old.test_broken"
AUDIT = (Path(__file__).parents[1] / "data/checks/pip-audit.txt").read_text()


def check(name: str, command: str, required: bool = True, timeout: float = 60) -> str:
    words = "true" if required else "false"
    return f"[[checks]]\nname = \"{name}\"\ncommand = '''{command}'''\nrequired = {words}\ntimeout = {timeout}\n"


def with_old_failure(box: Scenario, code: str = "") -> None:
    """A test fails before anybody has touched anything."""
    box.write("tests/test_old.py", OLD)
    box.greeting_approved({"implement-greeting": implement(code) if code else implement(), "review": APPROVED})


# ---- before the first edit


def test_failure_known_by_name_does_not_block(project: Scenario) -> None:
    with_old_failure(project)
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.json["findings"]
    assert project.review_findings() == [] and project.review_record()["overruled"] is None
    row = project.review_record()["checks"][0]
    assert (row["status"], row["failed_tests"]) == ("failed", [BROKEN])
    assert row["before"] == {"status": "failed", "failed_tests": [BROKEN]}
    page = (project.folder / "REVIEW.md").read_text()
    assert "- **Result**: failed (required)" in page and "- **Before the first edit**: failed" in page


def test_new_failure_next_to_a_known_one_blocks_and_is_named(project: Scenario) -> None:
    """Whatever a person has said about the known one."""
    with_old_failure(project, BAD_CODE)
    assert project.run("impl", "--rounds", "0", "--known-failures", "the old one is broken").code == 1
    (one,) = project.review_record()["findings"]
    assert one["title"] == "Required check failed: tests"
    new = "1 test failed that did not fail before the first edit: tests.test_greeting.Greeting.test_nobody."
    assert new in one["what"] and "1 test failed before too." in one["what"]
    assert project.review_record()["verdict"] == "NEEDS_CHANGES"


def test_tests_written_before_the_code_pass_with_it(project: Scenario) -> None:
    """They could not even be loaded before."""
    project.write("tests/test_greeting.py", GREETING_TEST.replace("covers: greeting:R1", "Ann"))
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED})
    assert project.run("impl").code == 0
    row = project.review_record()["checks"][0]
    assert (row["status"], row["before"]["status"]) == ("passed", "failed")
    assert row["counts"] == {"passed": 3, "failed": 0, "skipped": 0}


def test_failures_without_test_names_block_until_declared_known(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": implement(), "review": APPROVED}, check("lint", "echo ugly; exit 3")
    )
    first = project.run("impl", "--rounds", "0")
    assert first.code == 1 and project.review_findings() == [("check:lint", "high", "Required check failed: lint")]
    assert "cannot be compared by name" in project.review_record()["findings"][0]["what"]
    known = project.run("impl", "--review", "--known-failures", "the linter is broken", "--json")
    assert (known.code, known.json["phase"]) == (0, "complete"), known.out
    row = project.review_record(2)["checks"][0]
    assert row["status"] == "failed" and row["known"] == "the linter is broken (dev)" and "blocks" not in row
    assert "- **Known failures**: the linter is broken (dev)" in (project.folder / "REVIEW.md").read_text()
    (made,) = journal_of(open_change(find_project(), "greet"), events.DecisionMade)
    assert (made.id, made.by, made.reason) == ("known-failures", "person:dev", "the linter is broken")
    assert project.review_record(2)["previous"][0]["state"] == "fixed"
    assert project.state().base.extra["checks"][0]["known"] == "the linter is broken (dev)"


def test_existing_failures_are_reported_and_known_failures_is_offered(project: Scenario) -> None:
    checks = check("lint", "echo ugly; exit 3") + check("none", "no-such-program") + CHECK
    project.write("tests/test_old.py", OLD)
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED}, checks)
    end = project.run("impl", "--rounds", "0", "--json")
    change = open_change(find_project(), "greet")
    seen = [one.message for one in journal_of(change, events.WarningIssued) if one.code == "fails-already"]
    assert [words.partition(";")[0].partition(",")[0] for words in seen] == [
        "the required check lint fails already",
        "the required check none could not run",
        "the required check tests fails already",
    ]
    options = {one["id"]: one["command"] for one in end.json["decision_needed"]["options"]}
    assert options["known-failures"] == 'agentd impl greet --known-failures "REASON"' and "accept" not in options


def test_code_with_only_known_failures_can_be_accepted(project: Scenario) -> None:
    project.write("tests/test_old.py", OLD)
    project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES})
    end = project.run("impl", "--rounds", "0", "--json")
    assert [one["id"] for one in end.json["decision_needed"]["options"]] == [
        "fix",
        "view",
        "accept",
        "plan-wrong",
        "stop",
    ]
    assert project.run("impl", "--accept", "good enough").code == 0


def test_known_failures_flag_is_refused_when_nothing_failed_before(project: Scenario) -> None:
    """A check that passed then is not excused by a sentence."""
    project.greeting_approved({"implement-greeting": implement(BAD_CODE), "review": APPROVED})
    end = project.run("impl", "--known-failures", "never mind", "--json")
    assert end.code == 1
    assert end.json["error"]["message"] == "no check failed before the first edit, so --known-failures does not apply"
    assert project.finished_steps() == [] and not project.state().llm_calls


# ---- checks that do not come to an end of their own


def test_required_check_that_could_not_run_or_timed_out_blocks(project: Scenario) -> None:
    checks = check("lint", "no-such-linter --all") + check("slow", "echo begun; sleep 600", timeout=0.5)
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED}, checks)
    end = project.run("impl", "--rounds", "0", "--json")
    assert (end.code, end.json["verdict"]) == (1, "NEEDS_CHANGES")
    assert project.review_findings() == [
        ("check:lint", "high", "Required check could not run: lint"),
        ("check:slow", "high", "Required check failed: slow"),
    ]
    assert (
        project.review_record()["overruled"]
        == "The required checks lint and slow failed, so the verdict is NEEDS_CHANGES."
    )
    lint, slow = project.review_record()["checks"]
    assert (lint["status"], lint["exit_code"]) == ("could-not-run", None) and "no-such-linter" in lint["tail"]
    assert (slow["status"], slow["exit_code"]) == ("failed", None) and "time limit of 0.5 s" in slow["tail"]


def test_optional_check_is_reported_but_does_not_block(project: Scenario) -> None:
    """An audit's advisories are findings, though."""
    project.write("audit.txt", AUDIT)
    checks = (
        check("lint", "no-such-linter --all", required=False)
        + check("slow", "sleep 600", required=False, timeout=0.5)
        + check("audit", "cat audit.txt; exit 1", required=False)
    )
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED}, CHECK + checks)
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.json["findings"]
    assert [row["status"] for row in project.review_record()["checks"]] == [
        "passed",
        "could-not-run",
        "failed",
        "failed",
    ]
    rows = project.review_findings()
    assert {by for by, _, _ in rows} == {"check:audit"} and len(rows) == 2
    assert all(severity != "high" for _, severity, _ in rows)
    assert any("CVE-2019-10906" in title for _, _, title in rows)
    page = (project.folder / "REVIEW.md").read_text()
    assert "- **Result**: could not run (not required)" in page


# ---- checks that write, and checks that go


def test_checks_run_again_after_they_changed_files(project: Scenario) -> None:
    """What it makes before the first edit is no part of the change."""
    project.greeting_approved(
        {"implement-greeting": implement(), "review": APPROVED}, check("gen", "cp README.md made.txt") + CHECK
    )
    assert project.run("impl").code == 0
    noted = [one.message for one in journal_of(open_change(find_project(), "greet"), events.NoticeIssued)]
    assert "the checks changed made.txt, so they run once more" in noted
    assert project.review_findings() == [], "made.txt was there before the first edit"
    tree = project.review_record()["judged"]["tree"]
    assert project.git("ls-tree", "--name-only", tree, "made.txt") == "made.txt", "judged is what the checks left"


def test_file_rewritten_by_every_check_run_does_not_trigger_another_review(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": implement(), "review": NEEDS_CHANGES}, check("gen", "date +%N > made.txt") + CHECK
    )
    assert project.run("impl", "--rounds", "0").code == 1
    assert project.run("impl", "--rounds", "0").code == 1
    assert project.finished_steps().count("review") == 1, "nobody has changed anything"
    project.write("greeting.py", BAD_CODE)
    assert project.run("impl", "--rounds", "0").code == 1
    assert project.finished_steps().count("review") == 2


def test_review_after_the_check_was_removed_says_nothing_verifies_the_code(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(BAD_CODE), "review": APPROVED})
    assert project.run("impl", "--rounds", "0").code == 1
    project.configure((project.root / "agentd/config.toml").read_text().replace(CHECK, ""))
    end = project.run("impl", "--review")
    assert "no checks are configured, so nothing verifies this code" in end.err
    assert end.code == 0 and project.state().phase is Phase.COMPLETE
    assert "**No checks are configured.**" in (project.folder / "REVIEW.md").read_text()
    (word,) = project.review_record(2)["previous"]
    assert (word["id"], word["state"]) == ("V1", "fixed")


@pytest.mark.parametrize("meanwhile", ["changed", "added"])
def test_changed_or_added_check_has_no_earlier_result(meanwhile: str, project: Scenario) -> None:
    """Its failures cannot have been there before."""
    project.write("tests/test_old.py", OLD)
    project.greeting_approved(
        {"implement-greeting": implement(), "review": APPROVED}, CHECK if meanwhile == "changed" else ""
    )
    assert project.agentd("implement", "greet").code == 0
    text = (project.root / "agentd/config.toml").read_text()
    project.configure(text.replace("unittest -q", "unittest") if meanwhile == "changed" else text + CHECK)
    assert project.agentd("review", "greet").code == 1
    row = project.review_record()["checks"][0]
    assert row["before"] is None and row["failed_tests"] == [BROKEN]
    assert "It was not run before the first edit." in project.review_record()["findings"][0]["what"]


def test_check_finding_is_closed_when_it_passes_and_reopened_when_it_fails(project: Scenario) -> None:
    """It keeps its id over the rounds."""
    steps = {
        "implement-greeting": implement(BAD_CODE),
        "resolve/2": [edit("greeting.py", "{name}", "{name or 'world'}"), usage(0.02), say("So.")],
        "review": APPROVED,
    }
    project.greeting_approved(steps)
    assert project.run("impl").code == 0
    text = (project.root / "greeting.py").read_text()
    (project.root / "greeting.py").write_text(text.replace("world", "nobody"))
    end = project.run("impl", "--review", "--rounds", "0", "--json")
    assert (end.code, end.json["phase"]) == (1, "implementing")
    (word,) = project.review_record(3)["previous"]
    assert (word["id"], word["state"]) == ("V1", "open") and project.review_findings(3) == []
