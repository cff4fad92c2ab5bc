"""Between two runs of a plan: what a cut agent wrote is taken back, what a person wrote stays and counts."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from agentd.change.folder import document_hash, read_state
from agentd.documents import records
from agentd.terms import Phase
from felling import SPEC, at_work_in, begun, called, calls, edit, endless, fell, fell_at_write, go_on, journal, until
from plays import PASS, call, finding, folder, plan, small_plan, stage, verdict
from support import Box
from working import Action, say, usage

STEP = "spec-gen-user-model"
BARE = "self_review_iterations = 0\n"  # not what is shown here
ONE_ROUND = "planning_iterations = 0\n"  # the planner answers nothing by itself
WORDS = "A person's own words."

pytestmark = pytest.mark.usefixtures("project")


def cut_in(box: Box, step: str, more: dict[str, list[Action]]) -> None:
    """The first attempt at that step does its work, and is killed before it ends."""
    stage(box, endless(small_plan(), step) | more, workflow=BARE)
    fell(box, **at_work_in(step))


def put(box: Box, name: str, old: str, new: str) -> None:
    """A person's edit."""
    path = box.root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_the_cut_agent_wrote_is_gone_when_its_step_begins_again(project: Box) -> None:
    into_nothing = edit("A user is one person.", "A user is somebody.") | {"refused": True}
    cut_in(project, STEP, {f"{STEP}/1/2": [into_nothing, *small_plan()[STEP]]})
    assert (project.root / SPEC).exists()
    go_on(project)
    assert "A user is one person." in (project.root / SPEC).read_text()


def test_a_cut_look_leaves_the_document_as_it_was_before_it(project: Box) -> None:
    better = edit("A user is one person.", "A user is one living person.")
    look = {"spec-review-user-model": [better, say(PASS)]}
    stage(project, endless(small_plan() | look, "spec-review-user-model"))
    fell(project, **at_work_in("spec-review-user-model"))
    assert "living" in (project.root / SPEC).read_text()
    go_on(project)  # the same edit again would find no such words
    assert (project.root / SPEC).read_text().count("living") == 1


def test_a_persons_edit_of_what_the_cut_agent_wrote_stays(project: Box) -> None:
    other = edit("A user has one or more identities;", "A user has identities;")
    cut_in(project, STEP, {f"{STEP}/1/2": [other, usage(0.01), say("Mended.")]})
    put(project, SPEC, "A user is one person.", WORDS)
    go_on(project)
    text = (project.root / SPEC).read_text()
    assert f"{WORDS} A user has identities;" in text


def test_the_planner_is_told_of_a_document_that_a_person_has_worked_on_and_may_leave_it(project: Box) -> None:
    told = [
        {"expect": f"{SPEC}` is there already: a person has worked on it"},
        usage(0.01),
        say("It is right as it is."),
    ]
    cut_in(project, STEP, {f"{STEP}/1/2": told})
    put(project, SPEC, "A user is one person.", WORDS)
    go_on(project)
    assert WORDS in (project.root / SPEC).read_text()


def test_a_persons_edit_of_a_finished_document_stays_and_its_form_is_mended(project: Box) -> None:
    """No maker runs again."""
    name = "agentd/changes/add-oauth/proposal.md"
    mend = call("edit_file", path=name, old_text="## Reason", new_text="## Why")
    cut_in(project, STEP, {"format-fix": [mend, usage(0.01), say("Mended.")]})
    put(project, name, "## Why\n\n", f"## Reason\n\n{WORDS}\n\n")
    told = len(journal(project))
    go_on(project)
    assert f"## Why\n\n{WORDS}\n\n" in (project.root / name).read_text()
    assert called(journal(project)[told:]) == ["format-fix", STEP, "tasks-gen", "challenge"]


def test_an_edit_after_the_challenger_was_cut_off_is_what_is_judged(project: Box) -> None:
    cut_in(project, "challenge", {})
    put(project, SPEC, "A user is one person.", WORDS)
    go_on(project)
    assert WORDS in (project.root / SPEC).read_text()
    (record,) = records_of(project)
    assert record.judged["specs/user-model.md"] == document_hash(project.root / SPEC)
    assert record.findings == (), "it is nobody's trespass"


