"""Run a workflow from the terminal: options in, live view, result out. The engine does the work."""

import json
from collections.abc import Sequence
from typing import Any

import click

from agentd.change import Change, Decision, open_change
from agentd.cli import output, run_summary, terminal_prompts
from agentd.cli.live_display import watch_run
from agentd.cli.options import CommandOptions
from agentd.cli.terminal_person import TerminalPerson
from agentd.cli.terminal_prompts import PromptOption
from agentd.cli.trust import ensure_trust
from agentd.domain import Busy, GitSetup, UsageError
from agentd.engine import (
    NewChange,
    PersonDecision,
    PlannedStep,
    RunRequest,
    RunResult,
    belongs_to_workflow,
    change_project,
    check_reading,
    commit_pending,
    current_reading,
    current_result,
    deliver_decision,
    inspect_repository,
    list_names,
    open_or_create_change,
    pending_question,
    planned_steps,
    run_workflow,
    settled_result,
    start_detached,
)
from agentd.project import Config, Project, find_project, git, load_config

seen_option = click.option("--seen", default="", metavar="DIGEST", help="Decide only if this is the current content.")


def run_change(change: Change, options: CommandOptions, request: RunRequest | None = None) -> int:
    """Run the command on the change, here or in the background, and show the result."""
    request = request or options.request()
    if result := settled_result(change, request):
        return show_run_result(options, result)
    if options.detach and (holder := change.active_run()):
        raise Busy(f"{change.id} is being worked on by {holder}", f"agentd wait {change.id}")
    config = load_trusted_config(change_project(change), options)
    if options.detach:
        started = start_detached(change, request)
        if isinstance(started, RunResult):
            return show_run_result(options, started)
        return _show_started(change, options, started)
    title = f"agentd {options.command} {change.id}"

    def steps() -> list[PlannedStep]:
        return planned_steps(change, request, config.workflow)

    with watch_run(title, steps, options.mode, output.is_verbose()) as view:
        person = TerminalPerson(view, change.tree) if options.can_ask else None
        result = run_workflow(change, request, view, person)
    return show_run_result(options, result, person.shown_findings if person else ())


def load_trusted_config(project: Project, options: CommandOptions) -> Config:
    """Load the configuration and make sure its commands are trusted, by asking if possible."""
    config = load_config(project.config_file, flags=options.settings)
    ensure_trust(project, config, options.trusting, options.can_ask)
    return config


def show_run_result(options: CommandOptions, result: RunResult, shown_findings: Sequence[str] = ()) -> int:
    """Print the result; findings already on the screen are not repeated."""
    if options.as_events:
        output.stream([json.dumps(result.data, ensure_ascii=False)])
    elif options.as_json:
        output.print_json(result.data)
    elif result.is_interrupted and output.is_part():
        pass  # the demo reports it
    elif result.data["error"]:
        output.report(run_summary.run_summary(result.data, shown_findings))
    else:
        output.print_text(run_summary.run_summary(result.data, shown_findings))
    return result.exit_code


def _show_started(change: Change, options: CommandOptions, pid: int) -> int:
    place = change.read().git
    data: dict[str, Any] = {
        "change_id": change.id,
        "resolved_from": options.requested_id,
        "state": "running",
        "pid": pid,
        "git": {"setup": str(place.setup), "branch": place.branch, "tree": place.tree, "target": place.target},
        "next": f"agentd wait {change.id}",
    }

    def text() -> str:
        running = f"{change.id} is running in the background (process {pid})."
        others = f"agentd log {change.id} --follow shows its progress, agentd stop {change.id} stops it"
        return "\n".join([*output.prose(running), *output.prose(others), *output.following(data["next"])])

    return output.show_result(options.command, options.as_json, data, text)


# ---- decisions


def chosen_decision(options: CommandOptions, is_dry: bool, decisions: dict[str, str | None]) -> tuple[str, str] | None:
    """Return the decision given as a flag with its reason, or None; refuse flags that contradict it."""
    given = {name: reason for name, reason in decisions.items() if reason is not None}
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in given)} are two decisions", "give one of them")
    immediate = next(iter(given), "dry-run" if is_dry else None)
    if immediate and options.detach:
        raise UsageError(f"--{immediate} takes effect at once", "leave --detach out")
    if immediate and options.raise_budget:
        raise UsageError(f"--{immediate} spends nothing, so it does not go with --raise-budget", "give one of them")
    if options.seen and not given:
        raise UsageError("--seen belongs to a decision, and none was given", "leave it out")
    for name, reason in given.items():
        if not reason.strip():
            raise UsageError(f"--{name} needs a reason", f'--{name} "why"')
        return name, reason.strip()
    return None


def make_decision(change_id: str, options: CommandOptions, answer: str, reason: str) -> int:
    """Apply the decision now; if a run is waiting for it, deliver it to that run."""
    change = open_change(find_project(), change_id)
    by = f"person:{git.user_name(change.tree)}"
    question = pending_question(change)
    if question and belongs_to_workflow(options.command, str(question.get("id"))):
        reading = current_reading(change)
        check_reading(change, options.seen)
        deliver_decision(change, Decision(str(question.get("id")), answer, reason, by, reading))
        return show_run_result(options, current_result(change, options.request(), code=0))
    return run_change(change, options, options.request(PersonDecision(answer, reason, by, options.seen)))


# ---- a change that may be new

_SETUPS = (
    PromptOption(GitSetup.BRANCH, "On its own branch", "in this folder; uncommitted files come along"),
    PromptOption(GitSetup.WORKTREE, "In its own worktree", "next to this folder, so you can keep working here"),
    PromptOption(GitSetup.IN_PLACE, "In place", "here, on the current branch"),
)


def plan_change(options: CommandOptions, description: str | None) -> int:
    """Run a command on a change that may not exist yet."""
    project = find_project()
    setup = GitSetup(options.git_setup) if options.git_setup else None
    new = NewChange(description or "", setup, options.allow_dirty, options.depends_on)

    def choose_setup(change_id: str, config: Config) -> GitSetup:
        return _choose_setup(project, change_id, setup or config.git.setup, options.can_ask)

    request = options.request()
    can_answer = options.yes or (options.can_ask and not options.detach)
    change = open_or_create_change(
        project, request, new, lambda: load_trusted_config(project, options), choose_setup, output.note, can_answer
    )
    return run_change(change, options, request)


def _choose_setup(project: Project, change_id: str, setup: GitSetup | None, can_ask: bool) -> GitSetup:
    if not can_ask:
        return setup or GitSetup.IN_PLACE
    if setup is None:
        question = f"Where should {change_id} live?"
        setup = GitSetup(terminal_prompts.ask_choice(question, _SETUPS, GitSetup.BRANCH))
    if setup is not GitSetup.IN_PLACE:
        _offer_commit(project, change_id, setup)
    return setup


def _offer_commit(project: Project, change_id: str, setup: GitSetup) -> None:
    repository = inspect_repository(project, change_id)
    if not repository.uncommitted:
        return
    choices = (PromptOption("commit", "Commit them"), PromptOption("stop", "Stop"))
    names = list_names(repository.uncommitted)
    question = f"A {setup} needs agentd/ committed. Commit {names} now?"
    if terminal_prompts.ask_choice(question, choices, "commit") == "commit":
        commit_pending(repository)
