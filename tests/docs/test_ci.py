"""The workflow of docs/how-to/ci.md, run twice: the second run goes on where the first has stopped."""

import json
import os
from pathlib import Path
from typing import Any

import reference
from agentd.change.folder import read_state
from agentd.domain import yaml12
from plans import GREETING_DOCUMENTS
from playbooks import APPROVE, Action, answer, call, finding, implement, report, say, usage, write
from program import AGENTD
from scenario import UNITTEST, Result, Scenario

TOKEN = "a-token"
PUSHED_TO = f"https://x-access-token:{TOKEN}@github.com/owner/notes"
INPUTS = {"id": "greet", "description": "Greet people by name"}


def steps() -> list[dict[str, Any]]:
    """The scripts of the job that plans and implements; what it installs is here already."""
    text = (reference.DOCS / "how-to/ci.md").read_text()
    [block] = [one.partition("\n```")[0] for one in text.split("```yaml\n") if "workflow_dispatch" in one]
    found = [step for step in yaml12.load(block)["jobs"]["change"]["steps"] if "run" in step]
    assert [step["name"] for step in found].count("Install") == 1
    return [step for step in found if step["name"] != "Install"]


def filled(step: dict[str, Any]) -> dict[str, str]:
    known = {**{f"inputs.{name}": value for name, value in INPUTS.items()}, "github.token": TOKEN}
    values = {name: value.removeprefix("${{ ").removesuffix(" }}") for name, value in step.get("env", {}).items()}
    return {name: known.get(value, "") for name, value in values.items()}


def job(origin: Scenario, bare: Path, folder: Path) -> tuple[dict[str, Result], dict[str, Any]]:
    """As a runner does it, in a fresh clone: its steps by name, and what agentd told at the end."""
    folder.mkdir()
    origin.git("clone", "--quiet", str(bare), str(folder / "clone"), cwd=folder)
    origin.env |= {"GITHUB_STEP_SUMMARY": str(folder / "summary"), "RUNNER_TEMP": str(folder)}
    done: dict[str, Result] = {}
    for step in steps():
        if step.get("if") == "always()" or all(one.code == 0 for one in done.values()):
            origin.env |= filled(step)
            done[step["name"]] = origin.execute("bash", "-ec", step["run"], cwd=folder / "clone")
    return done, json.loads((folder / "result.json").read_text())


def served(box: Scenario, steps: dict[str, list[Action]], folder: Path) -> Path:
    """The project behind the address that the workflow pushes to."""
    check = f'[[checks]]\nname = "tests"\ncommand = "{UNITTEST}"\nrequired = true\ntimeout = 60\n'
    box.write("tests/__init__.py", "")
    box.write(".gitignore", "__pycache__/\n")
    box.with_agents(steps, check, "human_in_loop = false\nself_review_iterations = 0\nimplementation_iterations = 1\n")
    bare = folder / "bare.git"
    box.git("clone", "--quiet", "--bare", str(box.root), str(bare))
    box.git("config", "--global", f"url.{bare}.insteadOf", PUSHED_TO)
    (folder / "programs").mkdir()
    (folder / "programs" / "jq").write_text("#!/bin/sh\nexit 0\n")  # a runner has one; what it prints is for people
    (folder / "programs" / "jq").chmod(0o755)
    path = os.pathsep.join((os.path.dirname(AGENTD), str(folder / "programs"), box.env["PATH"]))
    box.env |= {"GITHUB_REPOSITORY": "owner/notes", "PATH": path}
    return bare


def test_second_ci_run_continues_where_the_first_stopped(project: Scenario, tmp_path: Path) -> None:
    documents = [write(f"agentd/changes/greet/{name}", text) for name, text in GREETING_DOCUMENTS.items()]
    held = {"id": "V1", "state": "open", "note": "It does break."}
    playbook = {
        "plan-gen": [*documents, usage(0.03), say("Written.")],
        "challenge": [call("append_review", **APPROVE), usage(0.05), say("Reported.")],
        "implement-greeting": implement(),
        "review/1": report("NEEDS_CHANGES", finding()),
        "resolve": [answer("V1", "disputed"), usage(0.1), say("It does not.")],
        "review/2": report("NEEDS_CHANGES", previous=[held]),
        "review/3": report(previous=[{**held, "state": "withdrawn", "note": "Indeed."}]),
    }
    bare = served(project, playbook, tmp_path)

    first, was = job(project, bare, tmp_path / "first")
    assert [ran.code for ran in first.values()] == [0, 1, 0], first
    assert (was["phase"], was["verdict"]) == ("implementing", "NEEDS_CHANGES")

    second, now = job(project, bare, tmp_path / "second")
    assert [ran.code for ran in second.values()] == [0, 0, 0], second
    assert (now["phase"], now["verdict"]) == ("complete", "APPROVED")
    steps = [step.name for step in read_state(tmp_path / "second/clone/agentd/changes/greet").steps]
    assert steps.count("plan-gen") == steps.count("implement-greeting") == 1, "what was done is not done again"
    subjects = project.git("log", "--format=%s", "main..agentd/greet", cwd=bare).splitlines()
    assert subjects[0] == "greet: end of impl" and subjects.count("greet: plan-gen") == 1
