"""Set up the sample project and play the acts: questions in this process, everything else by the real command."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from agentd.change import ChangeLocator, next_command
from agentd.demo import verification, workspace
from agentd.demo.story import ACTS, ANSWERS, DEMO_CHANGE_ID, DESCRIPTION, Act, StoryPoint
from agentd.demo.workspace import DemoWorkspace, inside_workspace
from agentd.domain import GitSetup, Interrupted, JournalEntry, Refusal, Role
from agentd.engine import DecisionAnswer, NewChange, Question, RunRequest, open_or_create_change, run_workflow
from agentd.project import find_project, git, grant_trust, load_config, trust_items

PLAYBOOK = "agentd/playbook.yaml"
_GIT_CONFIG = "[user]\n\tname = Demo\n\temail = demo@example.invalid\n[init]\n\tdefaultBranch = main\n"
_ROLES = {
    Role.PLANNER: "scripted-planner",
    Role.CHALLENGER: "scripted-judge",
    Role.IMPLEMENTER: "scripted-coder",
    Role.REVIEWER: "scripted-judge",
}
_AGENT = """
[agents.{name}]
kind = "scripted"
playbook = "{playbook}"

[[agents.{name}.models]]
id = "script"
model = "as-if"
complexity = ["low", "medium", "high", "critical"]
"""
_PRICES = """
# Simulated: no model is called, and nothing is charged.
[prices."as-if"]
input = 2.5
output = 12.0
"""


def set_up_sample(place: DemoWorkspace) -> str:
    """Set up the project, from within the workspace; return the command of the check that `init` detected."""
    place.git_config.write_text(_GIT_CONFIG)
    _copy_sample(place)
    git.run(str(place.project), "init", "--quiet")
    commit_sample(place, "Split an expense equally")
    done = _init()
    _assign_roles(place)
    commit_sample(place, "Set up agentd, with agents that play a script")
    project = find_project()
    grant_trust(project, trust_items(project, load_config(project.config_file)), os.environ)
    return str(done["checks"][0]["command"])


def commit_sample(place: DemoWorkspace, message: str) -> None:
    git.run(str(place.project), "add", "--all")
    git.run(str(place.project), "commit", "--quiet", "--message", message)


def merge_sample(place: DemoWorkspace) -> None:
    """Switch to the main branch and merge the change."""
    git.run(str(place.project), "switch", "--quiet", "main")
    git.run(str(place.project), "merge", "--quiet", "--ff-only", f"agentd/{DEMO_CHANGE_ID}")


def _copy_sample(place: DemoWorkspace) -> None:
    with as_file(files("agentd.demo").joinpath("sample")) as sample:
        # installers may compile a package's modules
        shutil.copytree(sample, place.project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def _init() -> dict[str, Any]:
    done = workspace.capture_command("init", "--no-commit", "--no-skills", "--json")
    data: dict[str, Any] = json.loads(done.out) if done.code == 0 else {}
    if not data.get("checks"):
        raise Refusal(f"agentd init did not find the tests of the sample: {done.told}", "agentd doctor")
    return data


def _assign_roles(place: DemoWorkspace) -> None:
    """Replace the agents that `init` assigned with scripted ones."""
    (place.project / PLAYBOOK).write_text(files("agentd.demo").joinpath("playbook.yaml").read_text("utf-8"), "utf-8")
    path = place.project / "agentd" / "config.toml"
    text = path.read_text("utf-8")
    for role, name in _ROLES.items():
        text = re.sub(rf"^{role} = .*$", f'{role} = "{name}"', text, count=1, flags=re.MULTILINE)
    agents = (_AGENT.format(name=name, playbook=PLAYBOOK) for name in dict.fromkeys(_ROLES.values()))
    path.write_text("".join((text, *agents, _PRICES)), "utf-8")


Watcher = Callable[[JournalEntry], None]
Ask = Callable[[], None]
Run = Callable[..., workspace.ChildResult]


class DemoFailed(Refusal):
    """An act did not end as expected."""

    hint = "agentd demo --keep leaves the folder, to look at what is there"


@dataclass(frozen=True)
class ScriptedPerson:
    """Answers from the script; `seen` is called with each question and its answer."""

    seen: Callable[[Question, str], None] = lambda question, answer: None

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        answer = ANSWERS[question.id]
        self.seen(question, answer)
        return DecisionAnswer(answer, f"person:{git.user_name(os.getcwd())}", "terminal")

    def tell(self, lines: Sequence[str]) -> None:
        pass  # the planner's questions need no introduction

    def wait(self, text: str) -> None:
        pass

    def show(self, path: str) -> None:
        pass


def play_clarification(person: ScriptedPerson, watch: Watcher = lambda entry: None) -> None:
    """Create the change on its own branch and answer the planner's questions."""
    command = f"agentd plan {DEMO_CHANGE_ID}"
    request = RunRequest("clarify", requested_id=DEMO_CHANGE_ID, command_line=command)
    project = find_project()
    change = open_or_create_change(
        project,
        request,
        NewChange(DESCRIPTION),
        lambda: load_config(project.config_file),
        lambda change_id, config: GitSetup.BRANCH,
        lambda note: None,
        can_answer=True,
    )
    result = run_workflow(change, request, watch, person)
    if result.is_interrupted:
        raise Interrupted("interrupted")
    if error := result.data["error"]:
        raise DemoFailed(f"{command} failed: {error['message']}", error["hint"])


