"""How `agentd plan` can end, each as stated: the outcome, the exit code, the words. Real program, scripted agents."""

import json
import sys

import pytest

from agentd.documents.verdict_text import SelfReviewResult
from agentd.domain import events
from agentd.domain.terms import FindingState, Phase
from agentd.engine.steps.planner import self_review_outcome
from plans import EXAMPLE, PROPOSAL_TEXT, PROPOSAL_WITHOUT_WHY, SIGN_IN_DOCUMENTS, SPEC, SPEC_TEXT, example_calls
from playbooks import (
    APPROVED,
    PASS,
    Action,
    call,
    edit_document,
    finding,
    plan_steps,
    report,
    say,
    small_plan_steps,
    usage,
    write_document,
)
from scenario import NO_REVIEWS, Scenario

NEEDS = "<review>NEEDS_REVISION</review>"
SOME_MORE = edit_document(f"specs/{SPEC}.md", "A user is one person.", "A user is one person, known by name.")


def warnings(box: Scenario) -> dict[str, str]:
    return {one.code: one.message for one in box.journal(events.WarningIssued)}


def results_of(box: Scenario) -> dict[str, str]:
    return {one.step + f"#{one.number}": one.message for one in box.journal(events.StepFinished) if one.message}


def test_change_without_affected_specs_skips_spec_steps(project: Scenario) -> None:
    steps = small_plan_steps()
    proposal, tasks = (json.loads(json.dumps(example_calls()[f"create_{one}"])) for one in ("proposal", "tasks"))
    proposal["impact"]["affected_specs"] = []
    first = {key: value for key, value in tasks["tasks"][0].items() if key != "spec_ref"}
    steps["proposal-gen"][0] = call("create_proposal", **proposal)
    steps["tasks-gen"][0] = call("create_tasks", tasks=[first])
    project.with_agents(steps, workflow=NO_REVIEWS)
    planned = project.run("plan")
    assert (planned.code, "No specs required for this change" in planned.err) == (0, True)
    assert "APPROVED - Ready for implementation!" in planned.out
    assert project.started_steps() == ["proposal-gen", "tasks-gen", "challenge"]
    assert "spec_ref: user" not in (project.folder / "tasks.md").read_text()
    assert project.change.read().history[0].why == "proposal and 1 task generated and valid"


# ---- self-review


@pytest.mark.parametrize(
    ("said", "changed", "number", "words", "warned"),
    [
        (SelfReviewResult.PASS, False, 1, "Review 1: PASS", []),
        (SelfReviewResult.PASS, True, 1, "Review 1: PASS", []),
        (SelfReviewResult.MISSING, False, 1, "Review 1: PASS", ["review-marker"]),
        (SelfReviewResult.NEEDS_REVISION, True, 1, "Review 1: NEEDS_REVISION (auto-fixed)", []),
        (SelfReviewResult.NEEDS_REVISION, False, 1, "Review 1: NEEDS_REVISION", ["review-unchanged"]),
        (SelfReviewResult.NEEDS_REVISION, True, 2, "Review 2: NEEDS_REVISION (auto-fixed)", ["review-limit"]),
        (SelfReviewResult.NEEDS_REVISION, False, 2, "Review 2: NEEDS_REVISION", ["review-unchanged", "review-limit"]),
    ],
)
def test_self_review_outcome_gives_the_expected_message_and_warnings(
    said: SelfReviewResult, changed: bool, number: int, words: str, warned: list[str]
) -> None:
    message, warnings = self_review_outcome(said, changed, "tasks.md", number, 2)
    assert (message, [code for code, _ in warnings]) == (words, warned)


