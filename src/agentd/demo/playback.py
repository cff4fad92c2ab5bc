"""How an act is played: the questions in this process, everything else by the real command as a child."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.change import ChangeLocator, next_command
from agentd.demo import verification, workspace
from agentd.demo.sample_setup import commit_sample, merge_sample, set_up_sample
from agentd.demo.story import ACTS, ANSWERS, DEMO_CHANGE_ID, DESCRIPTION, Act, StoryPoint
from agentd.demo.workspace import DemoWorkspace, inside_workspace
from agentd.domain import GitSetup, Interrupted, JournalEntry, Refusal, Workflow
from agentd.engine import (
    DecisionAnswer,
    Question,
    RunOptions,
    StepContext,
    begin_change,
    begin_run,
    change_project,
    clarify_first,
)
from agentd.project import find_project, git, load_config

Watcher = Callable[[JournalEntry], None]
Ask = Callable[[], None]
Run = Callable[..., workspace.ChildResult]


class DemoFailed(Refusal):
    """The demo did not go as it should; it never pretends."""

    hint = "agentd demo --keep leaves the folder, to look at what is there"


@dataclass(frozen=True)
class ScriptedPerson:
    """Answers as the story has it; `seen` is told each question with its answer."""

    seen: Callable[[Question, str], None] = lambda question, answer: None

    def choose(self, question: Question, otherwise: Callable[[], DecisionAnswer | None]) -> DecisionAnswer:
        answer = ANSWERS[question.id]
        self.seen(question, answer)
        return DecisionAnswer(answer, f"person:{git.user_name(os.getcwd())}", "terminal")

    def tell(self, lines: Sequence[str]) -> None:
        pass  # the planner's questions need no words before them

    def wait(self, text: str) -> None:
        pass

    def show(self, path: str) -> None:
        pass


def play_clarification(person: ScriptedPerson, watch: Watcher = lambda entry: None) -> None:
    """The change is begun on a branch of its own, and the planner's questions are answered."""
    change = begin_change(find_project(), DEMO_CHANGE_ID, DESCRIPTION, GitSetup.BRANCH, lambda tree: None)
    there = change_project(change)
    with begin_run(
        change, lambda: load_config(there.config_file), Workflow.PLAN, f"agentd plan {DEMO_CHANGE_ID}", watch
    ) as run:
        clarify_first(StepContext(run, os.environ), RunOptions(person=person))


def play_act(
    place: DemoWorkspace,
    act: Act,
    ask: Ask = lambda: play_clarification(ScriptedPerson()),
    run: Run = workspace.capture_command,
) -> None:
    """One act, from within the place: done, looked at, and kept in git."""
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
    """The sample project in that folder, with its change at that point of the story. For pictures and tests."""
    place = DemoWorkspace(folder)
    with inside_workspace(place):
        set_up_sample(place)
        for act in ACTS[: [one.point for one in ACTS].index(until) + 1]:
            play_act(place, act)
    return place


def continue_command(place: DemoWorkspace) -> str:
    """What a person types to go on there after it was cut off; empty where no change has begun, or it is archived."""
    if not verification.change_folder(place).is_dir():
        return ""
    project = find_project(str(place.project))
    found = next((one for one in ChangeLocator(project).open() if one.id == DEMO_CHANGE_ID), None)
    command = found and next_command(project, found)
    # What the demo's own user trusts, this one does not yet.
    trust = " --trust" if command in (f"agentd plan {DEMO_CHANGE_ID}", f"agentd impl {DEMO_CHANGE_ID}") else ""
    return f"cd {shlex.quote(str(place.project))} && {command}{trust}" if command else ""


def typed_command(act: Act) -> str:
    return shlex.join(("agentd", *act.command))


def commit_command(act: Act) -> list[str]:
    """What a person would type to keep what came of it, and `play` has done."""
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
