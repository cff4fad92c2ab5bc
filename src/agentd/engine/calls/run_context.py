"""A run: one command on a change. It holds the run lock and cleans up after a run that was killed."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentd.agents import FailureCause
from agentd.change import Change, ChangeState, StepRecord
from agentd.documents import Finding, current_findings
from agentd.domain import AgentdError, Bug, Interrupted, StepStatus, Workflow, clock, events
from agentd.engine.calls import budget, call_costs, document_backup, interrupts
from agentd.engine.tools.tool_scope import run_folder
from agentd.guard import Guard, Violation, violation_finding
from agentd.project import BudgetSettings, Config, Project, ensure_trusted
from agentd.storage import RunLock, files

_OWNER = "owner.json"
STARTED = "started"  # written just before an agent's process starts
MARK = "ended"  # written by the reaper when an agent's processes are gone
_REPORTED = 20  # findings of one call; more are reported as one

EventListener = Callable[[events.JournalEntry], None]


@dataclass(frozen=True)
class RunContext:
    """What every step of a run shares."""

    change: Change
    config: Config
    lock: RunLock
    folder: Path  # in the local state: what this run's servers and calls write
    listener: EventListener
    max_cost: float = 0.0  # USD that this run may spend; 0: no limit
    cost_before: float = 0.0  # USD that the change had cost when this run began
    warned: set[str] = field(default_factory=set)  # warnings given once
    results: list[tuple[int, str]] = field(default_factory=list)  # exit code and message of a run that was not cut off

    @property
    def token(self) -> str:
        return self.lock.token

    def emit(self, event: events.Event) -> None:
        """Append the event to the journal and pass it to the listener."""
        entry = self.change.journal().append(event)
        self.listener(entry)
        if entry.seq == 0 and "journal" not in self.warned:
            self.warned.add("journal")
            self.emit(
                events.WarningIssued(
                    code="journal", message="the journal cannot be written, so agentd log will lack this run"
                )
            )

    def sign(self) -> None:
        """Record which change the folder belongs to, so that the next run finds it if this one is killed."""
        files.write(self.folder / _OWNER, json.dumps({"change_id": self.change.id, "run": self.change.run}).encode())

    @property
    def limits(self) -> BudgetSettings:
        return budget.effective_budget(self.config.budget, self.change.read())

    def spent(self) -> call_costs.Spending:
        found = call_costs.change_spending(self.change)
        return replace(found, run=round(found.change - self.cost_before, 6))

    def update(self, step: Callable[[ChangeState], ChangeState]) -> ChangeState:
        return self.change.update(step, self.token, self.emit)


@contextlib.contextmanager
def begin_run(
    change: Change,
    load: Callable[[], Config],
    workflow: Workflow,
    command: str,
    listener: EventListener = lambda entry: None,
    max_cost: float = 0.0,
    resume_command: str = "",
) -> Iterator[RunContext]:
    """Take the run lock, clean up after a killed run, and journal how the run ends.

    The configuration is loaded after the cleanup, because the killed run's agent may have changed it.
    `max_cost` is what this run may spend, in USD (0: no limit), without what a killed run spent.
    `resume_command` continues the run; by default it is the command itself.
    """
    resume_command = resume_command or command
    with interrupts.interruptible(), change.running(resume_command) as held:
        change = replace(change, run=clock.new_run_id())
        journal = change.journal()
        listener(journal.append(events.RunStarted(workflow=workflow, command=command)))
        code, message, is_complete = Bug.exit_code, "", False
        folder = run_folder(change.project, held.token)
        try:
            violations = _clean_up(change, held.token)
            config = load()
            ensure_trusted(change_project(change), config, os.environ)
            run = RunContext(change, config, held, folder, listener, max_cost, change.read().total_cost)
            run.sign()
            for old, found in violations.items():
                record_violations(run, found, "the agent of a killed run", {})
                _remove(old)
            yield run
            (code, message), is_complete = run.results[-1] if run.results else (0, ""), True
        except KeyboardInterrupt:
            error = Interrupted("interrupted", f"to continue: {resume_command}")
            code, message = error.exit_code, error.message
            raise error from None
        except AgentdError as error:
            code, message = error.exit_code, error.message
            raise
        finally:
            with interrupts.defer_interrupts():
                # otherwise the next run finishes the comparison and restores the documents
                if not _is_unfinished(change, folder) and (is_complete or _restore(change, folder, held.token)):
                    _remove(folder)
                listener(journal.append(events.RunFinished(workflow=workflow, exit_code=code, message=message)))


def _restore(change: Change, folder: Path, token: str) -> bool:
    """Restore what the agent of an unfinished step wrote, if the run ends between its call and the step's end."""
    try:
        document_backup.restore_documents(change, folder, token)
    except (AgentdError, OSError):
        return False  # the run's own failure is what gets reported
    return True


