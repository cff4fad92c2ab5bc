"""The ground that `impl` stands on: the tree and the plan as a person left them, and what a person decides."""

import signal

import pytest

from agentd.change.folder import document_hash
from agentd.domain.terms import Phase
from crash import HELD_CHECK as HELD
from crash import held_checks, signal_at_event
from plans import BAD_CODE, GREETING_TASKS, task
from playbooks import APPROVED, HANG, NEEDS_CHANGES, Action, edit, implement, report, say, usage, write
from scenario import Scenario, replace_text

ME = "person:dev"
GREETED = edit("greeting.py", "Greetings", "Words of greeting")


def gone(*ids: str) -> list[dict[str, str]]:
    return [{"id": id_, "state": "fixed", "note": "Seen."} for id_ in ids]


# ---- the tree


def test_unresolved_merge_stops_impl_before_anything_runs(project: Scenario) -> None:
    project.greeting_approved({})
    project.commit("plan")
    project.paste("git switch -qc other && echo theirs > README.md && git commit -qam theirs && git switch -q main")
    project.paste("echo ours > README.md && git commit -qam ours && (git merge other || true)")
    end = project.run("impl", "--json")
    assert (end.code, end.json["error"]["message"]) == (1, "a merge is not finished: README.md")
    assert "git status" in end.json["error"]["hint"]
    assert project.state().phase is Phase.CHALLENGED and not project.state().steps


def test_uncommitted_changes_from_before_are_kept_and_not_part_of_the_change(project: Scenario) -> None:
    """Changed, staged, untracked, deleted."""
    project.write("old.py", "OLD = 1\n")
    project.write("gone.py", "GONE = 1\n")
    project.greeting_approved({"implement-greeting": implement()})
    project.write("old.py", "OLD = 2\n")
    project.write("staged.py", "STAGED = 1\n")
    project.git("add", "staged.py")
    project.write("mine.py", "MINE = 1\n")
    (project.root / "gone.py").unlink()
    end = project.run("impl")
    assert end.code == 0 and project.review_findings() == [], end.out
    rows = project.git("status", "--short", "--", ":!agentd").splitlines()
    assert sorted(row.split()[-1] for row in rows) == [
        "gone.py",
        "greeting.py",
        "mine.py",
        "old.py",
        "staged.py",
        "tests/test_greeting.py",
    ]
    assert project.git("diff", "--cached", "--name-only") == "staged.py"


def test_missing_base_tree_stops_impl(project: Scenario) -> None:
    """As in a fresh clone: only git's own refs come with it."""
    project.greeting_approved({"implement-greeting": implement()}, more="")
    assert project.agentd("implement", "greet").code == 0
    project.git("update-ref", "-d", "refs/agentd/greet/base")
    project.paste("rm -rf .git/logs && git prune --expire=now")
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (1, "implementing"), end.out
    assert "which is not in this repository" in end.json["error"]["message"]
    assert "refs/agentd/greet/*" in end.json["error"]["hint"] and project.finished_steps() == ["implement-greeting"]


# ---- the plan


def test_plan_edited_after_approval_suggests_rechallenge_or_accept(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(), "challenge": APPROVED})
    spec = project.folder / "specs/greeting.md"
    replace_text(spec, "How people are greeted.", "How all people are greeted.")
    end = project.run("impl", "--json")
    assert (end.code, end.json["error"]["code"], end.json["phase"]) == (1, "change-not-ready", "challenged")
    assert "was edited since it was approved" in end.json["error"]["message"]
    for way in ("agentd plan greet --rechallenge", 'agentd plan greet --accept "REASON"'):
        assert way in end.json["error"]["hint"]
    assert not project.state().steps
    assert project.agentd("plan", "greet", "--rechallenge").code == 0
    assert project.run("impl", "--tasks", "2.1").code == 0