def test_self_review_fixes_or_warns_and_never_stops_a_plan(project: Scenario) -> None:
    fenced = f"I would say\n```\n{NEEDS}\n```\nbut all is well."
    steps = plan_steps(
        proposal_review=[edit_document("proposal.md", "- Add users.", "- Add users and identities."), say(NEEDS)],
        tasks_review=[say(NEEDS)],
    )
    steps[f"spec-review-{SPEC}"] = [say(fenced)]
    project.with_agents(steps)
    planned = project.run("plan")
    assert planned.code == 0
    assert results_of(project) == {
        "proposal-review#1": "Review 1: NEEDS_REVISION (auto-fixed)",
        f"spec-review-{SPEC}#1": "Review 1: PASS",
        "tasks-review#1": "Review 1: NEEDS_REVISION",
        "challenge#1": "APPROVED",
    }
    assert "Review 1: NEEDS_REVISION (auto-fixed)" in planned.err
    told = [one.message for one in project.journal(events.WarningIssued) if one.code.startswith("review-")]
    assert told == [
        "proposal.md: 1 review, and the last one still asked for changes",
        f"Review 1 of specs/{SPEC}.md ended without its marker; taken as PASS",
        "Review 1 says NEEDS_REVISION, but nothing in tasks.md was changed",
        "tasks.md: 1 review, and the last one still asked for changes",
    ]
    sessions = [one.session for one in project.journal(events.StepStarted)]
    assert len(set(sessions)) == len(sessions)  # each a fresh one


def test_second_self_review_is_skipped_after_a_pass_even_when_resumed(project: Scenario) -> None:
    steps = plan_steps(tasks_review=[say(NEEDS)])
    steps[f"spec-gen-{SPEC}/1/1"] = [{"fault": "crash"}]
    steps[f"spec-review-{SPEC}#1"] = [SOME_MORE, say(NEEDS)]
    steps[f"spec-review-{SPEC}#2"] = [say(PASS)]
    project.with_agents(steps, workflow="self_review_iterations = 2\n")
    assert project.run("plan").code == 4
    assert project.run("plan").code == 0
    looks = [one for one in project.started_steps() if "review" in one]
    spec_look = f"spec-review-{SPEC}"
    assert looks == ["proposal-review", spec_look, f"{spec_look}#2", "tasks-review", "tasks-review#2"]
    skipped = [(one.name, one.number) for one in project.change.read().steps if one.status == "skipped"]
    assert skipped == [("clarify", 1), ("proposal-review", 2)]
    assert warnings(project)["review-limit"] == "tasks.md: 2 reviews, and the last one still asked for changes"


ECHO = f"""#!{sys.executable}
import pathlib, sys
prompt = sys.stdin.read()
print(prompt)
here = pathlib.Path("agentd/changes/add-oauth")
texts = {list({**SIGN_IN_DOCUMENTS, "proposal.md": PROPOSAL_WITHOUT_WHY}.items())!r}
if "Fix the format" in prompt:
    (here / "proposal.md").write_text({PROPOSAL_TEXT!r})
elif "<review>" not in prompt:
    name, text = next(pair for pair in texts if not (here / pair[0]).exists())
    (here / name).parent.mkdir(exist_ok=True)
    (here / name).write_text(text)
"""


def test_command_agent_that_echoes_its_prompt_can_plan(project: Scenario) -> None:
    """What it prints is all its answer, so a marker in the prompt that it repeats is none of its own."""
    project.write("echo-agent", ECHO).chmod(0o755)
    project.with_agents(plan_steps(), more="[agents.echo]\nkind = 'command'\ncommand = './echo-agent'\n")
    project.assign("planner", "echo")
    assert project.run("plan").code == 0
    looks = {name: words for name, words in results_of(project).items() if "review" in name}
    assert set(looks.values()) == {"Review 1: PASS"} and len(looks) == 3
    assert [one.code for one in project.journal(events.WarningIssued)].count("review-marker") == 3
    assert project.change.read().session_id is None
    fix = project.journal(events.StepStarted)[1]
    assert (fix.step, fix.resumed, fix.session) == ("format-fix", False, None)


# ---- the form of the documents


