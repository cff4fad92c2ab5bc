"""`agentd run`: plan and impl as one command, and `git.commit = "per-step"`."""

from pathlib import Path

from plans import GREETING_DOCUMENTS, GREETING_TEST
from playbooks import APPROVE, Action, call, finding, implement, report, say, usage, write
from scenario import Scenario

GREET = ("run", "greet", "Greet people by name", "--skip-clarify")
CHECK = '[[checks]]\nname = "tests"\ncommand = "python3 -m unittest -q"\nrequired = true\ntimeout = 60\n'


def whole(**other: list[Action]) -> dict[str, list[Action]]:
    """A plan by an agent that writes its documents itself, and its code."""
    documents = [write(f"agentd/changes/greet/{name}", text) for name, text in GREETING_DOCUMENTS.items()]
    steps = {
        "plan-gen": [*documents, usage(0.03), say("Written.")],
        "challenge": [call("append_review", **APPROVE), usage(0.05), say("Reported.")],
        "implement-greeting": implement(),
        "review": report(),
    }
    return steps | {name.replace("_", "-"): actions for name, actions in other.items()}


def ready(box: Scenario, steps: dict[str, list[Action]], git: str = "") -> None:
    box.write("tests/__init__.py", "")
    box.write(".gitignore", "__pycache__/\n")
    box.with_agents(steps, CHECK, "human_in_loop = false\nself_review_iterations = 0\n")
    if git:
        config = box.root / "agentd/config.toml"
        box.write("agentd/config.toml", config.read_text().replace('setup = "in-place"', f'setup = "in-place"\n{git}'))
        box.commit("settings")


def test_run_plans_and_then_implements(project: Scenario) -> None:
    ready(project, whole())
    ran = project.agentd(*GREET, "--json")
    assert (ran.code, ran.json["command"], ran.json["phase"]) == (0, "run", "complete"), ran.err
    assert ran.json["message"] == "APPROVED - Complete, ready to archive!"
    assert ran.json["next"] == "agentd archive greet"
    assert (project.root / "tests/test_greeting.py").read_text() == GREETING_TEST
    again = project.agentd("run", "greet")
    assert again.code == 0 and "greet is complete" in again.out


def test_run_stops_for_a_decision_and_continues_after_it(project: Scenario) -> None:
    revise = {**APPROVE, "verdict": "NEEDS_REVISION", "findings": [finding()]}
    ready(project, whole(challenge=[call("append_review", **revise), usage(0.05), say("Reported.")]))
    config = (project.root / "agentd/config.toml").read_text()
    project.write("agentd/config.toml", config.replace("[workflow]\n", "[workflow]\nplanning_iterations = 0\n"))
    stopped = project.agentd(*GREET, "--json", "--trust")
    assert (stopped.code, stopped.json["phase"]) == (1, "proposed")
    assert stopped.json["decision_needed"]["id"] == "after-challenge-1"
    assert project.agentd("plan", "greet", "--accept", "Good enough.").code == 0
    ended = project.agentd("run", "greet", "--json")
    assert (ended.code, ended.json["phase"]) == (0, "complete")


def test_detached_run_gives_the_same_result(project: Scenario) -> None:
    ready(project, whole())
    assert project.agentd(*GREET, "--detach").code == 0
    ended = project.agentd("wait", "greet", "--json")
    assert (ended.code, ended.json["state"], ended.json["result"]["command"]) == (0, "ended", "run")
    assert ended.json["result"]["phase"] == "complete"


def test_each_step_commits_its_work_on_the_changes_branch(project: Scenario) -> None:
    ready(project, whole(), 'commit = "per-step"')
    project.write("notes.txt", "mine")
    project.write("staged.txt", "mine too")
    project.git("add", "staged.txt")
    ran = project.agentd(*GREET, "--git", "branch", "--trust", "--json")
    assert ran.code == 0, ran.err
    subjects = project.git("log", "--format=%s", "main..agentd/greet").splitlines()[::-1]
    made = ["plan-gen", "challenge", "end of plan", "implement-greeting", "review", "end of impl"]
    assert subjects == [f"greet: {one}" for one in made]
    assert project.git("status", "--porcelain", "agentd") == "", "STATE.yaml as it is at the end is committed too"
    code = project.git("show", "--name-only", "--format=", "agentd/greet~2").splitlines()
    assert {"greeting.py", "tests/test_greeting.py"} <= set(code)
    assert project.git("status", "--porcelain", "notes.txt", "staged.txt").splitlines() == [
        "A  staged.txt",
        "?? notes.txt",
    ]
    assert project.git("rev-list", "--count", "main") == "3", "the other branch is as it was"


def test_nothing_is_committed_without_a_separate_branch_and_a_warning_is_shown(project: Scenario) -> None:
    ready(project, whole(), 'commit = "per-step"')
    before = project.git("rev-parse", "HEAD")
    ran = project.agentd(*GREET, "--trust")
    assert ran.code == 0 and "has no branch of its own, so nothing is committed" in ran.err
    assert project.git("rev-parse", "HEAD") == before


def test_commit_refused_by_a_hook_does_not_stop_the_run(project: Scenario) -> None:
    ready(project, whole(), 'commit = "per-step"')
    hook = Path(project.root, ".git/hooks/pre-commit")
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    ran = project.agentd(*GREET, "--git", "branch", "--trust")
    assert ran.code == 0 and "could not be committed" in ran.err and "not today" in ran.err


def test_run_implements_an_approved_plan(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()})
    ran = project.agentd("run", "greet", "--json")
    assert (ran.code, ran.json["phase"]) == (0, "complete"), ran.err
