"""`agentd plan` with the real CLIs, on a model that plays a script: what was asked of it when, and what came of it."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change, document_hash
from agentd.domain import events
from agentd.domain.terms import StepStatus
from agentd.engine.tools.tool_table import tools_of
from agentd.project.layout import find_project
from loopback import plans
from loopback.model import Call, Model, Request, Turn
from loopback.plans import CONTEXT, Step, begins, heard, seat, sessions, turns_of
from plans import EXAMPLE, SIGN_IN
from playbooks import PASS
from program import AGENTD, PATIENCE, Program
from prompt_cases import FOLDER, stage_of
from scenario import PLAY, Scenario, journal_of

NO_LOOKS = "self_review_iterations = 0"
FIRST_WORDS = {
    "proposal-gen": "Write the proposal of the change `add-oauth`",
    "proposal-review": "Review the proposal of the change `add-oauth`",
    "spec-gen-user-model": "Write the spec `user-model` of the change `add-oauth`, number 1 of ",
    "spec-review-user-model": "Review the spec `user-model` of the change `add-oauth`, number 1 of ",
    "spec-gen-auth-flow": "Write the spec `auth-flow` of the change `add-oauth`, number 2 of 3",
    "spec-review-auth-flow": "Review the spec `auth-flow` of the change `add-oauth`, number 2 of 3",
    "spec-gen-api-endpoints": "Write the spec `api-endpoints` of the change `add-oauth`, number 3 of 3",
    "spec-review-api-endpoints": "Review the spec `api-endpoints` of the change `add-oauth`, number 3 of 3",
    "tasks-gen": "Write the tasks of the change `add-oauth`",
    "tasks-review": "Review the tasks of the change `add-oauth`",
    "plan-gen": "Write the whole plan of the change `add-oauth`",
    "plan-review": "Review the plan of the change `add-oauth`",
    "format-fix": "Fix the format of the documents of the change `add-oauth`",
    "challenge": "Challenge the plan of the change `add-oauth`: round 1",
}

# A sentence of each document, as nobody else says it.
ANSWERS = "Long enough for daily work, short enough for a shared computer."
SENTENCES = {
    CONTEXT: ANSWERS,
    plans.JUDGES: ANSWERS,
    plans.PROPOSAL: "Today one shared token in the query string opens every notebook.",
    plans.SPECS[0]: "otherwise the sign-in is refused when that `email` is taken.",
    plans.SPECS[1]: "The service keeps no passwords.",
    plans.SPECS[2]: "A provider other than `google` and `github` is answered with 404.",
    plans.TASKS: "a refusal by the provider included.",
    plans.MAIN: "The HTTP interface of the notes service.",
}
FOR_AGENTS = "Notes are never deleted, only hidden."
FOR_GEMINI = "This project counts in dozens."
FOREIGN = "The other change paints everything green."
ABOVE = "These words lie above the project."


def the_change() -> Change:
    return lifecycle.open_change(find_project(), "add-oauth")


def named(request: Request) -> list[str]:
    """The steps whose prompt is in it."""
    words = heard(request)
    return [name for name, start in FIRST_WORDS.items() if start in words]


def steps_of(change: Change) -> list[tuple[str, int, str]]:
    return [(step.name, step.attempt, str(step.status)) for step in change.read().steps if step.name != "clarify"]


def put_others_there(box: Scenario) -> None:
    """What no step of this change may hear: another change, and files above the project."""
    for name in ("GEMINI.md", "AGENTS.md", "proposal.md", "STATE.yaml"):
        box.write(f"agentd/changes/other/{name}", f"{FOREIGN}\n")
    above = box.root.parent
    (above / ".gemini").mkdir()  # as in a home
    for name in ("GEMINI.md", "AGENTS.md", "CLAUDE.md"):
        (above / name).write_text(f"{ABOVE}\n")


# ---- a whole plan


def test_three_dependent_specs_including_a_delta_are_planned_and_approved(project: Scenario, model: Model) -> None:
    steps = plans.three_specs()
    project.write("AGENTS.md", f"{FOR_AGENTS}\n")
    project.write("GEMINI.md", f"{FOR_GEMINI}\n")
    log = seat(project, model, turns_of(*steps[:-1]), turns_of(steps[-1]))
    put_others_there(project)
    project.write(f"{FOLDER}/clarifications.md", (EXAMPLE / "clarifications.md").read_text())
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    change = the_change()
    _check_what_was_asked(steps, log)
    _check_what_was_written(change, steps)
    _check_what_was_counted(change, steps, ran.json)
    _check_the_sessions(project, change, log)


def _check_what_was_asked(steps: list[Step], log: list[Request]) -> None:
    """The steps in their order, each in a session of its own, with what it has to know once and nothing else."""
    found = sessions(log)
    assert [named(one[0]) for one in found] == [[step.name] for step in steps]
    for step, requests in zip(steps, found, strict=True):
        cli = "codex" if step.name == "challenge" else "gemini"
        assert len(requests) == len(step.turns), step
        _check_names(step, cli, heard(requests[0]))
        last = heard(requests[-1])
        known = {path: last.count(sentence) for path, sentence in SENTENCES.items()}
        assert [path for path in step.reads if known[path] != 1] == []
        assert max(known.values()) == 1, step
        assert (last.count(FOR_AGENTS), FOREIGN in last, ABOVE in last) == (1, False, False), step
        assert last.count(FOR_GEMINI) == (cli == "gemini"), step
        assert last.count(SIGN_IN) == 1


def _check_names(step: Step, cli: str, prompt: str) -> None:
    """The prompt calls tools as the CLI does, and sends the agent to the files that the model then read."""
    plain = "|".join(tool.name for tool in tools_of(stage_of(step.name)))
    called = re.findall(rf"\w*(?:{plain})\b", prompt)
    assert called and all(name.startswith(plans.PREFIXES[cli]) for name in called), step
    paths = [path for path in re.findall(r"`(agentd/[^`<>]+\.md)`", prompt) if path in step.reads]
    assert set(paths) == set(step.reads) - ({plans.MAIN} if step.name == "challenge" else set())


def _check_what_was_written(change: Change, steps: list[Step]) -> None:
    state = change.read()
    assert str(state.phase) == "challenged"
    assert steps_of(change) == [(step.name, 1, "done") for step in steps]
    assert [str(step.status) for step in state.steps if step.name == "clarify"] == ["skipped"]
    for row in state.steps:
        for name, digest in row.outputs.items():
            assert document_hash(change.folder / name) == digest, row
    for path, sentence in SENTENCES.items():
        assert sentence in Path(path).read_text()
    assert (change.folder / "base/api-endpoints.md").read_bytes() == Path(plans.MAIN).read_bytes()
    assert "base_version: 3" in Path(plans.SPECS[2]).read_text()
    page = (change.folder / "CHALLENGE.md").read_text()
    assert "codex" in page and "gemini" in page and "APPROVED" in page


def _check_what_was_counted(change: Change, steps: list[Step], result: Any) -> None:
    state = change.read()
    expected, cost = [], 0.0
    for step in steps:
        agent, role = ("codex", "challenger") if step.name == "challenge" else ("gemini", "planner")
        expected.append((step.name, agent, role, *step.usage, plans.price(agent, step)))
        cost += plans.price(agent, step)
    calls = [
        (call.step, call.agent, call.role, call.tokens_in, call.tokens_out, call.tokens_cached, call.cost)
        for call in state.llm_calls
    ]
    assert calls == expected
    assert state.total_cost == result["cost"]["change"] == result["cost"]["run"] == round(cost, 6)
    sums = [sum(step.usage[place] for step in steps) for place in range(3)]
    assert result["tokens"] == dict(zip(("in", "out", "cached"), sums, strict=True))
    assert (result["phase"], result["verdict"], result["exit_code"]) == ("challenged", "APPROVED", 0)


def _check_the_sessions(box: Scenario, change: Change, log: list[Request]) -> None:
    """The planner's is the one in which the proposal was written; each call had its own."""
    state = change.read()
    kept = {json.loads(path.read_text().partition("\n")[0])["sessionId"]: path for path in _chats(box)}
    used = [call.session for call in state.llm_calls]
    assert len(set(used)) == len(used)
    assert set(used[:-1]) == set(kept)
    assert state.session_id == used[0]
    assert FIRST_WORDS["proposal-gen"] in kept[state.session_id or ""].read_text()
    assert used[-1] == change.records()[0].session
    assert log[-1].headers["session-id"] == used[-1]


