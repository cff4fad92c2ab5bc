"""Between two runs of a plan: what a cut agent wrote is taken back, what a person wrote stays and counts."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from agentd.change.folder import document_hash, read_state
from agentd.documents import records
from agentd.domain.terms import Phase
from crash import (
    SPEC_PATH,
    first_action_of,
    hang_in,
    journal_lines,
    kill_at_event,
    kill_at_write,
    resume,
    started,
    started_calls,
    started_names,
    wait_for_event,
)
from playbooks import PASS, Action, call, edit_spec_by_tool, finding, report, say, small_plan_steps, usage
from scenario import Scenario

STEP = "spec-gen-user-model"
BARE = "self_review_iterations = 0\n"  # not what is shown here
ONE_ROUND = "planning_iterations = 0\n"  # the planner answers nothing by itself
WORDS = "A person's own words."

pytestmark = pytest.mark.usefixtures("project")


def cut_in(box: Scenario, step: str, more: dict[str, list[Action]]) -> None:
    """The first attempt at that step does its work, and is killed before it ends."""
    box.with_agents(hang_in(small_plan_steps(), step) | more, workflow=BARE)
    kill_at_event(box, **first_action_of(step))


def put(box: Scenario, name: str, old: str, new: str) -> None:
    """A person's edit."""
    path = box.root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_document_of_an_interrupted_step_is_removed_before_the_retry(project: Scenario) -> None:
    into_nothing = edit_spec_by_tool("A user is one person.", "A user is somebody.") | {"refused": True}
    cut_in(project, STEP, {f"{STEP}/1/2": [into_nothing, *small_plan_steps()[STEP]]})
    assert (project.root / SPEC_PATH).exists()
    resume(project)
    assert "A user is one person." in (project.root / SPEC_PATH).read_text()


def test_interrupted_self_review_leaves_the_document_unchanged(project: Scenario) -> None:
    better = edit_spec_by_tool("A user is one person.", "A user is one living person.")
    look = {"spec-review-user-model": [better, say(PASS)]}
    project.with_agents(hang_in(small_plan_steps() | look, "spec-review-user-model"))
    kill_at_event(project, **first_action_of("spec-review-user-model"))
    assert "living" in (project.root / SPEC_PATH).read_text()
    resume(project)  # the same edit again would find no such words
    assert (project.root / SPEC_PATH).read_text().count("living") == 1


def test_users_edit_of_an_interrupted_agents_document_is_kept(project: Scenario) -> None:
    other = edit_spec_by_tool("A user has one or more identities;", "A user has identities;")
    cut_in(project, STEP, {f"{STEP}/1/2": [other, usage(0.01), say("Mended.")]})
    put(project, SPEC_PATH, "A user is one person.", WORDS)
    resume(project)
    text = (project.root / SPEC_PATH).read_text()
    assert f"{WORDS} A user has identities;" in text


def test_planner_is_told_about_a_document_edited_by_the_user(project: Scenario) -> None:
    told = [
        {"expect": f"{SPEC_PATH}` already exists: a person has worked on it"},
        usage(0.01),
        say("It is right as it is."),
    ]
    cut_in(project, STEP, {f"{STEP}/1/2": told})
    put(project, SPEC_PATH, "A user is one person.", WORDS)
    resume(project)
    assert WORDS in (project.root / SPEC_PATH).read_text()


def test_users_edit_of_a_finished_document_is_kept_and_its_format_fixed(project: Scenario) -> None:
    """No maker runs again."""
    name = "agentd/changes/add-oauth/proposal.md"
    mend = call("edit_file", path=name, old_text="## Reason", new_text="## Why")
    cut_in(project, STEP, {"format-fix": [mend, usage(0.01), say("Mended.")]})
    put(project, name, "## Why\n\n", f"## Reason\n\n{WORDS}\n\n")
    told = len(journal_lines(project))
    resume(project)
    assert f"## Why\n\n{WORDS}\n\n" in (project.root / name).read_text()
    assert started_names(journal_lines(project)[told:]) == ["format-fix", STEP, "tasks-gen", "challenge"]


def test_edit_after_an_interrupted_challenge_is_what_gets_judged(project: Scenario) -> None:
    cut_in(project, "challenge", {})
    put(project, SPEC_PATH, "A user is one person.", WORDS)
    resume(project)
    assert WORDS in (project.root / SPEC_PATH).read_text()
    (record,) = records_of(project)
    assert record.judged["specs/user-model.md"] == document_hash(project.root / SPEC_PATH)
    assert record.findings == (), "it is nobody's trespass"


