"""What tools do and refuse: the contract's calls give its documents, and every no says what to send instead."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentd.change import lifecycle, state
from agentd.change.folder import document_hash
from agentd.documents import proposal, tasks
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import TaskStatus
from agentd.engine.tools.tool import Stage, ToolRefusal
from agentd.engine.tools.tool_scope import ToolScope, run_folder
from agentd.engine.tools.tool_table import TOOLS, call_tool
from agentd.project.layout import find_project
from mcp_session import Staged, lay_out, staged
from plans import EXAMPLE, example_calls
from scenario import Scenario

EXAMPLES = example_calls()


class Hands:
    """One session's calls."""

    def __init__(self, on: Staged) -> None:
        self.on = on
        self.binding: ToolScope = on.binding()
        self.folder = on.change.folder

    def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
        answer = call_tool(self.binding, name, {**(EXAMPLES[name] if arguments is None else arguments), **more})
        return answer if name in ("read_file", "get_diff") else json.loads(answer)

    def refused(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        with pytest.raises(ToolRefusal) as caught:
            self.call(name, arguments, **more)
        assert {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()} == before
        assert "\n" not in str(caught.value) and "; " in str(caught.value)
        return str(caught.value)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def plan(project: Scenario) -> Iterator[Hands]:
    with staged(project, Stage.PLAN) as on:
        yield Hands(on)


@pytest.fixture
def challenge(project: Scenario) -> Iterator[Hands]:
    with staged(project, Stage.CHALLENGE) as on:
        yield Hands(on)


@pytest.fixture
def review(project: Scenario) -> Iterator[Hands]:
    with staged(project, Stage.REVIEW) as on:
        yield Hands(on)


@pytest.fixture
def unbound(project: Scenario) -> Hands:
    """No run is active."""
    return Hands(Staged(project, lay_out(project), Stage.UNBOUND, ""))


# ---- writing


def test_example_calls_write_the_example_documents(plan: Hands) -> None:
    for name in ("proposal.md", "tasks.md", "specs/api-endpoints.md"):
        (plan.folder / name).unlink()
    plan.binding = plan.on.binding()
    told = plan.call("create_proposal")
    assert told["specs"] == [
        {"id": "user-model", "delta": False},
        {"id": "auth-flow", "delta": False},
        {"id": "api-endpoints", "delta": True},
    ]
    assert told["revised"] is False and told["file"] == "agentd/changes/add-oauth/proposal.md"
    assert told["sha256"] == document_hash(plan.folder / "proposal.md")
    assert plan.call("create_spec")["validation"]["valid"]
    assert plan.text("specs/api-endpoints.md") == (EXAMPLE / "specs/api-endpoints.md").read_text()
    assert plan.call("create_tasks")["validation"]["findings"] == []
    assert plan.text("tasks.md") == (EXAMPLE / "tasks.md").read_text()
    written = plan.text("proposal.md")
    example = (EXAMPLE / "proposal.md").read_text()
    created = f"created: {proposal.parse_proposal(written).created}"
    assert written.replace(created, "created: 2026-01-19T10:30:39Z") == example[: example.index("\n<review ")]


def test_revision_keeps_review_blocks_created_date_and_unknown_frontmatter(plan: Hands) -> None:
    path = plan.folder / "proposal.md"
    path.write_text(path.read_text().replace("type: proposal\n", "type: proposal\nowner: somebody\n"))
    plan.binding = plan.on.binding()
    before = plan.text("proposal.md")
    assert plan.call("create_proposal", summary="People sign in, at last, with their own account.")["revised"]
    after = plan.text("proposal.md")
    assert after[after.index("<review ") :] == before[before.index("<review ") :]
    assert "created: 2026-01-19T10:30:39Z\n" in after and "owner: somebody\n" in after and "at last" in after


def test_revision_of_tasks_keeps_the_status_of_remaining_tasks(plan: Hands) -> None:
    path = plan.folder / "tasks.md"
    path.write_text(tasks.set_task_status(path.read_text(), "1.1", TaskStatus.DONE))
    plan.binding = plan.on.binding()
    plan.call("create_tasks")
    assert [one.status for one in tasks.parse_tasks(plan.text("tasks.md")).tasks] == ["done"] + ["pending"] * 6


def test_document_edited_meanwhile_is_not_overwritten(plan: Hands) -> None:
    path = plan.folder / "tasks.md"
    path.write_text(path.read_text() + "\nA person's note.\n")
    for name in ("create_tasks", "edit_file"):
        assert plan.refused(name).startswith("stale: tasks.md changed since this session read it; read ")
    assert "A person's note." in plan.call("read_file", {"path": "tasks.md"})
    plan.call("edit_file")
    assert "A person's note." in plan.text("tasks.md")


def test_edit_replaces_one_exact_text_and_keeps_every_other_byte(plan: Hands) -> None:
    path = plan.folder / "tasks.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    plan.binding = plan.on.binding()
    before = path.read_bytes()
    plan.call(
        "edit_file", old_text="### Task 1.1: Store users\n\n```yaml", new_text="### Task 1.1: Keep users\n\n```yaml"
    )
    assert path.read_bytes() == before.replace(b"Store users", b"Keep users")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"old_text": "status: pending"}, "many-matches: old_text occurs 7 times, in lines 19, "),
        ({"old_text": "Exchange the `cod`, find"}, "no-match: "),
        ({"old_text": "a", "new_text": "a"}, "no-change: "),
        ({"path": "CHALLENGE.md"}, "not-writable: "),
        ({"path": "specs/../proposal.md"}, "not-writable: "),
        ({"path": "specs/none.md"}, "not-found: "),
        (
            {"path": "proposal.md", "old_text": "- C1 (high, open): The callback accepts any `state`"},
            "review-block: ",
        ),
    ],
)
def test_edit_that_does_not_match_exactly_is_refused(plan: Hands, more: dict[str, Any], words: str) -> None:
    assert plan.refused("edit_file", **more).startswith(words)