def test_mechanical_format_error_is_fixed_immediately(project: Scenario) -> None:
    loose = PROPOSAL_TEXT.replace("## Why", "# Why")
    steps = plan_steps(proposal_gen=[write_document("proposal.md", loose)])
    steps[f"spec-gen-{SPEC}"] = [write_document(f"specs/{SPEC}.md", SPEC_TEXT.replace("### R1: ", "#### R1. "))]
    project.with_agents(steps, workflow=NO_REVIEWS)
    planned = project.run("plan")
    assert planned.code == 0 and "agentd fixed the format of proposal.md" in planned.err
    assert "format-fix" not in " ".join(project.started_steps())
    assert (project.folder / "proposal.md").read_text().startswith(PROPOSAL_TEXT)
    assert (project.folder / f"specs/{SPEC}.md").read_text() == SPEC_TEXT
    state = project.change.read()
    outputs = {name: one for step in state.steps for name, one in step.outputs.items() if name in SIGN_IN_DOCUMENTS}
    assert outputs == project.change.hashes()  # the step ended with the mended text


def test_validation_findings_are_fixed_in_the_planners_session(project: Scenario) -> None:
    """The proposal cannot even be read at first; it takes two rounds, the spec one."""
    broken = PROPOSAL_TEXT.replace("affected_specs:", "affected_specs: [")
    steps = plan_steps(proposal_gen=[write_document("proposal.md", broken)])
    steps["format-fix#1"] = [{"expect": "frontmatter-invalid"}, write_document("proposal.md", PROPOSAL_WITHOUT_WHY)]
    steps["format-fix#2"] = [{"expect": "heading-missing"}, write_document("proposal.md")]
    steps[f"spec-gen-{SPEC}"] = [write_document(f"specs/{SPEC}.md", SPEC_TEXT.replace("## Overview", "## Outlook"))]
    steps["format-fix#3"] = [{"expect": f"specs/{SPEC}.md"}, write_document(f"specs/{SPEC}.md")]
    project.with_agents(steps, workflow=NO_REVIEWS)
    planned = project.run("plan")
    assert planned.code == 0, planned.out
    fixes = ["format-fix", "format-fix#2"]
    order = ["proposal-gen", *fixes, f"spec-gen-{SPEC}", "format-fix#3", "tasks-gen", "challenge"]
    assert project.started_steps() == order
    started = project.journal(events.StepStarted)
    own = project.change.read().session_id
    assert started[0].session == own and not started[0].resumed
    assert {(one.session, one.resumed) for one in started if one.step == "format-fix"} == {(own, True)}
    assert not any(one.resumed for one in started if one.step != "format-fix")


def test_persistent_format_errors_end_the_command_and_a_new_one_grants_more_tries(project: Scenario) -> None:
    steps = plan_steps(proposal_gen=[write_document("proposal.md", PROPOSAL_WITHOUT_WHY)])
    steps["format-fix"] = [say("I see nothing wrong.")]
    project.with_agents(steps, workflow=NO_REVIEWS)
    planned = project.run("plan", "--json")
    error = planned.json["error"]
    first, *named = error["message"].splitlines()
    assert (planned.code, first) == (1, "Format validation still failing after 2 iterations")
    assert len(named) == 1 and "proposal.md" in named[0] and "heading-missing" in named[0]
    assert "agentd plan add-oauth" in error["hint"]
    state = project.change.read()
    assert (state.phase, state.run) == (Phase.DRAFTING, None)
    assert project.started_steps() == ["proposal-gen", "format-fix", "format-fix#2"]

    # Another machine goes on: what the local room knew of the session is not there.
    (project.root / ".git/agentd/sessions/add-oauth").unlink()
    planned = project.run("plan")
    assert planned.code == 1 and "Format validation still failing after 2 iterations" in planned.err
    assert "made on another machine" in planned.err
    third, fourth = project.journal(events.StepStarted)[-2:]
    assert (third.number, third.resumed, fourth.number, fourth.resumed) == (3, False, 4, True)
    assert third.session == fourth.session == project.change.read().session_id != state.session_id

    # A fresh planner is asked for, and finds it.
    steps["format-fix"] = [{"expect": "You have not seen these documents"}, write_document("proposal.md")]
    project.replay(steps)
    assert project.run("plan", "--new-session").code == 0
    fifth = next(one for one in project.journal(events.StepStarted) if one.number == 5)
    assert not fifth.resumed and fifth.session == project.change.read().session_id != fourth.session