def test_edited_plan_that_was_accepted_is_implemented(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    replace_text(project.folder / "specs/greeting.md", "How people are greeted.", "How all people are greeted.")
    assert project.agentd("plan", "greet", "--accept", "a word more").code == 0
    assert project.run("impl").code == 0
    spec = document_hash(project.folder / "specs/greeting.md")
    started = next(one for one in project.state().history if one.event == "implementation-started")
    assert started.hashes["specs/greeting.md"] == spec


def test_task_added_during_implementation_is_done_and_waived_one_skipped(project: Scenario) -> None:
    """An edit of the plan while it is implemented makes nobody judge the plan again."""
    steps = {"implement-greeting#1": [write("greeting.py", "X = 1\n"), usage(0.1), say("So.")]}
    project.greeting_approved(steps | {"implement-greeting#2": [write("more.py", "X = 1\n"), usage(0.1), say("So.")]})
    assert project.run("impl", "--tasks", "2.1").code == 0
    text = (
        GREETING_TASKS[: GREETING_TASKS.index("## 4. Testing")]
        + task("2.2", "more.py")
        + GREETING_TASKS[GREETING_TASKS.index("## 4. Testing") - 1 :]
    )
    waived = text[: text.index("### Task 4.1")] + text[text.index("### Task 4.1") :].replace("pending", "waived")
    (project.folder / "tasks.md").write_text(waived)
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.json["findings"]
    assert project.finished_steps() == ["implement-greeting", "implement-greeting#2", "review"]
    assert (project.folder / "tasks.md").read_text() == waived.replace("pending", "done")


# ---- a person's words in REVIEW.md


def reviewed(box: Scenario, later: dict[str, list[Action]] | None = None) -> None:
    """The reviewer has found something to mend; the code is good."""
    box.greeting_approved({"implement-greeting": implement(), "review/1": NEEDS_CHANGES, **(later or {})})
    assert box.run("impl", "--rounds", "0").code == 1


def test_findings_can_be_closed_regraded_and_added_in_review_md(project: Scenario) -> None:
    reviewed(project, {"resolve/2": [GREETED, usage(0.02), say("So.")], "review/2": report(previous=gone("P1"))})
    page = project.folder / "REVIEW.md"
    replace_text(page, "- **State**: open", "- **State**: withdrawn")
    replace_text(page, "- **Severity**: High", "- **Severity**: Low")
    mine = "### Say it aloud\n\n- **Severity**: High\n- **Description**: It is written only.\n\n"
    replace_text(page, "## Earlier findings", f"{mine}## Earlier findings")
    end = project.run("impl", "--json")
    edits = [(one["id"], one["field"], one["by"]) for one in project.review_record()["edits"]]
    assert sorted(edits) == [("P1", "added", ME), ("V1", "severity", ME), ("V1", "state", ME)]
    assert (end.code, end.json["phase"]) == (0, "complete"), end.json
    assert [(one["id"], one["state"]) for one in project.review_record(2)["previous"]] == [("P1", "fixed")]


def test_verdict_edited_in_review_md_decides_nothing(project: Scenario) -> None:
    reviewed(project)
    head = "# Review: greet\n\n**Verdict**: "
    replace_text(project.folder / "REVIEW.md", f"{head}NEEDS_CHANGES", f"{head}APPROVED")
    end = project.run("impl", "--rounds", "0")
    assert end.code == 1 and project.state().phase is Phase.IMPLEMENTING
    assert "the verdict in REVIEW.md was edited, which decides nothing" in end.err
    assert 'agentd impl greet --accept "REASON" does' in end.err
    assert project.finished_steps() == ["implement-greeting", "review"]


def test_closing_all_findings_in_review_md_leaves_the_decision_to_the_user(project: Scenario) -> None:
    reviewed(project)
    replace_text(project.folder / "REVIEW.md", "- **State**: open", "- **State**: withdrawn")
    end = project.run("impl")
    assert end.code == 1 and "no finding is open" in end.err and "--review" in end.err
    assert project.finished_steps() == ["implement-greeting", "review"]


def test_failed_check_cannot_be_closed_in_review_md(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(BAD_CODE)})
    assert project.run("impl", "--rounds", "0").code == 1
    replace_text(project.folder / "REVIEW.md", "- **State**: open", "- **State**: accepted")
    again = project.run("impl", "--review", "--rounds", "0", "--json")
    assert (again.code, again.json["phase"], again.json["verdict"]) == (1, "implementing", "NEEDS_CHANGES")


# ---- decisions


def test_code_with_a_failed_check_cannot_be_accepted(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(BAD_CODE)})
    assert project.run("impl", "--rounds", "0").code == 1
    end = project.run("impl", "--accept", "good enough", "--json")
    assert end.code == 1 and project.state().phase is Phase.IMPLEMENTING
    assert end.json["error"]["message"] == "the required check tests fails, so the code cannot be accepted"
    assert (project.folder / "tasks.md").read_text() == GREETING_TASKS


