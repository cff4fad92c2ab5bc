"""After the code: accepted and taken back, edited, looked at while it runs, and commands that have nothing to do."""

from dataclasses import replace

import pytest

from plans import GOOD_CODE, GREETING_DOCUMENTS, greeting_tasks, task
from playbooks import NEEDS_CHANGES, implement, write
from scenario import Scenario

WITHOUT = [write("greeting.py", GOOD_CODE)]
UNTESTED = {
    **GREETING_DOCUMENTS,
    "tasks.md": greeting_tasks(task("2.1", "greeting.py"), task("4.1", "tests/test_greeting.py")),
}


def test_tasks_waived_by_acceptance_are_pending_again_after_send_back(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": WITHOUT}, documents=UNTESTED)
    assert project.run("impl", "--rounds", "0").code == 1
    page = project.folder / "tasks.md"
    assert project.run("impl", "--accept", "Tests come later.").code == 0
    assert (page.read_text().count("status: done"), page.read_text().count("status: waived")) == (1, 1)
    assert project.state().waived == ("4.1",)
    assert project.run("impl", "--send-back", "They must come now.").code == 0
    assert (page.read_text().count("status: pending"), project.state().waived) == (1, ())


def test_task_waived_by_the_user_stays_waived(project: Scenario) -> None:
    plan = {**UNTESTED, "tasks.md": UNTESTED["tasks.md"].replace("status: pending", "status: waived", 1)}
    tests = [write("tests/test_greeting.py", "# none yet\n")]
    project.greeting_approved({"implement-greeting": tests, "review": NEEDS_CHANGES}, documents=plan)
    assert project.run("impl", "--rounds", "0").code == 1
    assert project.run("impl", "--accept", "Fine.").code == 0
    assert project.run("impl", "--send-back", "No.").code == 0
    assert (project.folder / "tasks.md").read_text().count("status: waived") == 1


def test_guard_finding_without_a_record_is_accepted_with_the_code(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": [*implement(), write("agentd/config.toml", "schema_version = 1\n")]}
    )
    assert project.agentd("implement", "greet").code == 0
    assert project.run("impl", "--accept", "It was put back.").code == 0
    (one,) = project.state().findings
    assert (one.state, one.severity) == ("accepted", "high") and "config.toml" in one.title
    assert project.agentd("status", "greet", "--json").json["findings"] == []


def test_code_edited_after_completion_is_reported(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.run("impl").code == 0
    assert project.agentd("status", "greet", "--json").json["edited"] == []
    project.write("notes.txt", "somebody's own")
    project.write("greeting.py", GOOD_CODE + "# more\n")
    status = project.agentd("status", "greet")
    assert "greeting.py since the review; run agentd impl greet --review to review again" in " ".join(
        status.out.split()
    )
    assert project.agentd("status", "greet", "--json").json["edited"] == ["greeting.py"]


def test_review_without_code_changes_is_refused(project: Scenario) -> None:
    change = project.greeting_approved({}).change
    assert project.run("impl", "--tasks", "9.9").code == 2
    project.run("impl")  # its implementer does nothing, and fails
    assert project.state().phase == "implementing"
    refused = project.agentd("review", "greet", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "no code of greet has changed yet")
    assert change.records("review") == ()


@pytest.mark.parametrize("command", ["impl", "implement"])
def test_empty_tasks_option_is_refused(command: str, project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    refused = project.agentd(command, "greet", "--tasks", "", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (2, "--tasks names no task")
    assert not project.state().llm_calls


def test_busy_change_error_says_how_to_wait(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement()}).change
    with change.running("agentd impl greet") as held:
        change.update(lambda old: old, held.token)
        busy = project.run("impl", "--json")
        assert (busy.code, busy.json["error"]["hint"]) == (5, "agentd wait greet, or agentd stop greet")


def test_dry_run_lists_only_the_selected_tasks(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": WITHOUT})
    shown = project.run("impl", "--tasks", "2.1", "--dry-run").out
    assert "task 2.1" in shown and "4.1" not in shown


def test_dry_run_of_a_review_lists_the_paid_steps(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.run("impl").code == 0
    shown = project.run("impl", "--review", "--dry-run", "--json")
    assert [one["step"] for one in shown.json["steps"]] == ["review"], shown.out


def test_change_on_another_branch_is_listed_as_its_last_run_left_it(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement()}).change
    project.git("switch", "-q", "-c", "agentd/greet")
    change.update(lambda old: replace(old, git=replace(old.git, branch="agentd/greet", target="main")))
    assert project.run("impl").code == 0
    project.commit("work")
    project.git("switch", "-q", "main")
    (row,) = project.agentd("list", "--json").json["changes"]
    assert (row["phase"], row["checked_out"]) == ("complete", False)


def test_finding_of_a_removed_check_says_that_the_check_is_gone(project: Scenario) -> None:
    broken = '[[checks]]\nname = "lint"\ncommand = "exit 3"\nrequired = true\ntimeout = 60\n'
    project.greeting_approved({"implement-greeting": implement()}, broken)
    assert project.run("impl", "--rounds", "0").code == 1
    project.configure((project.root / "agentd/config.toml").read_text().replace(broken, ""))
    project.run("impl", "--review", "--rounds", "0")
    (one,) = project.review_record(2)["previous"]
    assert one["note"] == "agentd: there is no such check any more."