def test_failed_match_shows_the_nearest_line(plan: Hands) -> None:
    told = plan.refused("edit_file", old_text="Exchange the `cod`, find or create the user, set the session cookie.")
    assert "Exchange the `code`, find or create the user" in told


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("create_proposal", {"impact.affected_specs": ["a", "a"]}, "bad-argument: "),
        ("create_proposal", {"impact.affected_specs": [{"id": "a", "depends": ["b"]}]}, "dependency-unknown: "),
        (
            "create_proposal",
            {"impact.affected_specs": [{"id": "a", "depends": ["b"]}, {"id": "b", "depends": ["a"]}]},
            "dependency-cycle: Circular dependency detected: a → b → a; drop one arrow",
        ),
        ("create_spec", {"spec_id": "auth-flo"}, "spec-unnamed: the proposal does not name auth-flo; use auth-flow"),
        ("create_spec", {"spec_id": "auth-flow"}, "not-a-delta: "),
        ("create_spec", {"requirements": [], "removed": [], "renamed": []}, "bad-argument: requirements is empty"),
        ("create_spec", {"scenarios": []}, "bad-argument: scenarios is empty"),
        ("create_spec", {"removed": [{"id": "R9", "reason": "x"}]}, "requirement-unknown: removed names R9"),
        ("create_spec", {"removed": [{"scenario": "No such", "reason": "x"}]}, "requirement-unknown: "),
        ("create_spec", {"removed": [{"reason": "x"}]}, "bad-argument: removed names neither"),
        ("create_spec", {"renamed": [{"from": "R4", "to": "the fourth"}]}, "bad-argument: renamed has no id"),
        ("create_spec", {"scenarios.0.requirement": "R9"}, "requirement-unknown: "),
        ("create_spec", {"requirements.0.id": "R5"}, "requirement-duplicate: 'R5' stands twice"),
        ("create_spec", {"requirements.0.id": "R0"}, 'bad-argument: requirements[0].id is "R0"; send a text like R1'),
        (
            "create_spec",
            {"requirements.0.titel": "x"},
            "bad-argument: unknown key requirements[0].titel; did you mean title?",
        ),
        ("write_spec", {"content": "# Spec: x\n\n## Overview\n\nx\n"}, "invalid-document: line 1: heading-missing"),
        ("write_spec", {"content": "---\na: [\n---\n# Spec\n"}, "invalid-document: "),
        ("create_tasks", {"tasks.0.depends": ["logic.9"]}, "dependency-unknown: task 1.1 depends on 2.9"),
        (
            "create_tasks",
            {"tasks.0.depends": ["logic.1"], "tasks.2.depends": ["data.1"]},
            "dependency-cycle: Circular dependency detected: data.1 → logic.1 → data.1; drop one",
        ),
        ("create_tasks", {"tasks.0.spec_ref": "user-model:R7"}, "spec-ref-unknown: task 1.1: user-model:R7"),
        ("create_tasks", {"tasks.0.spec_ref": None}, "spec-ref-unknown: task 1.1 has no spec_ref"),
        ("create_tasks", {"tasks.1.number": 1}, "task-duplicate: '1.1' stands twice"),
        ("create_tasks", {"tasks.0.file.path": "../x.py"}, "bad-argument: ../x.py leads out"),
        ("create_tasks", {"tasks.0.file.path": "agentd/config.toml"}, "bad-argument: "),
        (
            "create_tasks",
            {"change_id": "other"},
            "wrong-change: this server is bound to add-oauth; leave change_id out",
        ),
    ],
)
def test_plan_tool_refuses_invalid_arguments(plan: Hands, name: str, change: dict[str, Any], words: str) -> None:
    arguments = json.loads(json.dumps(EXAMPLES[name]))
    for path, value in change.items():
        *above, last = path.split(".")
        target: Any = arguments
        for step in above:
            target = target[int(step) if step.isdigit() else step]
        target[last] = value
    assert plan.refused(name, arguments).startswith(words)