def _chats(box: Scenario) -> list[Path]:
    return sorted((box.home / ".gemini/tmp").glob("*/chats/*.jsonl"))


# ---- others in the seats


@pytest.mark.parametrize(("who", "guide"), [(("gemini", "claude"), "GEMINI.md"), (("claude", "codex"), "CLAUDE.md")])
def test_project_instructions_are_passed_once_with_other_role_assignments(
    project: Scenario, model: Model, who: tuple[str, str], guide: str
) -> None:
    steps = plans.without_specs()
    project.write(guide, f"{FOR_AGENTS}\n")
    log = seat(project, model, turns_of(*steps[:-1]), turns_of(steps[-1]), who, NO_LOOKS)
    put_others_there(project)
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    change = the_change()
    found = sessions(log)
    assert [named(one[0]) for one in found] == [[step.name] for step in steps]
    for step, requests in zip(steps, found, strict=True):
        _check_names(step, who[step.name == "challenge"], heard(requests[0]))
        last = heard(requests[-1])
        assert (last.count(FOR_AGENTS), FOREIGN in last, ABOVE in last) == (1, False, False), step
    usage = [(call.agent, call.tokens_in, call.tokens_out, call.tokens_cached) for call in change.read().llm_calls]
    assert usage == [(who[step.name == "challenge"], *step.usage) for step in steps]
    assert all(call.cost for call in change.read().llm_calls)
    assert "No specs required for this change" in [one.message for one in journal_of(change, events.NoticeIssued)]
    page = (change.folder / "CHALLENGE.md").read_text()
    assert all(name in page for name in who)
    if "claude" in who:
        mine = next(one for one in found if "metadata" in one[0].body)[0].body["metadata"]["user_id"]
        session = change.read().session_id if who[0] == "claude" else change.records()[0].session
        assert session and session in mine


