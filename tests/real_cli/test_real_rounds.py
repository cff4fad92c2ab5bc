"""Rounds with the real CLIs, on a model that plays a script: in whose session findings are answered, to what end."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentd.agents.transcript import list_transcripts
from agentd.change import lifecycle
from agentd.change.folder import Change, document_hash
from agentd.documents import review_blocks
from agentd.documents.records import current_findings
from agentd.domain import events
from agentd.project.layout import find_project
from loopback import plans
from loopback.model import Call, Model, Request
from loopback.plans import CONTEXT, JUDGES, PROPOSAL, TASKS, Step, begins, heard, turns_of
from playbooks import finding
from prompt_cases import FOLDER
from scenario import Scenario, journal_of

NO_LOOKS = "self_review_iterations = 0"
FIRST_WORDS = {
    "proposal-gen": "Write the proposal of the change `add-oauth`",
    "tasks-gen": "Write the tasks of the change `add-oauth`",
    "challenge 1": "Challenge the plan of the change `add-oauth`: round 1",
    "reproposal": "Answer the challenge of the change `add-oauth`",
    "challenge 2": "Challenge the plan of the change `add-oauth`: round 2",
}
# What the model says at the end of each step, as it says it nowhere else.
SAYS = {name: f"That was {name.replace(' ', ' number ')}." for name in FIRST_WORDS}
WHY = "Today one shared token in the query string opens every notebook."
MENDED = "Today one shared token, which ends up in logs, opens every notebook."
LEAK, SLOW = finding("high", "The token leaks"), finding("medium", "Signing in is slow", what="Nobody measured it.")
FIXED, WRONG = "The reason says where it leaks.", "It is one request, and nobody waits for it."
GONE, RIGHT = "The proposal names the logs.", "It is one request indeed."
LOST = "Session not found, please re-run proposal"


def two_rounds(*fresh: str) -> dict[str, Step]:
    """One finding fixed, one disputed and withdrawn; a fresh planner reads those files before it answers."""
    proposing, breaking, _ = plans.without_specs()
    first = plans.report(verdict="NEEDS_REVISION", findings=[LEAK, SLOW])
    mending = Call("edit_file", {"path": "proposal.md", "old_text": WHY, "new_text": MENDED})
    last = plans.report(
        previous=[{"id": "C1", "state": "fixed", "note": GONE}, {"id": "C2", "state": "withdrawn", "note": RIGHT}]
    )
    steps = {
        "proposal-gen": Step("proposal-gen", proposing.reads, proposing.calls),
        "tasks-gen": Step("tasks-gen", breaking.reads, breaking.calls),
        "challenge 1": Step("challenge", (JUDGES,), (first,)),
        "reproposal": Step(
            "reproposal", fresh or (PROPOSAL,), (mending, answer("C1", "fixed", FIXED), answer("C2", "disputed", WRONG))
        ),
        "challenge 2": Step("challenge", (JUDGES,), (last,)),
    }
    return {
        name: Step(step.name, step.reads, step.calls, SAYS[name], 1000 + 40 * number)
        for number, (name, step) in enumerate(steps.items())
    }


def answer(id_: str, word: str, note: str) -> Call:
    return Call("answer_finding", {"id": id_, "answer": word, "note": note})


def seat(box: Scenario, model: Model, steps: dict[str, Step], resume: str) -> list[Request]:
    """Gemini CLI plans, and is resumed in that way; Codex challenges."""
    planner = turns_of(*(step for name, step in steps.items() if "challenge" not in name))
    judge = turns_of(*(step for name, step in steps.items() if "challenge" in name))
    log = plans.seat(box, model, planner, judge, workflow=NO_LOOKS)
    text = (box.root / "agentd/config.toml").read_text()
    box.configure(text.replace("[agents.gemini]\n", f'[agents.gemini]\nresume = "{resume}"\n'))
    return log


def the_change() -> Change:
    return lifecycle.open_change(find_project(), "add-oauth")


def parts(log: Sequence[Request], steps: dict[str, Step]) -> dict[str, list[Request]]:
    """The requests of each step: the model was asked once for each of its turns."""
    left = list(log)
    found = {name: [left.pop(0) for _ in step.turns] for name, step in steps.items()}
    assert left == []
    return found


def prompts(request: Request) -> list[str]:
    """The steps whose prompt is in it."""
    return [name for name, words in FIRST_WORDS.items() if words in heard(request)]


def ends(request: Request) -> list[str]:
    """The steps whose last word is in it."""
    return [name for name, words in SAYS.items() if words in heard(request)]


# ---- in the planner's own session


@pytest.mark.parametrize("resume", ["auto", "index"])
def test_findings_are_answered_in_the_planners_session_and_settled_in_round_two(
    project: Scenario, model: Model, resume: str
) -> None:
    steps = two_rounds()
    log = seat(project, model, steps, resume)
    ran = project.run("plan", "--json")
    assert ran.code == 0, ran.out + ran.err
    change = the_change()
    asked = parts(log, steps)
    _check_whose_turns_the_planner_saw(asked)
    _check_the_judge_is_fresh(change, asked)
    _check_the_calls(change, steps, ran.json)
    _check_the_documents(change, ran.json)
    _check_how_it_was_resumed(change, resume)


def _check_whose_turns_the_planner_saw(asked: dict[str, list[Request]]) -> None:
    """In the resumed session stand the proposal's prompt, what was written then, and the last word about it."""
    for request in asked["reproposal"]:
        assert prompts(request) == ["proposal-gen", "reproposal"]
        assert ends(request) == ["proposal-gen"]
        assert not begins(request)
    earlier, _, new = heard(asked["reproposal"][0]).partition(FIRST_WORDS["reproposal"])
    assert "mcp_agentd_create_proposal" in earlier and WHY in earlier
    for one in (LEAK, SLOW):
        assert all(one[name] in new and one[name] not in earlier for name in ("title", "what"))
    assert "You have not seen this plan." not in new
    assert [begins(asked[name][0]) for name in ("proposal-gen", "tasks-gen")] == [True, True]