def test_spec_written_as_markdown_keeps_its_frontmatter(plan: Hands) -> None:
    plan.call("write_spec")
    old = (EXAMPLE / "specs/user-model.md").read_text()
    front = old[: old.index("# Spec")]
    assert plan.text("specs/user-model.md") == front + EXAMPLES["write_spec"]["content"]


def test_finished_run_cannot_write(project: Scenario) -> None:
    with staged(project, Stage.PLAN) as on:
        hands = Hands(on)
        hands.call("edit_file")
    told = hands.refused("create_tasks")
    assert told.startswith("busy: the run that could write to add-oauth has ended")


# ---- answers


def test_answers_are_stored_in_the_run_folder(plan: Hands) -> None:
    told = plan.call("answer_finding")
    assert told["files"] == ["specs/user-model.md", "specs/auth-flow.md", "tasks.md"]
    assert told["unanswered"] == ["C2", "C3"]
    plan.call("answer_finding", id="C3", answer="disputed", note="It is there.")
    plan.call("answer_finding", note="Second thoughts.")
    answers = plan.on.run_json("answers.json")
    assert [(one["id"], one["answer"], one["note"], one["files"] != []) for one in answers.values()] == [
        ("C1", "fixed", "Second thoughts.", True),
        ("C3", "disputed", "It is there.", False),
    ]


def test_fixed_answer_needs_a_changed_file(plan: Hands) -> None:
    record = plan.folder / "reviews/challenge-1.yaml"
    text = record.read_text()
    for name, digest in plan.on.change.hashes().items():
        line = next(row for row in text.splitlines() if row.strip().startswith(f"{name}: sha256:"))
        text = text.replace(line, f"  {name}: {digest}")
    record.write_text(text)
    assert plan.refused("answer_finding").startswith("nothing-changed: no file changed since C1 was made; edit first")
    assert plan.call("answer_finding", answer="disputed")["files"] == []
    plan.call("edit_file")
    assert plan.call("answer_finding")["files"] == ["tasks.md"]