def records_of(box: Box) -> list[records.Record]:
    paths = sorted((folder(box) / "reviews").glob("*.yaml"))
    return [records.parse(path.read_text(), path.name) for path in paths]


# ---- a plan that was judged


def _sent_back() -> dict[str, list[Action]]:
    steps = small_plan()
    steps["challenge/1"] = verdict("NEEDS_REVISION", finding())
    fixed = [{"id": "C1", "state": "fixed", "note": "It holds now."}]
    return steps | {"challenge/2": verdict("APPROVED", previous=fixed)}


@pytest.fixture
def sent_back(project: Box) -> Box:
    """A plan whose challenge asked for a change."""
    stage(project, _sent_back(), workflow=BARE + ONE_ROUND)
    ran = plan(project)
    assert ran.code == 1 and "NEEDS_REVISION" in ran.out
    return project


def test_a_judged_plan_is_not_judged_again(sent_back: Box) -> None:
    told, before = len(journal(sent_back)), read_state(folder(sent_back))
    assert plan(sent_back).code == 1
    assert called(journal(sent_back)[told:]) == []
    after = read_state(folder(sent_back))
    assert (after.steps, after.history, after.llm_calls) == (before.steps, before.history, before.llm_calls)


def test_an_edited_plan_is_challenged_again_in_a_new_round(sent_back: Box) -> None:
    put(sent_back, SPEC, "A user is one person.", WORDS)
    told = len(journal(sent_back))
    assert plan(sent_back).code == 0
    assert calls(journal(sent_back)[told:]) == [("challenge", 2, 1)]
    state = read_state(folder(sent_back))
    assert (state.phase, state.round) == (Phase.CHALLENGED, 2)
    assert [one.event for one in state.history][-2:] == ["challenge-needs-revision", "challenge-approved"]
    assert state.history[-1].hashes["specs/user-model.md"] == document_hash(sent_back.root / SPEC)
    assert [record.round for record in records_of(sent_back)] == [1, 2]
    assert plan(sent_back).code == 0
    assert len(calls(journal(sent_back)[told:])) == 1, "planning is complete"


def test_the_record_of_a_second_round_is_finished_under_its_own_attempt(project: Box) -> None:
    """However many the first round took."""
    stage(project, _sent_back() | {"challenge/1/1": [{"fault": "server-error"}]}, workflow=BARE + ONE_ROUND)
    assert plan(project).code == 1
    put(project, SPEC, "A user is one person.", WORDS)
    assert fell_at_write(project, "after", 1, folder(project) / "reviews")
    go_on(project)
    rows = [one for one in read_state(folder(project)).steps if one.name == "challenge"]
    assert [(one.round, one.attempt, one.status) for one in rows] == [
        (1, 1, "failed"),
        (1, 2, "done"),
        (2, 1, "done"),
    ]


# ---- interrupted


def by_key(box: Box, pid: int) -> None:
    """As a terminal does it: the whole group."""
    os.killpg(pid, signal.SIGINT)


def by_command(box: Box, pid: int) -> None:
    ran = box.agentd("stop", "add-oauth")
    assert ran.code == 0
    assert "Next    agentd plan add-oauth" in ran.out


@pytest.mark.parametrize("interrupt", [by_key, by_command])
def test_an_interrupted_step_takes_its_document_back_at_once(
    interrupt: Callable[[Box, int], None], project: Box
) -> None:
    stage(project, endless(small_plan(), STEP), workflow=BARE)
    with begun(project) as program:
        until(program, **at_work_in(STEP))
        assert (project.root / SPEC).exists()
        interrupt(project, program.pid)
        said, _ = program.communicate()
    assert program.returncode == 130
    last = json.loads(said.splitlines()[-1])
    assert last["exit_code"] == 130
    assert last["error"]["hint"].startswith("to go on: agentd plan add-oauth")
    assert not (project.root / SPEC).exists()
    assert (folder(project) / "proposal.md").exists()
    assert f"Steps     1 skipped, 1 done, 1 interrupted; last {STEP}" in project.agentd("status", "add-oauth").out
    go_on(project)
    assert called(journal(project)) == ["proposal-gen", STEP, STEP, "tasks-gen", "challenge"]
    assert (project.root / SPEC).exists()
    assert "Steps     1 skipped, 4 done; last challenge" in project.agentd("status", "add-oauth").out
