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


def test_what_an_acceptance_waived_is_wanted_again_when_the_code_is_sent_back(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": WITHOUT}, documents=UNTESTED)
    assert project.run("impl", "--rounds", "0").code == 1
    page = project.folder / "tasks.md"
    assert project.run("impl", "--accept", "Tests come later.").code == 0
    assert (page.read_text().count("status: done"), page.read_text().count("status: waived")) == (1, 1)
    assert project.state().waived == ("4.1",)
    assert project.run("impl", "--send-back", "They must come now.").code == 0
    assert (page.read_text().count("status: pending"), project.state().waived) == (1, ())


def test_what_a_person_waived_stays_waived(project: Scenario) -> None:
    plan = {**UNTESTED, "tasks.md": UNTESTED["tasks.md"].replace("status: pending", "status: waived", 1)}
    tests = [write("tests/test_greeting.py", "# none yet\n")]
    project.greeting_approved({"implement-greeting": tests, "review": NEEDS_CHANGES}, documents=plan)
    assert project.run("impl", "--rounds", "0").code == 1
    assert project.run("impl", "--accept", "Fine.").code == 0
    assert project.run("impl", "--send-back", "No.").code == 0
    assert (project.folder / "tasks.md").read_text().count("status: waived") == 1


def test_a_guards_finding_that_no_record_holds_stays_known_when_the_code_is_accepted(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": [*implement(), write("agentd/config.toml", "schema_version = 1\n")]}
    )
    assert project.agentd("implement", "greet").code == 0
    assert project.run("impl", "--accept", "It was put back.").code == 0
    (one,) = project.state().findings
    assert (one.state, one.severity) == ("accepted", "high") and "config.toml" in one.title
    assert project.agentd("status", "greet", "--json").json["findings"] == []


def test_code_that_is_edited_after_it_was_complete_is_told(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.run("impl").code == 0
    assert project.agentd("status", "greet", "--json").json["edited"] == []
    project.write("notes.txt", "somebody's own")
    project.write("greeting.py", GOOD_CODE + "# more\n")
    status = project.agentd("status", "greet")
    assert "greeting.py since the review; agentd impl greet --review judges it again" in " ".join(status.out.split())
    assert project.agentd("status", "greet", "--json").json["edited"] == ["greeting.py"]


def test_nothing_is_judged_where_nothing_was_made(project: Scenario) -> None:
    change = project.greeting_approved({}).change
    assert project.run("impl", "--tasks", "9.9").code == 2
    project.run("impl")  # its implementer does nothing, and fails
    assert project.state().phase == "implementing"
    refused = project.agentd("review", "greet", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "no code of greet has changed yet")
    assert change.records("review") == ()


@pytest.mark.parametrize("command", ["impl", "implement"])
def test_tasks_that_name_nothing_run_nothing(command: str, project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    refused = project.agentd(command, "greet", "--tasks", "", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (2, "--tasks names no task")
    assert not project.state().llm_calls


def test_while_it_runs_every_command_says_how_to_wait_for_it(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement()}).change
    with change.running("agentd impl greet") as held:
        change.update(lambda old: old, held.token)
        busy = project.run("impl", "--json")
        assert (busy.code, busy.json["error"]["hint"]) == (5, "agentd wait greet, or agentd stop greet")


def test_only_the_tasks_that_are_asked_for_are_announced(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": WITHOUT})
    shown = project.run("impl", "--tasks", "2.1", "--dry-run").out
    assert "task 2.1" in shown and "4.1" not in shown


def test_a_dry_run_of_a_review_names_what_would_be_paid(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    assert project.run("impl").code == 0
    shown = project.run("impl", "--review", "--dry-run", "--json")
    assert [one["step"] for one in shown.json["steps"]] == ["review"], shown.out


def test_from_another_branch_a_change_is_seen_as_its_last_run_left_it(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement()}).change
    project.git("switch", "-q", "-c", "agentd/greet")
    change.update(lambda old: replace(old, git=replace(old.git, branch="agentd/greet", target="main")))
    assert project.run("impl").code == 0
    project.commit("work")
    project.git("switch", "-q", "main")
    (row,) = project.agentd("list", "--json").json["changes"]
    assert (row["phase"], row["checked_out"]) == ("complete", False)


def test_a_check_that_is_gone_is_said_to_be_gone(project: Scenario) -> None:
    broken = '[[checks]]\nname = "lint"\ncommand = "exit 3"\nrequired = true\ntimeout = 60\n'
    project.greeting_approved({"implement-greeting": implement()}, broken)
    assert project.run("impl", "--rounds", "0").code == 1
    project.configure((project.root / "agentd/config.toml").read_text().replace(broken, ""))
    project.run("impl", "--review", "--rounds", "0")
    (one,) = project.review_record(2)["previous"]
    assert one["note"] == "agentd: there is no such check any more."