def test_only_open_findings_can_be_answered(plan: Hands) -> None:
    assert plan.refused("answer_finding", id="C9").startswith(
        "finding-unknown: there is no finding C9; these are open: C1"
    )
    (plan.folder / "reviews/challenge-2.yaml").write_bytes((EXAMPLE / "reviews/challenge-2.yaml").read_bytes())
    assert plan.refused("answer_finding").startswith("finding-closed: C1 is fixed")


def test_code_changes_are_detected_by_tree(project: Scenario) -> None:
    with staged(project, Stage.IMPLEMENT) as on:
        tree = on.run_json("run.json")["tree"]
        text = (EXAMPLE / "reviews/review-1.yaml").read_text().replace("1b3b87dbd8b8cf0d1a8202f91bdcd86e5c68aa72", tree)
        (on.change.folder / "reviews/review-1.yaml").write_text(text)
        hands = Hands(on)
        fix = {"id": "V2", "answer": "fixed", "note": "Named it."}
        assert hands.refused("answer_finding", fix).startswith("nothing-changed: ")
        project.write("src/notes/auth/callback.py", "SESSION_SECONDS = 604800\n")
        assert hands.call("answer_finding", fix)["files"] == ["src/notes/auth/callback.py"]


# ---- reports


def test_report_is_stored_with_ids_and_verified_evidence(challenge: Hands) -> None:
    told = challenge.call("append_review")
    assert told == {
        "verdict": "APPROVED",
        "reported": "APPROVED",
        "overruled": None,
        "findings": [
            {"id": "C4", "title": "The refusal has no status code", "where": "specs/auth-flow.md:77", "verified": True}
        ],
        "open": {"high": 0, "medium": 0, "low": 1},
    }
    report = challenge.on.run_json("report.json")
    assert [one["id"] for one in report["previous"]] == ["C1", "C2", "C3"]
    assert report["findings"][0]["evidence"]["quote"].startswith("**THEN**")


def finding(**more: Any) -> dict[str, Any]:
    return {"severity": "low", "title": "t", "what": "w", "suggestion": "s", **more}


@pytest.mark.parametrize(
    ("evidence", "where", "because"),
    [
        ({"file": "specs/auth-flow.md", "line": 2, "quote": "sign-in was cancelled"}, "specs/auth-flow.md:77", None),
        ({"file": "specs/auth-flow.md", "quote": "the   page says\tthat"}, "specs/auth-flow.md:77", None),
        ({"file": "specs/auth-flow.md", "line": 26}, "specs/auth-flow.md:26", None),
        ({"file": "specs/auth-flow.md", "line": 2000}, "specs/auth-flow.md:2000", "the file has 78 lines"),
        ({"file": "tasks.md", "line": 3, "quote": "not there"}, "tasks.md:3", "the quote is not in the file"),
        ({"file": "src/none.py", "line": 3}, "src/none.py:3", "the file is not there"),
        ({"file": "../../etc/passwd", "line": 1}, "../../etc/passwd:1", "the file is not there"),
        ({"file": ".git/config", "line": 1}, ".git/config:1", "the file is not there"),
        ({"file": "README.md"}, "README.md", "neither line nor quote was given"),
        (None, None, "no evidence was given"),
    ],
)
def test_quote_takes_precedence_over_the_line(
    challenge: Hands, evidence: Any, where: str | None, because: str | None
) -> None:
    given = finding(evidence=evidence) if evidence else finding()
    told = challenge.call("append_review", verdict="NEEDS_REVISION", findings=[given])
    (one,) = told["findings"]
    assert (one["where"], one["verified"], one.get("unverified_because")) == (where, because is None, because)