def test_acceptance_waives_open_tasks_and_records_its_reason(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": [write("greeting.py", "X = 1\n"), usage(0.1), say("So.")]})
    assert project.run("impl", "--rounds", "0").code == 1
    assert "Task 4.1 is not done: tests/test_greeting.py" in [title for _, _, title in project.review_findings()]
    end = project.run("impl", "--accept", "tests come later", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete")
    assert end.json["message"] == "Accepted by dev: tests come later" and end.json["findings"]["list"] == []
    text = (project.folder / "tasks.md").read_text()
    assert (text.count("status: done"), text.count("status: waived")) == (1, 1)
    last = project.state().history[-1]
    assert (last.event, last.by, last.why) == ("accepted", ME, "tests come later")
    assert set(last.hashes) == {"tree", "base", "specs/greeting.md"} and not (set(last.hashes.values()) & {""})
    assert {one["to"] for one in project.review_record()["edits"]} == {"accepted"}


def test_decision_is_refused_before_there_is_code(project: Scenario) -> None:
    project.greeting_approved({})
    for flag in ("--accept", "--send-back", "--plan-wrong"):
        end = project.run("impl", flag, "why not", "--json")
        assert (end.code, end.json["error"]["code"]) == (1, "wrong-phase"), flag
    assert project.run("impl", "--accept", "a", "--send-back", "b").code == 2
    assert project.run("impl", "--accept", " ").code == 2
    assert project.state().phase is Phase.CHALLENGED


def test_code_that_was_sent_back_gets_the_reason_as_a_finding(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement(), "resolve": [GREETED, usage(0.02), say("So.")]})
    assert project.run("impl").code == 0
    back = project.run("impl", "--send-back", "it must be louder", "--json")
    assert (back.code, back.json["phase"]) == (0, "implementing")
    assert back.json["message"] == "Sent back by dev: it must be louder" and back.json["next"] == "agentd impl greet"
    assert [(one["id"], one["title"], one["by"]) for one in back.json["findings"]["list"]] == [
        ("P1", "it must be louder", ME)
    ]
    project.replay({"resolve": [GREETED, usage(0.02), say("So.")], "review": report(previous=gone("P1"))})
    assert project.run("impl").code == 0
    assert project.finished_steps() == ["implement-greeting", "review", "resolve", "review"]


def test_change_with_a_wrong_plan_is_replanned_and_rebuilt_from_the_same_base(project: Scenario) -> None:
    spec = "agentd/changes/greet/specs/greeting.md"
    steps = {
        "challenge/1": APPROVED,
        "implement-greeting#1": implement(),
        "review/1": NEEDS_CHANGES,
        "reproposal/2": [
            edit(spec, "How people are greeted.", "How people are greeted aloud."),
            usage(0.01),
            say("So."),
        ],
        "challenge/2": report("APPROVED", previous=gone("P1")),
        "implement-greeting#2": [GREETED, usage(0.1), say("So.")],
        "review/2": report(previous=gone("V1")),
    }
    project.greeting_proposed(steps)
    assert project.agentd("challenge", "greet").code == 0
    assert project.run("impl", "--rounds", "0").code == 1
    base = project.state().base.tree
    wrong = project.run("impl", "--plan-wrong", "it must be aloud", "--json")
    assert (wrong.code, wrong.json["phase"]) == (0, "proposed")
    assert wrong.json["message"] == "Back to planning by dev: it must be aloud"
    assert wrong.json["next"].startswith("agentd plan greet")
    assert project.run("impl").code == 1, "not before the plan is approved again"
    planned = project.agentd("plan", "greet", "--json")
    assert (planned.code, planned.json["phase"]) == (0, "challenged"), planned.out
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete"), end.json
    assert project.finished_steps() == [
        "challenge",
        "implement-greeting",
        "review",
        "reproposal",
        "challenge",
        "implement-greeting#2",
        "review",
    ]
    assert project.state().base.tree == base == project.review_record(2)["judged"]["base"]


# ---- money


@pytest.mark.parametrize("limit", ["of the command", "of the change"])
def test_budget_stops_impl_and_more_budget_continues_it(limit: str, project: Scenario) -> None:
    more = "[budget]\nper_change = 0.12\n" if limit == "of the change" else ""
    project.greeting_approved({"implement-greeting": implement()}, more)
    end = project.run("impl", "--json", *(("--max-cost", "0.05") if limit == "of the command" else ()))
    assert end.code == 7 and end.json["phase"] == "implementing", end.out
    assert end.json["error"]["hint"]
    spent = project.state().total_cost
    assert spent >= 0.1
    rest = ("--set", "budget.per_change=1") if limit == "of the change" else ()
    assert project.agentd(*rest, "impl", "greet").code == 0


# ---- interrupted


def test_impl_interrupted_in_every_step_continues_to_completion(project: Scenario) -> None:
    steps = {
        "implement-greeting": implement(BAD_CODE),
        "resolve/2": [edit("greeting.py", "{name}", "{name or 'world'}"), usage(0.02), say("So.")],
        "review": APPROVED,
    }
    slow = {
        f"{name}/1": [say("I begin."), HANG] for name in ("implement-greeting/1", "review/1", "resolve/2", "review/2")
    }
    project.greeting_approved(steps | slow, HELD)
    with held_checks(project):
        assert signal_at_event(project, signal.SIGINT, type="step.started", step="checks", round=0) == 130
    assert project.state().phase is Phase.CHALLENGED, "nothing has begun"
    for step, round_ in (("implement-greeting", 1), ("review", 1), ("resolve", 2), ("review", 2)):
        assert signal_at_event(project, signal.SIGINT, type="agent.activity", step=step, round=round_) == 130
        if step in ("implement-greeting", "resolve"):
            with held_checks(project):
                code = signal_at_event(project, signal.SIGTERM, type="step.started", step="checks", round=round_)
                assert code == 130
    end = project.run("impl", "--json")
    assert (end.code, end.json["phase"]) == (0, "complete")
    assert project.finished_steps() == ["implement-greeting", "review", "resolve", "review"]
    done = [(row.name, row.round) for row in project.state().steps if row.name == "checks" and row.status == "done"]
    assert sorted(set(done)) == [("checks", 0), ("checks", 1), ("checks", 2)]