def test_lost_session_suggests_new_session(project: Scenario) -> None:
    steps = plan_steps(proposal_gen=[write_document("proposal.md", PROPOSAL_WITHOUT_WHY)])
    steps["format-fix"] = [{"fault": "session-lost"}]
    project.with_agents(steps, workflow=NO_REVIEWS)
    planned = project.run("plan", "--json")
    assert (planned.code, planned.json["error"]["code"]) == (1, "session-lost")
    assert planned.json["error"]["message"] == "Session not found, please re-run proposal"
    assert planned.json["error"]["hint"] == "agentd plan add-oauth --new-session"
    steps["format-fix"] = [write_document("proposal.md")]
    project.replay(steps)
    assert project.run("plan", "--new-session").code == 0


NAMELESS = f"""#!{sys.executable}
import json, os, pathlib
from agentd.agents import McpClient
server = json.loads(pathlib.Path(".gemini/settings.json").read_text())["mcpServers"]["agentd"]
os.chdir(os.environ["AGENTD_TREE"])
tools = McpClient((server["command"], *server["args"]))
tools.greet()
tools.tools()
tools.call("create_proposal", {example_calls()["create_proposal"]!r})
tools.close()
print(json.dumps({{"type": "result", "status": "success"}}))
"""


def test_missing_session_id_is_reported_and_the_document_restored(project: Scenario) -> None:
    program = project.write("nameless", NAMELESS)
    program.chmod(0o755)
    project.with_agents(plan_steps(), more=f"[agents.gemini]\ncommand = '{program}'\nresume = 'index'\n")
    project.assign("planner", "gemini")
    planned = project.run("plan", "--json")
    assert planned.code == 1, planned.err
    assert planned.json["error"]["message"] == "Failed to capture session ID"
    assert not (project.folder / "proposal.md").exists()
    state = project.change.read()
    assert state.session_id is None and [one.status for one in state.steps] == ["skipped", "failed"]


# ---- the verdict

SAYS_CHANGES = """**Verdict**: NEEDS_REVISION

## Issues

### The address is not checked

- **Severity**: High
- **Description**: Any address is taken.
- **Suggestion**: Check it.
- **Spec Reference**: user-model:R1

### The name may be empty

- **Severity**: Low
- **Description**: Nothing says that it is not.
"""


def test_needs_revision_lists_findings_and_options(project: Scenario) -> None:
    rows = [finding("high", "One"), finding("medium", "Two"), finding("low", "Three")]
    project.proposed(report("NEEDS_REVISION", *rows))
    judged = project.run("plan", "--json")
    like = json.loads((EXAMPLE / "result.json").read_text())
    told = judged.json
    assert judged.code == 1
    assert list(told) == list(like) and list(told["findings"]["list"][0]) == list(like["findings"]["list"][0])
    for name in ("phase", "verdict", "round", "message", "decision_needed", "next", "error", "exit_code"):
        assert told[name] == like[name], name
    assert told["findings"]["open"] == like["findings"]["open"]
    assert [one["id"] for one in told["findings"]["list"]] == ["C1", "C2", "C3"]
    calls = project.started_steps()
    again = project.agentd("challenge", "add-oauth", "--json")
    assert (again.code, again.json["message"], project.started_steps()) == (
        1,
        like["message"],
        calls,
    )  # nothing is judged twice
    shown = project.run("plan")
    assert "NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM, 1 LOW severity issues" in shown.out


def test_rejected_plan_is_challenged_again_only_after_an_edit(project: Scenario) -> None:
    settled = [{"id": "C1", "state": "fixed", "note": "Now it does."}]
    later = report("APPROVED", previous=settled)
    project.proposed(report("REJECTED", finding("high", "It cannot work")), {"challenge/2": later})
    judged = project.run("plan")
    assert (judged.code, judged.out.splitlines()[0]) == (1, "REJECTED - Fundamental problems")
    assert project.change.read().phase is Phase.REJECTED
    again = project.run("plan")
    assert again.code == 1 and "add-oauth was rejected" in again.err and "CHALLENGE.md" in again.err
    refused = project.agentd("challenge", "add-oauth")
    assert refused.code == 1 and "its plan has not changed since" in refused.err
    assert project.started_steps() == ["challenge"]
    with (project.folder / "tasks.md").open("a") as tasks:
        tasks.write("\nUsers come first.\n")
    assert project.agentd("challenge", "add-oauth").code == 0
    state = project.change.read()
    assert (state.phase, state.round, project.started_steps()) == (Phase.CHALLENGED, 2, ["challenge", "challenge"])