def test_code_evidence_is_read_from_the_reviewed_tree(review: Hands) -> None:
    review.on.box.write("src/notes/auth/callback.py", "edited after the review began\n")
    quote = {"file": "src/notes/auth/callback.py", "line": 9, "quote": "max_age = 604800"}
    told = review.call("append_review", findings=[finding(evidence=quote)])
    assert told["findings"] == [{"id": "V1", "title": "t", "where": "src/notes/auth/callback.py:1", "verified": True}]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"verdict": "PERFECT"},
            "bad-verdict: PERFECT is no verdict of a challenge; send APPROVED, NEEDS_REVISION, REJ",
        ),
        ({"verdict": "NEEDS_CHANGES"}, "bad-verdict: "),
        ({"previous": []}, "open-high: APPROVED while C1 is high and open; send another verdict, or settle it"),
        ({"previous": [{"id": "C1", "state": "open", "note": "still"}]}, "open-high: APPROVED while C1"),
        ({"findings": [finding(severity="high")]}, "open-high: APPROVED while C4"),
        ({"verdict": "REJECTED", "findings": []}, "finding-needed: REJECTED without an open finding"),
        ({"previous": [{"id": "C8", "state": "fixed", "note": "x"}]}, "finding-unknown: there is no finding C8; these"),
        (
            {"findings": [finding(severity="awful")]},
            'bad-argument: findings[0].severity is "awful"; send "high", "medium"',
        ),
        ({"summary": " "}, 'bad-argument: summary is " "; send a text'),
    ],
)
def test_contradictory_report_is_refused(challenge: Hands, more: dict[str, Any], words: str) -> None:
    assert challenge.refused("append_review", **more).startswith(words)
    assert not (run_folder(find_project(), challenge.on.token) / "report.json").exists()


def test_last_accepted_report_counts(challenge: Hands) -> None:
    challenge.call("append_review", verdict="NEEDS_REVISION", findings=[finding(title="first")])
    told = challenge.call("append_review", verdict="NEEDS_REVISION", findings=[finding(title="second")])
    assert told["findings"][0]["id"] == "C4", "ids are given anew"
    challenge.refused("append_review", verdict="PERFECT")
    assert challenge.on.run_json("report.json")["findings"][0]["title"] == "second"


def test_failed_check_overrules_an_approval(review: Hands) -> None:
    path = run_folder(find_project(), review.on.token) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "failed_checks": ["tests"]}))
    told = review.call("append_review")
    assert (told["verdict"], told["reported"]) == ("NEEDS_CHANGES", "APPROVED")
    assert told["overruled"] == "The required check tests failed, so the verdict is NEEDS_CHANGES."
    assert review.call("append_review", verdict="NEEDS_FIX")["verdict"] == "NEEDS_CHANGES", "an older word for it"


def test_finding_of_a_failed_check_does_not_refuse_a_report(review: Hands) -> None:
    (review.folder / "reviews/review-1.yaml").write_bytes((EXAMPLE / "reviews/review-1.yaml").read_bytes())
    assert review.call("append_review", previous=[])["open"] == {"high": 1, "medium": 0, "low": 2}


def test_open_count_includes_agentds_own_findings_and_excludes_settled_ones(review: Hands) -> None:
    (review.folder / "reviews/review-1.yaml").write_bytes((EXAMPLE / "reviews/review-1.yaml").read_bytes())
    path = run_folder(find_project(), review.on.token) / "run.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "settled": {"V1": "fixed"}, "own": ["medium", "low"]}))
    assert review.call("append_review", previous=[])["open"] == {"high": 0, "medium": 1, "low": 3}
    path.write_text(json.dumps({**known, "settled": {"V2": "fixed"}}))
    assert review.call("append_review", previous=[])["open"] == {"high": 1, "medium": 0, "low": 2}, "V2 is the judge's"


def test_code_reviewer_cannot_address_plan_findings(review: Hands) -> None:
    reviews = review.folder / "reviews"
    (reviews / "review-1.yaml").rename(reviews / "challenge-1.yaml")
    (reviews / "challenge-1.yaml").write_bytes((EXAMPLE / "reviews/challenge-1.yaml").read_bytes())
    assert review.refused("append_review").startswith("finding-unknown: there is no finding C1")


# ---- reading