# ---- sessions that are resumed


def test_format_fix_continues_the_planners_session(project: Scenario, model: Model) -> None:
    wrong = plans.propose(affected_specs=[])
    wrong = Call(wrong.tool, {**wrong.arguments, "why": "TODO: say why."})
    mending = Call("edit_file", {"path": "proposal.md", "old_text": "TODO: say why.", "new_text": "Tokens leak."})
    generating, breaking, challenging = plans.without_specs()
    steps = [
        replace(generating, calls=(wrong,), says="It is written."),
        Step("format-fix", calls=(mending,)),
        breaking,
    ]
    strict = '[validation.severity]\nplaceholder = "high"\n'
    log = seat(project, model, turns_of(*steps), turns_of(challenging), workflow=NO_LOOKS, more=strict)
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    fixing = next(request for request in log if "format-fix" in named(request))
    words = heard(fixing)
    assert named(fixing) == ["proposal-gen", "format-fix"]
    assert "It is written." in words and "TODO: say why." in words
    assert "placeholder" in words.partition(FIRST_WORDS["format-fix"])[2]
    assert not begins(fixing)
    calls = the_change().read().llm_calls
    assert [call.step for call in calls] == ["proposal-gen", "format-fix", "tasks-gen", "challenge"]
    assert calls[0].session == calls[1].session != calls[2].session
    assert (calls[1].tokens_in, calls[1].tokens_out) == steps[1].usage[:2]
    assert "Tokens leak." in (project.root / plans.PROPOSAL).read_text()


def test_automated_mode_writes_and_reviews_in_one_session(project: Scenario, model: Model) -> None:
    proposing, breaking, challenging = plans.without_specs()
    writing = Step("plan-gen", (CONTEXT,), (*proposing.calls, *breaking.calls), says="All is written.")
    looking = Step("plan-review", says=f"I looked.\n\n{PASS}")
    log = seat(project, model, turns_of(writing, looking), turns_of(challenging), workflow="human_in_loop = false")
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    found = sessions(log)
    assert [len(one) for one in found] == [len(writing.turns) + 1, len(challenging.turns)]
    assert named(found[0][0]) == ["plan-gen"]
    assert named(found[0][-1]) == ["plan-gen", "plan-review"]
    assert "All is written." in heard(found[0][-1])
    change = the_change()
    assert steps_of(change) == [(name, 1, "done") for name in ("plan-gen", "plan-review", "challenge")]
    calls = change.read().llm_calls
    assert calls[0].session == calls[1].session == change.read().session_id
    assert [(call.tokens_in, call.tokens_out, call.tokens_cached) for call in calls[:2]] == [
        writing.usage,
        looking.usage,
    ]


# ---- killed