def play_act(
    place: DemoWorkspace,
    act: Act,
    ask: Ask = lambda: play_clarification(ScriptedPerson()),
    run: Run = workspace.capture_command,
) -> None:
    """Play one act from within the workspace: run it, verify it and commit the result."""
    if act.point is StoryPoint.CLARIFIED:
        ask()
    else:
        _run(act, run)
    if problems := verification.find_mistakes(place, act.point):
        raise DemoFailed(
            "\n".join((f"the demo went wrong after {typed_command(act)}", *(f"  {one}" for one in problems)))
        )
    if act.commit:
        commit_sample(place, act.commit)
    if act.point is StoryPoint.ARCHIVED:
        merge_sample(place)


def prepare_demo(folder: Path, until: StoryPoint) -> DemoWorkspace:
    """Create the sample project in a folder, with its change at a point of the story. For screenshots and tests."""
    place = DemoWorkspace(folder)
    with inside_workspace(place):
        set_up_sample(place)
        for act in ACTS[: [one.point for one in ACTS].index(until) + 1]:
            play_act(place, act)
    return place


def continue_command(place: DemoWorkspace) -> str:
    """Return the command that continues after an interruption; "" before the change exists and after its archive."""
    if not verification.change_folder(place).is_dir():
        return ""
    project = find_project(str(place.project))
    found = next((one for one in ChangeLocator(project).open() if one.id == DEMO_CHANGE_ID), None)
    command = found and next_command(project, found)
    # The demo's own user trusts the commands; the real one does not yet.
    trust = " --trust" if command in (f"agentd plan {DEMO_CHANGE_ID}", f"agentd impl {DEMO_CHANGE_ID}") else ""
    return f"cd {shlex.quote(str(place.project))} && {command}{trust}" if command else ""


def typed_command(act: Act) -> str:
    return shlex.join(("agentd", *act.command))


def commit_command(act: Act) -> list[str]:
    """Return what a person would type to commit the result of an act; `play_act` has done it."""
    typed = ["git add --all", f"git commit --message {shlex.quote(act.commit)}"] if act.commit else []
    return (
        [*typed, "git switch main", f"git merge agentd/{DEMO_CHANGE_ID}"] if act.point is StoryPoint.ARCHIVED else typed
    )


def _run(act: Act, run: Run) -> None:
    done = run(*act.command)
    if done.code == Interrupted.exit_code:
        raise Interrupted("interrupted")
    if done.code != act.code:
        words = f"{typed_command(act)} ended with exit code {done.code}, and should have ended with {act.code}"
        raise DemoFailed("\n".join(filter(None, (words, done.told))))