def test_review_blocks_are_hidden_from_agents(plan: Hands) -> None:
    text = plan.call("read_file", {"path": "proposal.md"})
    example = (EXAMPLE / "proposal.md").read_text()
    assert text == example[: example.index("<review ")]


def test_long_file_is_read_in_pieces(plan: Hands) -> None:
    plan.on.box.write("long.txt", "".join(f"line {number}\n" for number in range(1, 4311)))
    first = plan.call("read_file", {"path": "long.txt"})
    assert first.endswith("line 2000\n[lines 1-2000 of 4310; go on with offset 2001]")
    last = plan.call("read_file", {"path": "long.txt", "offset": 4001, "limit": 400})
    assert last.startswith("line 4001\n") and last.endswith("line 4310\n")
    plan.on.box.write("wide.txt", "x" * 250_000 + "\nend\n")
    assert "[line 1 has 250000 characters; the rest is cut]" in plan.call("read_file", {"path": "wide.txt"})
    assert plan.call("read_file", {"path": "wide.txt", "offset": 2}) == "end\n"


def test_diff_lists_all_files_and_then_shows_them(review: Hands) -> None:
    text = review.call("get_diff", {})
    assert text.startswith(
        "2 files changed\nMODIFY src/notes/auth/callback.py (+1 -1)\nCREATE src/notes/auth/new.py (+1 -0)\n"
    )
    assert "-max_age = 1\n+max_age = 604800\n" in text
    assert "agentd/changes" not in text
    one = review.call("get_diff", {"path": "src/notes/auth/new.py"})
    assert "+state = None" in one and "callback" not in one
    assert review.refused("get_diff", {"path": "src/new.py"}).startswith(
        "not-in-diff: src/new.py did not change; these did"
    )


def test_validation_reports_findings(plan: Hands) -> None:
    assert plan.call("validate_change") == {
        "valid": True,
        "high_count": 0,
        "medium_count": 0,
        "low_count": 0,
        "findings": [],
    }
    plan.call("edit_file", path="specs/auth-flow.md", old_text="## Overview\n", new_text="## Overview\n\nTBD\n")
    told = plan.call("validate_change", strict=True)
    assert (told["valid"], told["medium_count"], told["findings"][0]["rule"]) == (False, 1, "placeholder")


# ---- a person's own session


def test_change_is_returned_as_in_the_contract(unbound: Hands) -> None:
    change = unbound.on.change
    example = state.parse_state((EXAMPLE / "STATE.yaml").read_text())
    change.update(lambda old: replace(example, git=old.git))
    (unbound.folder / "reviews/challenge-2.yaml").write_bytes((EXAMPLE / "reviews/challenge-2.yaml").read_bytes())
    (unbound.folder / "CHALLENGE.md").write_bytes((EXAMPLE / "CHALLENGE.md").read_bytes())
    told = unbound.call("get_change")
    blocks = (EXAMPLE / "tools.md").read_text().split("## get_change")[1].split("```json\n")
    contract = json.loads(blocks[2].split("```")[0])
    for own in ("updated_at", "git"):
        told.pop(own), contract.pop(own)
    assert told.pop("overlaps") == [], "a key besides those of the contract"
    assert told == contract
    (row,) = unbound.call("list_changes")["changes"]
    keys = ["change_id", "phase", "round", "verdict", "open", "cost", "running", "updated_at", "next", "overlaps"]
    assert list(row) == keys


def test_clarifications_are_written_for_a_new_change(unbound: Hands, project: Scenario) -> None:
    told = unbound.call("create_clarifications", change_id="new-one")
    text = (project.root / "agentd/changes/new-one/clarifications.md").read_text()
    example = (EXAMPLE / "clarifications.md").read_text()
    date = text.split("date: ")[1][:10]
    assert text == example.replace("add-oauth", "new-one").replace("2026-01-19", date)
    assert told["revised"] is False
    assert unbound.call("create_clarifications", change_id="new-one")["revised"] is True
    assert lifecycle.is_incomplete(project.root / "agentd/changes/new-one")