def test_low_findings_do_not_prevent_approval(project: Scenario) -> None:
    project.proposed(report("APPROVED", finding("low", "A word is missing")))
    judged = project.run("plan", "--json")
    assert (judged.code, judged.json["message"]) == (0, "APPROVED - Ready for implementation!")
    assert judged.json["findings"]["open"] == {"high": 0, "medium": 0, "low": 1}
    assert (judged.json["decision_needed"], judged.json["next"]) == (None, "agentd impl add-oauth")
    assert project.change.read().history[-1].why == "1 low open (reviews/challenge-1.yaml)"


def test_text_verdict_of_a_judge_is_parsed(project: Scenario) -> None:
    project.proposed([say(SAYS_CHANGES)], {"challenge/2": APPROVED})
    judged = project.run("plan", "--json")
    assert judged.json["message"] == "NEEDS_REVISION - Found 1 HIGH, 1 LOW severity issues"
    (record,) = project.change.records()
    rows = [(one.id, one.severity, one.title, one.requirement, one.verified) for one in record.findings]
    assert rows == [
        ("C1", "high", "The address is not checked", "user-model:R1", False),
        ("C2", "low", "The name may be empty", None, False),
    ]
    # In text no finding is settled, so what is high and open is not approved.
    with (project.folder / "tasks.md").open("a") as tasks:
        tasks.write("\nUsers come first.\n")
    again = project.agentd("challenge", "add-oauth")
    _, record = project.change.records()
    assert (again.code, record.verdict, record.reported) == (1, "NEEDS_REVISION", "APPROVED")
    assert "C1" in str(record.overruled) and str(record.overruled) in (project.folder / "CHALLENGE.md").read_text()


SILENT: list[Action] = [usage(0.01)]
OPEN_HIGH = SAYS_CHANGES.replace("NEEDS_REVISION", "APPROVED")


@pytest.mark.parametrize(
    ("challenge", "code", "name", "words", "calls"),
    [
        ([say("This cannot be approved as it is.")], 1, "verdict-unknown", "Could not parse challenge verdict", 2),
        ([say(OPEN_HIGH)], 1, "verdict-unknown", "Could not parse challenge verdict", 1),
        (SILENT, 4, "did-nothing", "did not do what was asked", 2),
        ([{"fault": "die"}], 4, "crashed", "signal 9", 1),
        ([{"fault": "hang"}], 4, "wall-clock", "longer than 1 s", 1),
        ([edit_document("tasks.md", "Define `User`.", "Do nothing."), *APPROVED], 4, "changed-files", "tasks.md", 1),
    ],
    ids=["prose", "says both", "says nothing", "dies", "hangs", "changes a file"],
)
def test_judge_without_a_verdict_moves_nothing(
    project: Scenario, challenge: list[Action], code: int, name: str, words: str, calls: int
) -> None:
    hurry = "[limits.wall_secs]\nchallenger = 1\n" if name == "wall-clock" else ""
    before = project.proposed(challenge, more=hurry).change.hashes()
    judged = project.run("plan", "--json")
    error = judged.json["error"]
    assert (judged.code, judged.json["exit_code"], error["code"]) == (code, code, name)
    assert words in error["message"] and error["hint"]
    assert project.started_steps() == ["challenge"] * calls
    change = project.change
    assert change.read().phase is Phase.PROPOSED and not change.records()
    assert change.hashes() == before  # what a judge wrote is put back
    assert not (project.folder / "CHALLENGE.md").exists()
    assert judged.json["next"] == "agentd plan add-oauth"


def test_silent_judge_is_reminded_to_report(project: Scenario) -> None:
    reminded = [{"expect": "You have not reported yet."}, *APPROVED]
    project.proposed(SILENT, {"challenge/1/2": reminded})
    assert project.run("plan").code == 0
    assert [one.attempt for one in project.journal(events.StepStarted)] == [1, 2]


