"""What scripted agents do: single actions, and playbooks for whole plans and for code."""

from collections.abc import Sequence
from typing import Any

from plans import (
    EXAMPLE,
    EXAMPLE_SPECS,
    GOOD_CODE,
    GREETING_TEST,
    SIGN_IN_DOCUMENTS,
    SIGN_IN_ID,
    SPEC,
    SPEC_FILE,
    example_calls,
)

Action = dict[str, Any]
Steps = dict[str, list[Action]]

FOLDER = f"agentd/changes/{SIGN_IN_ID}"
PASS = "<review>PASS</review>"
APPROVE = {"verdict": "APPROVED", "summary": "It holds.", "findings": [], "previous": []}
HANG: Action = {"wait": 600}


# ---- actions


def say(text: str) -> Action:
    return {"say": text}


def usage(cost: float | None = None, tokens: int = 1000) -> Action:
    return {"usage": {"in": tokens, "out": 10} | ({} if cost is None else {"cost": cost})}


def call(tool: str, **arguments: Any) -> Action:
    return {"call": tool, "with": arguments}


def write(path: str, text: str) -> Action:
    return {"write": path, "text": text}


def edit(path: str, old: str, new: str) -> Action:
    return {"edit": path, "old": old, "new": new}


def write_document(name: str, text: str = "") -> Action:
    """Writes a document of the change without a tool."""
    return write(f"{FOLDER}/{name}", text or SIGN_IN_DOCUMENTS[name])


def edit_document(name: str, old: str, new: str) -> Action:
    return edit(f"{FOLDER}/{name}", old, new)


def edit_spec(number: int = 1) -> Action:
    """The planner's number-th edit of the spec, without a tool."""
    old, new = ("A user is" if one == 0 else f"A user ({one}) is" for one in (number - 1, number))
    return edit_document(SPEC_FILE, old, new)


def edit_spec_by_tool(old: str, new: str) -> Action:
    return call("edit_file", path=f"{FOLDER}/{SPEC_FILE}", old_text=old, new_text=new)


def write_spec(spec_id: str) -> Action:
    """The example's own text of a spec."""
    return call("write_spec", spec_id=spec_id, content=(EXAMPLE / "specs" / f"{spec_id}.md").read_text())


def propose() -> Action:
    return call("create_proposal", **example_calls()["create_proposal"])


def answer(id_: str, word: str = "fixed", note: str = "Because.") -> Action:
    return call("answer_finding", id=id_, answer=word, note=note)


def ask(*questions: dict[str, Any]) -> list[Action]:
    """The planner asks these, and reports what that cost."""
    return [call("ask_questions", questions=list(questions)), usage(0.02), say("Asked.")]


# ---- judges


def finding(severity: str = "high", title: str = "It breaks", **more: Any) -> dict[str, Any]:
    return {"severity": severity, "title": title, "what": "So it does.", "suggestion": "Mend it.", **more}


def report(word: str = "APPROVED", *findings: dict[str, Any], **more: Any) -> list[Action]:
    """A judge reports by its tool."""
    arguments = {**APPROVE, "verdict": word, "findings": list(findings), **more}
    return [call("append_review", **arguments), usage(0.05), say("Reported.")]


def report_in_text(word: str, *found: tuple[str, str]) -> list[Action]:
    """A judge answers in text: a verdict, and a severity and title for each finding."""
    issues = [f"### {title}\n\n- **Severity**: {severity}\n- **Description**: So.\n" for severity, title in found]
    return [usage(0.05), say("\n".join([f"**Verdict**: {word}\n\n## Issues\n", *issues]))]


def previous(note: str = "Seen.", **states: str) -> list[dict[str, Any]]:
    """What a judge says of earlier findings."""
    return [{"id": id_, "state": state, "note": note} for id_, state in states.items()]


APPROVED = [usage(0.05), say("It holds.\n\n**Verdict**: APPROVED")]
NEEDS_CHANGES = [usage(0.05), say("It does not hold.\n\n**Verdict**: NEEDS_CHANGES")]
NEEDS_REVISION = report_in_text("NEEDS_REVISION", ("High", "It breaks"), ("Medium", "It is slow"))


# ---- plans


def plan_steps(**other: list[Action]) -> Steps:
    """A plan that is approved, by agents that use no tools; `proposal_gen=[…]` is what another agent does there."""
    review = [usage(0.001), say(f"Looked.\n\n{PASS}")]
    steps: Steps = {
        "proposal-gen": [write_document("proposal.md"), usage(0.01)],
        "proposal-review": review,
        f"spec-gen-{SPEC}": [write_document(SPEC_FILE), usage(0.01)],
        f"spec-review-{SPEC}": review,
        "tasks-gen": [write_document("tasks.md"), usage(0.01)],
        "tasks-review": review,
        "plan-gen": [*(write_document(name) for name in SIGN_IN_DOCUMENTS), usage(0.03)],
        "plan-review": review,
        "challenge": APPROVED,
    }
    return steps | {name.replace("_", "-"): actions for name, actions in other.items()}


def example_plan_steps(specs: Sequence[str] = EXAMPLE_SPECS) -> Steps:
    """The contract's example, written by tools and approved."""
    calls = example_calls()
    review = [usage(0.001), say(f"Looked.\n\n{PASS}")]
    steps: Steps = {
        "proposal-gen": [call("create_proposal", **calls["create_proposal"]), usage(0.01), say("Written.")],
        "proposal-review": review,
        "spec-review-*": review,
        "tasks-gen": [call("create_tasks", **calls["create_tasks"]), usage(0.01), say("Written.")],
        "tasks-review": review,
        "challenge": report("APPROVED"),
    }
    for one in specs:
        steps[f"spec-gen-{one}"] = [write_spec(one), usage(0.01), say("Written.")]
    every = [steps["proposal-gen"][0], *(write_spec(one) for one in specs), steps["tasks-gen"][0]]
    steps["plan-gen"] = [*every, usage(0.03), say("All written.")]
    steps["plan-review"] = review
    return steps


def small_plan_steps() -> Steps:
    """The same with one new spec."""
    steps = example_plan_steps()
    proposal = example_calls()["create_proposal"]
    proposal["impact"] |= {"scope": "patch", "affected_specs": [SPEC], "affected_files": 2}
    tasks = example_calls()["create_tasks"]["tasks"][:2]
    steps["proposal-gen"][0] = call("create_proposal", **proposal)
    steps["tasks-gen"][0] = call("create_tasks", tasks=tasks)
    steps["plan-gen"] = [steps["proposal-gen"][0], write_spec(SPEC), steps["tasks-gen"][0], usage(0.03), say("All.")]
    return steps


# ---- code


def implement(code: str = GOOD_CODE, tests: str = GREETING_TEST) -> list[Action]:
    """The implementer writes the greeting and its tests."""
    return [write("greeting.py", code), write("tests/test_greeting.py", tests), usage(0.1), say("All tests pass.")]
