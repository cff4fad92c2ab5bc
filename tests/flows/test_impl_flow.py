"""`agentd impl` from an approved plan to complete code: what is proved, what is recorded, when it stops."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from agentd.change.folder import document_hash
from agentd.change.lifecycle import open_change
from agentd.domain import events, yaml12
from agentd.project.layout import find_project
from plans import BAD_CODE, EXAMPLE, GREETING_TASKS
from playbooks import APPROVED, NEEDS_CHANGES, Action, answer, edit, finding, implement, report, say, usage
from scenario import CHECK, Result, Scenario, journal_of

MEND = edit("greeting.py", "{name}", "{name or 'world'}")
MENDED = [MEND, usage(0.02), say("Mended.")]
FAILED = ("check:tests", "high", "Required check failed: tests")
OVERRULED = "The required check tests failed, so the verdict is NEEDS_CHANGES."


def warned(box: Scenario) -> list[str]:
    change = open_change(find_project(str(box.root)), "greet")
    return [one.code for one in journal_of(change, events.WarningIssued)]


def skeleton(text: str) -> list[str]:
    """Headings and labels, whatever they say."""
    text = re.sub(r"```text\n.*?```", "```text", text, flags=re.DOTALL)
    lines = (re.match(r"#+ \S+|- \*\*.+?\*\*|\*\*\w+\*\*|---|```\w*|\w+:", line) for line in text.splitlines())
    return [line[0] for line in lines if line]


# ---- the way through


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scenario, Result]]:
    """The first code fails a test, the reviewer approves all the same; it is mended, and approved again."""
    place = tmp_path_factory.mktemp("impl")
    with Scenario(place / "notes-service", place / "home").with_project().entered() as box:
        steps = {
            "implement-greeting": implement(BAD_CODE),
            "review/1": report(),
            "resolve/2": [MEND, answer("V1"), usage(0.02), say("Mended.")],
        }
        box.greeting_approved(steps)
        yield box, box.run("impl", "--json")


def test_failing_code_is_not_complete_until_it_is_fixed(done: tuple[Scenario, Result]) -> None:
    box, end = done
    assert end.code == 0, end.out + end.err
    said = end.json
    assert (said["phase"], said["verdict"], said["round"]) == ("complete", "APPROVED", 2)
    assert said["message"] == "APPROVED - Complete, ready to archive!"
    assert (said["next"], said["decision_needed"], said["exit_code"]) == ("agentd archive greet", None, 0)
    assert said["findings"] == {"open": {"high": 0, "medium": 0, "low": 0}, "list": []}
    assert said["cost"]["run"] == 0.22 and said["files"][-1] == "agentd/changes/greet/reviews/review-2.yaml"
    assert box.finished_steps() == ["implement-greeting", "review", "resolve", "review"]


def test_failed_check_overrules_the_first_approval(done: tuple[Scenario, Result]) -> None:
    box, _ = done
    first = box.review_record()
    assert (first["reported"], first["verdict"], first["overruled"]) == ("APPROVED", "NEEDS_CHANGES", OVERRULED)
    assert box.review_findings() == [FAILED]
    row = first["checks"][0]
    assert (row["status"], row["exit_code"]) == ("failed", 1)
    assert row["counts"] == {"passed": 2, "failed": 1, "skipped": 0}
    assert row["failed_tests"] == ["tests.test_greeting.Greeting.test_nobody"]
    assert row["before"] == {"status": "passed", "failed_tests": []}
    assert row["tree"] == first["judged"]["tree"], "proved is what was judged"


def test_review_record_has_the_keys_of_the_contract_in_order(done: tuple[Scenario, Result]) -> None:
    example: dict[str, Any] = yaml12.load((EXAMPLE / "reviews/review-1.yaml").read_text())
    first = done[0].review_record()
    assert list(first) == list(example)
    assert list(first["judged"]) == list(example["judged"])
    assert list(first["checks"][0]) == list(example["checks"][0])
    assert list(first["findings"][0]) == list(example["findings"][0])
    assert first["findings"][0]["evidence"]["check"] == "tests" and first["findings"][0]["where"] == "check tests"


def test_check_finding_is_closed_by_agentd_when_the_check_passes(done: tuple[Scenario, Result]) -> None:
    box, _ = done
    assert [(one["id"], one["answer"], one["files"]) for one in box.review_record()["answers"]] == [
        ("V1", "fixed", ["greeting.py"])
    ]
    (word,) = box.review_record(2)["previous"]
    assert (word["id"], word["answer"], word["state"]) == ("V1", "fixed", "fixed")
    assert word["note"] == "agentd: the check does not fail any more."
    assert box.review_findings(2) == []


def test_completed_tasks_are_ticked_and_nothing_else_in_the_file_changes(done: tuple[Scenario, Result]) -> None:
    assert (done[0].folder / "tasks.md").read_text() == GREETING_TASKS.replace("status: pending", "status: done")


def test_base_and_reviewed_trees_are_kept_under_refs(done: tuple[Scenario, Result]) -> None:
    box, _ = done
    rows = [line.split() for line in box.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()]
    kept = {name.removeprefix("refs/agentd/greet/"): tree for name, tree in rows if name.startswith("refs/agentd/")}
    trees = {f"review-{number}": box.review_record(number)["judged"]["tree"] for number in (1, 2)}
    assert kept == {"base": box.review_record()["judged"]["base"], **trees}
    assert box.git("diff", "--name-only", kept["base"], kept["review-2"], "--", ":!agentd").split() == [
        "greeting.py",
        "tests/test_greeting.py",
    ]
    assert box.git("diff", "--cached", "--name-only") == "", "the index is a person's"


def test_state_records_every_step_and_transition(done: tuple[Scenario, Result]) -> None:
    found = done[0].state()
    rows = [(one.name, one.round, one.status) for one in found.steps]
    assert rows == [
        ("checks", 0, "done"),
        ("implement-greeting", 1, "done"),
        ("checks", 1, "done"),
        ("review", 1, "done"),
        ("resolve", 2, "done"),
        ("checks", 2, "done"),
        ("review", 2, "done"),
    ]
    moves = [(one.event, one.to, one.by) for one in found.history[2:]]
    assert moves == [
        ("implementation-started", "implementing", "agentd"),
        ("review-needs-changes", "implementing", "agent:play"),
        ("review-approved", "complete", "agent:play"),
    ]
    assert found.run is None and found.base.tree == done[0].review_record()["judged"]["base"]
    by = {"specs/greeting.md": document_hash(done[0].folder / "specs/greeting.md")}
    assert dict(found.history[-1].hashes) == {**done[0].review_record(2)["judged"], **by}
    assert [row["status"] for row in found.checks] == ["passed"]


def test_running_impl_again_on_complete_code_makes_no_call(done: tuple[Scenario, Result]) -> None:
    box, _ = done
    calls = len(box.state().llm_calls)
    again = box.run("impl")
    assert again.code == 0 and "greet is complete" in again.out and "agentd archive greet" in again.out
    assert "judged already, in round 2 on" in (journal_of := box.agentd("review", "greet").err)
    assert "UTC; agentd impl greet --review judges it again" in journal_of
    assert len(box.state().llm_calls) == calls


# ---- the page, and the rounds of a command


def failing(box: Scenario, workflow: str = "", **other: list[Action]) -> None:
    """The code fails its test; `resolve_2` is the answer of round 2."""
    more = {name.replace("_", "/"): actions for name, actions in other.items()}
    box.greeting_approved({"implement-greeting": implement(BAD_CODE), **more}, workflow=workflow)


def test_zero_rounds_stop_at_the_verdict_and_more_rounds_continue(project: Scenario) -> None:
    failing(project, resolve_2=MENDED)
    first = project.run("impl", "--rounds", "0", "--json")
    said = first.json
    assert (first.code, said["phase"], said["verdict"]) == (1, "implementing", "NEEDS_CHANGES")
    assert said["message"] == "NEEDS_CHANGES - Found 1 HIGH severity issues"
    assert said["next"] == "agentd impl greet"
    commands = [one["command"] for one in said["decision_needed"]["options"] if one["command"]]
    assert not any("--accept" in one for one in commands), "no acceptance goes over a failed check"
    assert "agentd impl greet --rounds 1" in commands
    page, example = (project.folder / "REVIEW.md").read_text(), (EXAMPLE / "REVIEW.md").read_text()
    lint, issues = example.index("### Check: lint"), example.index("## Issues")
    second, earlier = example.index("### V2"), example.index("## Earlier findings")
    wanted = example[:lint] + example[issues:second] + example[earlier:]
    assert skeleton(page) == skeleton(wanted)
    assert f"The judge reported APPROVED. {OVERRULED}" in page
    tree, base = project.review_record()["judged"]["tree"], project.review_record()["judged"]["base"]
    assert f"Tree {tree[:12]}, compared with {base[:12]}." in page
    assert (project.folder / "tasks.md").read_text() == GREETING_TASKS, "nothing is ticked before it is approved"
    second_run = project.run("impl", "--rounds", "1")
    assert second_run.code == 0, second_run.out
    assert project.finished_steps() == ["implement-greeting", "review", "resolve", "review"], "nothing was done twice"


def test_output_shows_open_findings_and_check_results(project: Scenario) -> None:
    failing(project)
    end = project.run("impl", "--rounds", "0")
    assert end.code == 1
    assert "NEEDS_CHANGES - Found 1 HIGH severity issues" in end.out + end.err
    text = end.out + end.err
    assert "V1" in text and "Required check failed: tests" in text and "agentd impl greet --rounds 1" in text
    assert re.search(r"tests.*failed", text), "a check's end is shown as it comes"


def test_rounds_are_limited_and_the_same_command_grants_more(project: Scenario) -> None:
    """Each round closes the finding before, so nothing but the limit ends it."""
    steps = {
        "implement-greeting": implement(),
        "resolve/2": [edit("greeting.py", "Greetings", "Words"), usage(0.02), say("So.")],
        "resolve/3": [edit("greeting.py", "Words", "Greetings"), usage(0.02), say("So.")],
        "review/1": report("NEEDS_CHANGES", finding("medium", "First")),
        "review/2": report("NEEDS_CHANGES", finding("medium", "Second"), previous=gone("V1")),
        "review/3": report(previous=gone("V2")),
    }
    project.greeting_approved(steps, more="", workflow="implementation_iterations = 1\n")
    first = project.run("impl")
    assert first.code == 1 and "rounds-used" in warned(project)
    assert "all rounds of this command are used; the same command grants 1 more" in first.err
    assert project.finished_steps()[1:] == ["review", "resolve", "review"]
    assert project.run("impl").code == 0
    assert project.finished_steps()[1:] == ["review", "resolve", "review", "resolve", "review"]


def gone(*ids: str) -> list[dict[str, str]]:
    return [{"id": id_, "state": "fixed", "note": "Seen."} for id_ in ids]


def test_round_that_closes_no_finding_is_the_last(project: Scenario) -> None:
    failing(project, resolve=[edit("greeting.py", "Greetings", "My greetings"), usage(0.02), say("All green now.")])
    end = project.run("impl")
    assert end.code == 1 and "round 2 closed no finding" in end.err
    assert project.finished_steps() == ["implement-greeting", "review", "resolve", "review"], (
        "one of two rounds was enough"
    )
    assert project.review_record(2)["previous"][0]["state"] == "open"
    assert [one["id"] for one in project.review_record(2)["findings"]] == [], "it keeps its id"


def test_major_issues_stop_and_the_next_command_resolves_them(project: Scenario) -> None:
    major = [usage(0.05), say("It is upside down.\n\n**Verdict**: MAJOR_ISSUES")]
    steps = {"implement-greeting": implement(), "review/1": major, "review/2": report(previous=gone("V1"))}
    project.greeting_approved(steps | {"resolve": [edit("greeting.py", "Greetings", "Upright greetings")]})
    first = project.run("impl", "--json")
    said = first.json
    assert (first.code, said["verdict"], said["phase"]) == (1, "MAJOR_ISSUES", "implementing")
    assert said["message"] == "MAJOR_ISSUES - Found 1 HIGH severity issues" and said["next"] == "agentd impl greet"
    assert project.finished_steps() == ["implement-greeting", "review"]
    assert project.run("impl").code == 0
    assert project.finished_steps()[2:] == ["resolve", "review"]


# ---- judged again


def test_complete_code_can_be_reviewed_again(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.run("impl").code == 0
    again = project.run("impl", "--review", "--json")
    assert (again.code, again.json["phase"], again.json["round"]) == (0, "complete", 2)
    project.replay({"review": NEEDS_CHANGES})
    back = project.run("impl", "--review", "--rounds", "0", "--json")
    assert (back.code, back.json["phase"], back.json["verdict"]) == (1, "implementing", "NEEDS_CHANGES")
    assert project.finished_steps() == ["implement-greeting", "review", "review", "review"]


def test_review_before_any_code_is_refused(project: Scenario) -> None:
    project.greeting_approved({})
    for words in (("impl", "greet", "--review"), ("review", "greet")):
        end = project.agentd(*words, "--json")
        assert end.code == 1
        assert (
            end.json["error"]["code"] == "change-not-ready" and "no code to review yet" in end.json["error"]["message"]
        )
        assert end.json["error"]["hint"] == "agentd impl greet"
    assert project.state().phase == "challenged" and not project.state().llm_calls


def test_missing_checks_are_warned_about(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(), "review": APPROVED}, more="")
    end = project.run("impl")
    assert end.code == 0
    assert "no checks are configured, so nothing verifies this code" in end.err and "no-checks" in warned(project)
    assert "**No checks are configured.**" in (project.folder / "REVIEW.md").read_text()
    assert project.review_record()["checks"] in ([], None)


def test_finished_checks_are_shown_and_emitted_as_events(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()}, CHECK + CHECK.replace('"tests"', '"again"'))
    end = project.run("impl", "--events")
    assert end.code == 0, end.out
    rows = [json.loads(line) for line in end.out.splitlines()]
    checks = [(one["round"], one["name"], one["status"]) for one in rows if one.get("type") == "check.finished"]
    assert checks == [(0, "tests", "passed"), (0, "again", "passed"), (1, "tests", "passed"), (1, "again", "passed")]
    assert rows[-1]["exit_code"] == 0 and rows[-1]["command"] == "impl", "the result is the last line"