def change_project(change: Change) -> Project:
    """Return the project in the change's own worktree."""
    return change.project._replace(tree=change.tree)


def _clean_up(change: Change, token: str) -> dict[Path, tuple[Violation, ...]]:
    """Undo what a killed run left: forbidden edits of its agent, uncounted calls, half-finished steps.

    Returns the violations by run folder; a folder stays until they are recorded.
    """
    found: dict[Path, tuple[Violation, ...]] = {}
    has_begun = False
    for folder in _left_behind(change):
        found[folder] = ()
        if _is_unfinished(change, folder):
            has_begun = True
            found[folder] = Guard(change, folder / "guard").finish_cut(folder / MARK).put_back
        document_backup.restore_documents(change, folder, token)
    call_costs.settle_open_calls(change, token, has_begun)
    with change.writing(token):  # half-written files: the lock is ours, so nobody is writing them
        for path in change.folder.rglob(".*-*.tmp"):
            path.unlink(missing_ok=True)
    change.update(lambda old: replace(old, steps=tuple(_not_running(step) for step in old.steps)), token)
    return found


def _remove(folder: Path) -> None:
    """Remove the owner file last: interrupted, the next run finds the folder again, with nothing left to finish."""
    with contextlib.suppress(OSError):
        (folder / STARTED).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _OWNER:
                path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _is_unfinished(change: Change, folder: Path) -> bool:
    """An agent was started, and the guard has not compared files since."""
    return (folder / STARTED).exists() and Guard(change, folder / "guard").is_open


def _not_running(step: StepRecord) -> StepRecord:
    if step.status is not StepStatus.RUNNING:
        return step
    return replace(step, status=StepStatus.FAILED, extra={**step.extra, "cause": str(FailureCause.INTERRUPTED)})


def record_violations(run: RunContext, found: tuple[Violation, ...], agent: str, names: Mapping[str, Any]) -> None:
    """Keep what the guard restored as findings in STATE.yaml until the next record takes them over."""
    if not found:
        return
    used = [one.id for one in (*current_findings(run.change.records()), *run.change.read().findings)]
    first = max((int(id_[1:]) for id_ in used if re.fullmatch(r"G\d{1,9}", id_)), default=0) + 1
    findings = [violation_finding(one, agent) for one in found[:_REPORTED]]
    if len(found) > _REPORTED:
        findings[-1] = _many(found[_REPORTED - 1 :], findings[-1])
    made = tuple(replace(one, id=f"G{number}") for number, one in enumerate(findings, first))
    run.update(lambda old: replace(old, findings=(*old.findings, *made)))
    for one in made:
        fields = {name: getattr(one, name) for name in ("id", "severity", "title", "where", "verified", "by", "state")}
        run.emit(events.FindingReported(**names, **fields))


def _many(rest: tuple[Violation, ...], like: Finding) -> Finding:
    kept = next((one.kept for one in rest if one.kept), "")
    what = f"{len(rest)} more protected files were changed during the call and restored, including {rest[0].path}."
    where = f" Copies of the changed files are next to {kept}." if kept else ""
    return replace(like, title=f"{len(rest)} more protected files were changed", what=what + where, where=None)


def _left_behind(change: Change) -> list[Path]:
    """Return the folders of earlier runs of this change."""
    runs = Path(change.project.local_state_path("runs"))
    found = []
    for owner in sorted(runs.glob(f"*/{_OWNER}")):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            if json.loads(owner.read_bytes()).get("change_id") == change.id:
                found.append(owner.parent)
    return found