def test_protected_file_changed_by_the_planner_prevents_approval(project: Scenario) -> None:
    steps = plan_steps(
        plan_gen=[{"write": "agentd/config.toml", "text": "evil\n"}, *map(write_document, SIGN_IN_DOCUMENTS)]
    )
    project.with_agents(steps, workflow="planning_iterations = 0\n")
    before = (project.root / "agentd/config.toml").read_text()
    planned = project.run("plan", "--light", "--json")
    assert (planned.code, planned.json["verdict"]) == (1, "NEEDS_REVISION")
    assert (project.root / "agentd/config.toml").read_text() == before
    change = project.change
    (record,) = change.records()
    assert (record.verdict, record.reported) == ("NEEDS_REVISION", "APPROVED")
    (found,) = record.findings
    assert (found.id, found.severity, found.state) == ("G1", "high", FindingState.OPEN)
    assert "agentd/config.toml" in found.title + found.what and change.read().findings == ()
    page = (project.folder / "CHALLENGE.md").read_text()
    assert str(record.overruled) in page and "G1" in page


# ---- money


def spending(cost: float, *after: Action) -> dict[str, list[Action]]:
    """A planner whose first call costs that."""
    return plan_steps(plan_gen=[call("create_proposal", **example_calls()["create_proposal"]), usage(cost), *after])


@pytest.mark.parametrize(
    ("flags", "words", "more"),
    [
        ((), "add-oauth has cost 25.00 USD of its 10.00 USD", ("--set", "budget.per_change=40")),
        (("--max-cost", "20"), "this run has cost 25.00 USD of the 20.00 USD it may (--max-cost)", ()),
    ],
    ids=["change", "run"],
)
def test_call_that_exceeds_a_limit_is_ended_and_continues_with_more_budget(
    project: Scenario, flags: tuple[str, ...], words: str, more: tuple[str, ...]
) -> None:
    budget = "[budget]\nper_change = 100.0\n" if flags else ""
    project.with_agents(spending(25.0, {"wait": 600}), budget)
    planned = project.run("plan", "--light", "--json", *flags)
    error = planned.json["error"]
    assert (planned.code, error["code"], error["message"]) == (7, "over-budget", words)
    assert ("--max-cost" if flags else "--set budget.per_change=40") in error["hint"]
    assert not (project.folder / "proposal.md").exists()  # put back: the step was cut off
    assert project.change.read().run is not None  # under way: the next command resumes it
    project.replay(plan_steps())
    again = project.agentd(*more, "plan", "add-oauth", *flags)
    assert again.code == 0, again.out


def test_no_call_starts_when_a_limit_is_reached(project: Scenario) -> None:
    project.with_agents(
        plan_steps(plan_gen=[*map(write_document, SIGN_IN_DOCUMENTS), usage(2.0)]), "[budget]\nper_change = 2.0\n"
    )
    planned = project.run("plan", "--light", "--json")
    assert (planned.code, planned.json["phase"]) == (7, "proposed")
    assert planned.json["error"]["message"] == "add-oauth has cost 2.00 USD of its 2.00 USD"
    assert project.started_steps() == ["plan-gen"]
    stopped = project.agentd("--set", "budget.per_change=9", "plan", "add-oauth", "--max-cost", "0.01", "--json")
    assert stopped.code == 7 and "--max-cost" in stopped.json["error"]["message"]  # in the challenge
    assert project.agentd("--set", "budget.per_change=9", "plan", "add-oauth").code == 0


def test_unknown_price_stops_before_any_call_when_configured(project: Scenario) -> None:
    project.with_agents(plan_steps(), '[budget]\nunknown_price = "stop"\n')
    planned = project.run("plan", "--json")
    assert (planned.code, planned.json["error"]["code"]) == (7, "over-budget")
    assert "budget.unknown_price=allow" in planned.json["error"]["hint"]
    assert project.started_steps() == []
    assert project.agentd("--set", "budget.unknown_price=allow", "plan", "add-oauth", "--light").code == 0
