"""A run: one command at work on a change. It holds the run lock, and leaves no trace of a killed one before it."""

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
STARTED = "started"  # made just before an agent's process starts
MARK = "ended"  # made by the reaper when an agent's processes are gone
_TOLD = 20  # findings of one call; more are told as one

EventListener = Callable[[events.JournalEntry], None]


@dataclass(frozen=True)
class RunContext:
    """What every step of a run works with."""

    change: Change
    config: Config
    held: RunLock
    folder: Path  # in the local state: what this run's servers and calls write
    watch: EventListener
    max_cost: float = 0.0  # USD that this run may spend; 0: no limit
    cost_before: float = 0.0  # USD that the change had cost when this run began
    warned: set[str] = field(default_factory=set)  # what was said once is not said again
    results: list[tuple[int, str]] = field(default_factory=list)  # exit code and message of a run that was not cut off

    @property
    def token(self) -> str:
        return self.held.token

    def emit(self, event: events.Event) -> None:
        """To the journal, and to whoever looks on."""
        entry = self.change.journal().append(event)
        self.watch(entry)
        if entry.seq == 0 and "journal" not in self.warned:
            self.warned.add("journal")
            self.emit(
                events.WarningIssued(
                    code="journal", message="the journal cannot be written, so agentd log will lack this run"
                )
            )

    def sign(self) -> None:
        """Say whose folder this is, so that the next run of the change finds it if this one is killed."""
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
    watch: EventListener = lambda entry: None,
    max_cost: float = 0.0,
    resume_command: str = "",
) -> Iterator[RunContext]:
    """Take the run lock, put right what a killed run left, and journal how it all ends.

    The configuration is read after that: the killed run's agent may have written in it.
    `max_cost` is what this run may spend, in USD (0: no limit); what the killed one spent is not counted for it.
    `resume_command` continues the run; by default it is the command itself.
    """
    resume_command = resume_command or command
    with interrupts.interruptible(), change.running(resume_command) as held:
        change = replace(change, run=clock.new_run_id())
        journal = change.journal()
        watch(journal.append(events.RunStarted(workflow=workflow, command=command)))
        code, message, is_whole = Bug.exit_code, "", False
        folder = run_folder(change.project, held.token)
        try:
            cut = _put_right(change, held.token)
            config = load()
            ensure_trusted(change_project(change), config, os.environ)
            run = RunContext(change, config, held, folder, watch, max_cost, change.read().total_cost)
            run.sign()
            for old, found in cut.items():
                record_violations(run, found, "the agent of a run that was killed", {})
                _remove(old)
            yield run
            (code, message), is_whole = run.results[-1] if run.results else (0, ""), True
        except KeyboardInterrupt:
            error = Interrupted("interrupted", f"to continue: {resume_command}")
            code, message = error.exit_code, error.message
            raise error from None
        except AgentdError as error:
            code, message = error.exit_code, error.message
            raise
        finally:
            with interrupts.defer_interrupts():
                # else the next run finishes the guard's look, and takes back what is the agent's
                if not _is_unfinished(change, folder) and (is_whole or _took_back(change, folder, held.token)):
                    _remove(folder)
                watch(journal.append(events.RunFinished(workflow=workflow, exit_code=code, message=message)))


def _took_back(change: Change, folder: Path, token: str) -> bool:
    """What the agent of an unfinished step wrote, if the run ends between its call and the step's end."""
    try:
        document_backup.restore_documents(change, folder, token)
    except (AgentdError, OSError):
        return False  # how the run ended is what is told
    return True


def change_project(change: Change) -> Project:
    """The project as the change's own worktree has it."""
    return change.project._replace(tree=change.tree)


def _put_right(change: Change, token: str) -> dict[Path, tuple[Violation, ...]]:
    """What a killed run left: files its agent may not have changed, calls it did not count, steps half done.

    Told by the folder of the old run, which stays until that is recorded.
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
    _sweep(change, token)

    def ended(old: ChangeState) -> ChangeState:
        return replace(old, steps=tuple(_not_running(step) for step in old.steps))

    change.update(ended, token)
    return found


def _sweep(change: Change, token: str) -> None:
    """Half-written files of a killed writer: the lock is ours, so nobody is at work on them."""
    with change.writing(token):
        for left in change.folder.rglob(".*-*.tmp"):
            left.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Whose it is goes last: cut off half-way, the next run finds it again, and nothing in it to finish."""
    with contextlib.suppress(OSError):
        (folder / STARTED).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _OWNER:
                path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _is_unfinished(change: Change, folder: Path) -> bool:
    """An agent did start, and the guard has not compared since."""
    return (folder / STARTED).exists() and Guard(change, folder / "guard").is_open


def _not_running(step: StepRecord) -> StepRecord:
    if step.status is not StepStatus.RUNNING:
        return step
    return replace(step, status=StepStatus.FAILED, extra={**step.extra, "cause": str(FailureCause.INTERRUPTED)})


def record_violations(run: RunContext, found: tuple[Violation, ...], agent: str, names: Mapping[str, Any]) -> None:
    """What the guard put back waits in STATE.yaml as findings until the record of a round takes them up."""
    if not found:
        return
    used = [one.id for one in (*current_findings(run.change.records()), *run.change.read().findings)]
    first = max((int(id_[1:]) for id_ in used if re.fullmatch(r"G\d{1,9}", id_)), default=0) + 1
    findings = [violation_finding(one, agent) for one in found[:_TOLD]]
    if len(found) > _TOLD:
        findings[-1] = _many(found[_TOLD - 1 :], findings[-1])
    made = tuple(replace(one, id=f"G{number}") for number, one in enumerate(findings, first))
    run.update(lambda old: replace(old, findings=(*old.findings, *made)))
    for one in made:
        told = {name: getattr(one, name) for name in ("id", "severity", "title", "where", "verified", "by", "state")}
        run.emit(events.FindingReported(**names, **told))


def _many(rest: tuple[Violation, ...], like: Finding) -> Finding:
    kept = next((one.kept for one in rest if one.kept), "")
    what = f"{len(rest)} more guarded files differed after the call and were put back, {rest[0].path} among them."
    where = f" What was found there is kept beside {kept}." if kept else ""
    return replace(like, title=f"{len(rest)} more guarded files were changed", what=what + where, where=None)


def _left_behind(change: Change) -> list[Path]:
    """Folders of earlier runs of this change; ours is not there yet."""
    room = Path(change.project.local_state_path("runs"))
    found = []
    for owner in sorted(room.glob(f"*/{_OWNER}")):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            if json.loads(owner.read_bytes()).get("change_id") == change.id:
                found.append(owner.parent)
    return found