def until(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < seconds, "it did not happen"
        time.sleep(0.02)


def killed_while_asked(box: Scenario, log: list[Request], count: int) -> None:
    """The command, killed with -9 when the model has been asked so often in all and keeps silent."""
    argv = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--json"]
    with Program(argv, cwd=box.root, env=box.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as ran:
        until(lambda: len(log) >= count or ran.poll() is not None)
        assert ran.poll() is None, "it ended before it could be killed"
        os.kill(ran.pid, signal.SIGKILL)
    until(lambda: the_change().active_run() is None)


def one_spec() -> list[Step]:
    small = plans.propose(scope="minor", affected_specs=["user-model"])
    return [
        Step("proposal-gen", (CONTEXT,), (small,)),
        Step("spec-gen-user-model", (CONTEXT, plans.PROPOSAL), (plans.write_spec("user-model"),)),
        Step("tasks-gen", (CONTEXT, plans.PROPOSAL, plans.SPECS[0]), (plans.break_down(2),)),
        Step("challenge", (plans.JUDGES,), (plans.report(),)),
    ]


def outcome(box: Scenario, result: Any) -> tuple[Any, dict[str, str]]:
    """What a plan came to, but for times, sessions and money."""
    folder = box.root / FOLDER
    texts = {path.name: path.read_text() for path in folder.rglob("*.md")}
    journal_of = {name: result[name] for name in ("phase", "verdict", "round", "message", "findings", "files", "next")}
    return journal_of, {name: re.sub(r"\d{4}-\d\d-\d\d(T[\d:]+Z)?", "then", text) for name, text in texts.items()}


def test_plan_killed_at_three_points_gives_the_same_result(
    project: Scenario, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = one_spec()
    proposing, specifying, breaking, challenging = (step.turns for step in steps)
    silent = Turn(hang=True)
    planner = [*proposing[:-1], silent, *proposing, specifying[0], silent, *specifying, *breaking]
    judge = [*challenging[:-1], silent, *challenging]
    log = seat(project, model, planner, judge, workflow=NO_LOOKS)
    killed_while_asked(project, log, len(proposing))
    assert (project.root / plans.PROPOSAL).is_file(), "the tool has run"
    count = len(log) + len(proposing) + 2
    killed_while_asked(project, log, count)
    killed_while_asked(project, log, count + len([*specifying, *breaking, *challenging]))
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    asked = [names for request in log if begins(request) for names in named(request)]
    twice = ("proposal-gen", "spec-gen-user-model", "challenge")
    assert asked == [step.name for step in steps for _ in range(1 + (step.name in twice))]
    rows = [(step.name, attempt) for step in steps for attempt in range(1, 2 + (step.name in twice))]
    assert [row[:2] for row in steps_of(the_change())] == rows
    done = [step.name for step in the_change().read().steps if step.status is StepStatus.DONE]
    assert done == [step.name for step in steps]
    wrote = [word for request in log for word in re.findall(r'"revised": ?(\w+)', heard(request))]
    assert set(wrote) == {"false"}, "what a killed step wrote was taken back before it was done again"
    found = outcome(project, ran.json)

    other = Scenario(tmp_path / "elsewhere" / project.root.name, project.home)
    other.write("README.md", "notes\n")
    monkeypatch.chdir(other.root)
    other.write("agentd/config.toml", "schema_version = 1\n")
    seat(other, model, turns_of(*steps[:-1]), turns_of(steps[-1]), workflow=NO_LOOKS)
    straight = other.run("plan", "--json")
    assert straight.code == 0, straight.out + straight.err
    assert outcome(other, straight.json) == found


# ---- words that are not what they seem


def test_marker_that_appears_only_in_the_prompt_is_not_an_answer(project: Scenario, model: Model) -> None:
    """Gemini tells the whole prompt in its stream."""
    proposing, breaking, _ = plans.without_specs()
    writing = Step("plan-gen", (CONTEXT,), (*proposing.calls, *breaking.calls))
    planner = turns_of(writing, Step("plan-review", says="I looked, and all is well."))
    log = seat(project, model, planner, [Turn(text="Never asked.")], workflow="human_in_loop = false")
    ran = project.agentd("proposal", "add-oauth", SIGN_IN, "--skip-clarify", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert PASS in heard(log[-1]).partition(FIRST_WORDS["plan-review"])[2]
    change = the_change()
    warned = [(one.step, one.code) for one in journal_of(change, events.WarningIssued)]
    assert warned == [("plan-review", "review-marker")]
    ended = {one.step: one.message for one in journal_of(change, events.StepFinished)}
    assert ended["plan-review"] == "Review 1: PASS"


@pytest.mark.parametrize(("words", "code"), [("", 4), ("I find it rather good.", 1)])
def test_judge_without_a_report_is_reminded_once_and_never_passes(
    project: Scenario, model: Model, words: str, code: int
) -> None:
    proposing, breaking, challenging = plans.without_specs()
    actions = [{"call": call.tool, "with": dict(call.arguments)} for call in (*proposing.calls, *breaking.calls)]
    project.write("playbook.json", json.dumps({"steps": {"plan-gen": actions}}))
    silent = [challenging.turns[0], Turn(text=words)]
    log = seat(project, model, [], [*silent, *silent], ("play", "codex"), f"human_in_loop = false\n{NO_LOOKS}", PLAY)
    ran = project.run("plan", "--json")
    assert ran.code == code, ran.out + ran.err
    found = sessions(log)
    assert [named(one[0]) for one in found] == [["challenge"], ["challenge"]]
    reminded = ["This step is not done yet: You have not reported yet." in heard(one[0]) for one in found]
    assert reminded == [False, True]
    change = the_change()
    assert str(change.read().phase) == "proposed"
    assert steps_of(change)[-2:] == [("challenge", 1, "failed"), ("challenge", 2, "failed")]
    assert not (change.folder / "CHALLENGE.md").exists()