def records_of(box: Scenario) -> list[records.ReviewRecord]:
    paths = sorted((box.folder / "reviews").glob("*.yaml"))
    return [records.parse_record(path.read_text(), path.name) for path in paths]


# ---- a plan that was judged


def _sent_back() -> dict[str, list[Action]]:
    steps = small_plan_steps()
    steps["challenge/1"] = report("NEEDS_REVISION", finding())
    fixed = [{"id": "C1", "state": "fixed", "note": "It holds now."}]
    return steps | {"challenge/2": report("APPROVED", previous=fixed)}


@pytest.fixture
def sent_back(project: Scenario) -> Scenario:
    """A plan whose challenge asked for a change."""
    project.with_agents(_sent_back(), workflow=BARE + ONE_ROUND)
    ran = project.run("plan")
    assert ran.code == 1 and "NEEDS_REVISION" in ran.out
    return project


def test_judged_plan_is_not_judged_again(sent_back: Scenario) -> None:
    told, before = len(journal_lines(sent_back)), read_state(sent_back.folder)
    assert sent_back.run("plan").code == 1
    assert started_names(journal_lines(sent_back)[told:]) == []
    after = read_state(sent_back.folder)
    assert (after.steps, after.history, after.llm_calls) == (before.steps, before.history, before.llm_calls)


def test_edited_plan_is_challenged_again_in_a_new_round(sent_back: Scenario) -> None:
    put(sent_back, SPEC_PATH, "A user is one person.", WORDS)
    told = len(journal_lines(sent_back))
    assert sent_back.run("plan").code == 0
    assert started_calls(journal_lines(sent_back)[told:]) == [("challenge", 2, 1)]
    state = read_state(sent_back.folder)
    assert (state.phase, state.round) == (Phase.CHALLENGED, 2)
    assert [one.event for one in state.history][-2:] == ["challenge-needs-revision", "challenge-approved"]
    assert state.history[-1].hashes["specs/user-model.md"] == document_hash(sent_back.root / SPEC_PATH)
    assert [record.round for record in records_of(sent_back)] == [1, 2]
    assert sent_back.run("plan").code == 0
    assert len(started_calls(journal_lines(sent_back)[told:])) == 1, "planning is complete"


def test_record_of_a_second_round_has_its_own_attempt(project: Scenario) -> None:
    """However many the first round took."""
    project.with_agents(_sent_back() | {"challenge/1/1": [{"fault": "server-error"}]}, workflow=BARE + ONE_ROUND)
    assert project.run("plan").code == 1
    put(project, SPEC_PATH, "A user is one person.", WORDS)
    assert kill_at_write(project, "after", 1, project.folder / "reviews")
    resume(project)
    rows = [one for one in read_state(project.folder).steps if one.name == "challenge"]
    assert [(one.round, one.attempt, one.status) for one in rows] == [
        (1, 1, "failed"),
        (1, 2, "done"),
        (2, 1, "done"),
    ]


# ---- interrupted


def by_key(box: Scenario, pid: int) -> None:
    """As a terminal does it: the whole group."""
    os.killpg(pid, signal.SIGINT)


def by_command(box: Scenario, pid: int) -> None:
    ran = box.agentd("stop", "add-oauth")
    assert ran.code == 0
    assert "Next    agentd plan add-oauth" in ran.out


@pytest.mark.parametrize("interrupt", [by_key, by_command])
def test_interrupted_step_removes_its_document_immediately(
    interrupt: Callable[[Scenario, int], None], project: Scenario
) -> None:
    project.with_agents(hang_in(small_plan_steps(), STEP), workflow=BARE)
    with started(project) as program:
        wait_for_event(program, **first_action_of(STEP))
        assert (project.root / SPEC_PATH).exists()
        interrupt(project, program.pid)
        said, _ = program.communicate()
    assert program.returncode == 130
    last = json.loads(said.splitlines()[-1])
    assert last["exit_code"] == 130
    assert last["error"]["hint"].startswith("to continue: agentd plan add-oauth")
    assert not (project.root / SPEC_PATH).exists()
    assert (project.folder / "proposal.md").exists()
    assert f"Steps     1 skipped, 1 done, 1 interrupted; last {STEP}" in project.agentd("status", "add-oauth").out
    resume(project)
    assert started_names(journal_lines(project)) == ["proposal-gen", STEP, STEP, "tasks-gen", "challenge"]
    assert (project.root / SPEC_PATH).exists()
    assert "Steps     1 skipped, 4 done; last challenge" in project.agentd("status", "add-oauth").out