def _check_the_judge_is_fresh(change: Change, asked: dict[str, list[Request]]) -> None:
    """Two sessions of its own; the second one knows findings and answers from its context, not from the first."""
    for name, record in zip(("challenge 1", "challenge 2"), change.records(), strict=True):
        assert begins(asked[name][0])
        assert prompts(asked[name][-1]) == [name] and ends(asked[name][-1]) == []
        assert {request.headers["session-id"] for request in asked[name]} == {record.session}
    first, last = (record.session for record in change.records())
    assert first != last
    words = heard(asked["challenge 2"][-1])
    assert all(text in words for text in (LEAK["title"], SLOW["title"], FIXED, WRONG, MENDED))


def _check_the_calls(change: Change, steps: dict[str, Step], result: Any) -> None:
    """Each with its own tokens, also the one that went on in a session which had counted before."""
    state = change.read()
    who = {name: ("codex", "challenger") if "challenge" in name else ("gemini", "planner") for name in steps}
    expected = [(step.name, *who[name], *step.usage, plans.price(who[name][0], step)) for name, step in steps.items()]
    calls = state.llm_calls
    assert [
        (one.step, one.agent, one.role, one.tokens_in, one.tokens_out, one.tokens_cached, one.cost) for one in calls
    ] == expected
    assert state.total_cost == result["cost"]["change"] == round(sum(row[-1] for row in expected), 6)
    used = dict(zip(steps, (one.session for one in calls), strict=True))
    assert used["proposal-gen"] == used["reproposal"] == state.session_id == result["session_id"]
    assert len(set(used.values())) == len(used) - 1
    rows = [(row.name, row.round, row.attempt, str(row.status)) for row in state.steps if row.name != "clarify"]
    made = [(steps[name].name, 1 + (name in ("reproposal", "challenge 2"))) for name in steps]
    assert rows == [(name, round_, 1, "done") for name, round_ in made]


def _check_the_documents(change: Change, result: Any) -> None:
    _check_the_records(change)
    text = (change.folder / "proposal.md").read_text()
    assert MENDED in text and WHY not in text
    found = [(block.status, block.iteration, block.reviewer) for block in review_blocks.find_blocks(text)]
    assert [(status, iteration) for status, iteration, _ in found] == [("needs_revision", 1), ("approved", 2)]
    page = (change.folder / "CHALLENGE.md").read_text()
    assert all(words in page for words in ("APPROVED", FIXED, WRONG, GONE, RIGHT))
    state = change.read()
    moved = [(one.event, str(one.to), one.by) for one in state.history]
    assert moved == [
        ("plan-generated", "proposed", "agentd"),
        ("challenge-needs-revision", "proposed", "agent:codex"),
        ("challenge-approved", "challenged", "agent:codex"),
    ]
    assert (state.round, state.run, state.findings) == (2, None, ())
    journal_of = {name: result[name] for name in ("phase", "verdict", "round", "message", "decision_needed")}
    assert journal_of == {
        "phase": "challenged",
        "verdict": "APPROVED",
        "round": 2,
        "message": "APPROVED - Ready for implementation!",
        "decision_needed": None,
    }
    assert result["findings"]["list"] == []
    names = ["proposal.md", "tasks.md", "CHALLENGE.md", "reviews/challenge-1.yaml", "reviews/challenge-2.yaml"]
    assert sorted(result["files"]) == sorted(f"{FOLDER}/{name}" for name in names)