def test_edited_clarifications_must_be_read_before_they_are_replaced(unbound: Hands, project: Scenario) -> None:
    unbound.call("create_clarifications", change_id="new-one")
    path = project.root / "agentd/changes/new-one/clarifications.md"
    path.write_text(path.read_text() + "\nBy hand.\n")
    assert unbound.refused("create_clarifications", change_id="new-one").startswith("stale: clarifications.md changed")
    unbound.call("read_file", {"path": "clarifications.md", "change_id": "add-oauth"})
    assert unbound.refused("create_clarifications", change_id="new-one").startswith("stale: "), "another change's"
    unbound.call("read_file", {"path": "agentd/changes/new-one/clarifications.md"})
    assert unbound.call("create_clarifications", change_id="new-one")["revised"] is True


def test_clarifications_are_refused_after_a_proposal(unbound: Hands, project: Scenario) -> None:
    assert unbound.refused("create_clarifications").startswith("too-late: add-oauth has a proposal already")
    unbound.on.change.update(lambda old: old.with_transition(TransitionEvent.DROPPED, by="person:dev", why="", at="t"))
    assert unbound.refused("create_clarifications").startswith("id-taken: add-oauth is finished; use add-oauth-1")
    project.write("agentd/archive/20260119-older/STATE.yaml", (EXAMPLE / "STATE.yaml").read_text())
    assert unbound.refused("create_clarifications", change_id="older").startswith(
        "id-taken: older is taken; use older-1"
    )


def test_personal_session_only_reads_while_a_run_is_active(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "new-one", "words")
    hands = Hands(Staged(project, change, Stage.UNBOUND, ""))
    with change.running("agentd plan new-one"):
        assert hands.refused("create_clarifications", change_id="new-one").startswith(
            "busy: new-one is being worked on by"
        )
        assert hands.call("list_changes")["changes"][0]["change_id"] == "new-one"
    assert hands.call("create_clarifications", change_id="new-one")["revised"] is False


def test_personal_session_must_name_the_change(unbound: Hands) -> None:
    assert unbound.refused("validate_change", {}).startswith("bad-argument: change_id is missing")
    assert unbound.refused("get_change", {"change_id": "ad-oauth"}).startswith(
        "not-found: there is no change 'ad-oauth'; did"
    )
    assert "API endpoints" in unbound.call("read_file", {"path": "agentd/specs/api-endpoints.md"})
    assert unbound.call("read_file", {"path": "tasks.md", "change_id": "add-oauth"}).startswith("---\nid: add-oauth")


# ---- all tools


@pytest.mark.parametrize("stage", Stage)
def test_tool_of_another_stage_is_unknown(project: Scenario, stage: Stage) -> None:
    with staged(project, stage) as on:
        hands = Hands(on)
        for tool in TOOLS:
            if stage not in tool.stages:
                assert hands.refused(tool.name).startswith(f"not-found: there is no tool {tool.name} here; use ")


def test_personal_session_has_no_tool_that_could_approve() -> None:
    names = {tool.name for tool in TOOLS if Stage.UNBOUND in tool.stages}
    assert not names & {"append_review", "answer_finding", "create_proposal", "create_tasks", "edit_file"}


def test_call_over_a_million_characters_is_too_large(plan: Hands) -> None:
    assert plan.refused("edit_file", new_text="x" * 1_000_001).startswith("too-large: ")


def test_recommended_answer_must_be_one_of_the_options(project: Scenario) -> None:
    with staged(project, Stage.CLARIFY) as on:
        hands = Hands(on)
        assert hands.call("ask_questions") == {"accepted": 1}
        assert hands.call("ask_questions", questions=[]) == {"accepted": 0}
        assert on.run_json("questions.json") == []
        question = {**EXAMPLES["ask_questions"]["questions"][0], "recommended": "Something else"}
        assert hands.refused("ask_questions", questions=[question]).startswith("bad-argument: questions[0].recommended")