def _check_the_records(change: Change) -> None:
    first, last = change.records()
    made = [(one.id, str(one.severity), one.title, one.by) for one in first.findings]
    assert made == [("C1", "high", LEAK["title"], "agent:codex"), ("C2", "medium", SLOW["title"], "agent:codex")]
    answers = [(one.id, str(one.answer), one.note, one.files, one.by) for one in first.answers]
    assert answers == [
        ("C1", "fixed", FIXED, ("proposal.md",), "agent:gemini"),
        ("C2", "disputed", WRONG, (), "agent:gemini"),
    ]
    words = [(one.id, str(one.answer), one.answer_note, str(one.state), one.note) for one in last.previous]
    assert words == [("C1", "fixed", FIXED, "fixed", GONE), ("C2", "disputed", WRONG, "withdrawn", RIGHT)]
    assert [(one.id, str(one.state)) for one in current_findings((first, last))] == [
        ("C1", "fixed"),
        ("C2", "withdrawn"),
    ]
    assert (first.verdict, last.verdict, last.findings, last.answers) == ("NEEDS_REVISION", "APPROVED", (), ())
    now = {name: document_hash(change.folder / name) for name in ("proposal.md", "tasks.md")}
    assert last.judged == now
    assert {name for name in now if first.judged[name] != now[name]} == {"proposal.md"}


def _check_how_it_was_resumed(change: Change, resume: str) -> None:
    """By its id, or by its place in the list; and never as the latest, which is another one."""
    kept = next(
        one
        for one in list_transcripts(change.project.local_state_path("transcripts", change.id))
        if one.step == "reproposal"
    )
    command = re.search(r"^# command: .*--resume (\S+)", Path(kept.path).read_text(), re.MULTILINE)
    assert command
    assert command[1].isdigit() if resume == "index" else command[1] == change.read().session_id
    started = [(one.step, one.resumed) for one in journal_of(change, events.StepStarted)]
    assert [step for step, is_resumed in started if is_resumed] == ["reproposal"]


# ---- a session that is lost


@pytest.mark.parametrize("resume", ["auto", "index"])
def test_lost_session_is_reported_and_a_fresh_planner_continues(project: Scenario, model: Model, resume: str) -> None:
    steps = two_rounds(CONTEXT, PROPOSAL, TASKS)
    log = seat(project, model, steps, resume)
    judged = project.run("plan", "--rounds", "0", "--json")
    assert (judged.code, judged.json["verdict"]) == (1, "NEEDS_REVISION"), judged.out + judged.err
    old, before = the_change().read(), len(log)
    for path in (project.home / ".gemini/tmp").glob("*/chats/*"):
        path.unlink()

    lost = project.run("plan", "--json")
    assert lost.code == 1, lost.out + lost.err
    assert lost.json["error"]["message"] == LOST
    assert lost.json["error"]["hint"] == "agentd plan add-oauth --new-session"
    assert (len(log), lost.json["tokens"]) == (before, judged.json["tokens"]), "no model was asked"
    now = the_change().read()
    assert (now.phase, now.round, now.session_id, now.history) == (old.phase, 1, old.session_id, old.history)

    ran = project.run("plan", "--new-session", "--json")
    assert ran.code == 0, ran.out + ran.err
    asked = parts(log, steps)
    first, last = (heard(asked["reproposal"][place]) for place in (0, -1))
    assert begins(asked["reproposal"][0])
    assert prompts(asked["reproposal"][-1]) == ["reproposal"] and ends(asked["reproposal"][-1]) == []
    assert "You have not seen this plan." in first
    assert all(one[name] in first for one in (LEAK, SLOW) for name in ("title", "what"))
    assert all(words in last for words in (WHY, (project.root / TASKS).read_text().splitlines()[-1]))
    change = the_change()
    _check_the_judge_is_fresh(change, asked)
    _check_the_documents(change, ran.json)
    own = [one.session for one in change.read().llm_calls if one.step == "reproposal"][-1]
    assert change.read().session_id == own != old.session_id
