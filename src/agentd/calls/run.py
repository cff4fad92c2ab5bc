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

from agentd import clock, events, files, trust
from agentd.calls import interrupts, spend
from agentd.change.folder import Change
from agentd.change.locks import Held
from agentd.change.state import State, Step
from agentd.config import Config
from agentd.documents.standing import standing
from agentd.errors import AgentdError, Bug, Interrupted
from agentd.guard import Guard, Trespass, finding_of
from agentd.project import Project
from agentd.terms import StepStatus, Workflow
from agentd.tools.binding import run_folder

_OWNER = "owner.json"
MARK = "ended"  # made by the reaper when an agent's processes are gone

Watcher = Callable[[events.Entry], None]


@dataclass(frozen=True)
class Run:
    """What every step of a run works with."""

    change: Change
    config: Config
    held: Held
    folder: Path  # in the local room: what this run's servers and calls write
    watch: Watcher
    warned: set[str] = field(default_factory=set)  # what was said once is not said again

    @property
    def token(self) -> str:
        return self.held.token

    def emit(self, event: events.Happened) -> None:
        """To the journal, and to whoever looks on."""
        self.watch(self.change.journal().append(event))

    def update(self, step: Callable[[State], State]) -> State:
        return self.change.update(step, self.token)


@contextlib.contextmanager
def begin(
    change: Change, load: Callable[[], Config], workflow: Workflow, command: str, watch: Watcher = lambda entry: None
) -> Iterator[Run]:
    """Take the run lock, put right what a killed run left, and journal how it all ends.

    The configuration is read after that: the killed run's agent may have written in it.
    """
    with interrupts.stoppable(), change.running(command) as held:
        change = replace(change, run=clock.run_id())
        journal = change.journal()
        watch(journal.append(events.RunStarted(workflow=workflow, command=command)))
        code, message = Bug.exit_code, ""
        folder = run_folder(change.project, held.token)
        try:
            found = _put_right(change, held.token)
            config = load()
            trust.ensure(there(change), config, os.environ)
            files.write(folder / _OWNER, json.dumps({"change_id": change.id, "run": change.run}).encode())
            run = Run(change, config, held, folder, watch)
            trespassed(run, found, "the agent of a run that was killed", {})
            yield run
            code = 0
        except KeyboardInterrupt:
            error = Interrupted("interrupted", f"to go on: {command}")
            code, message = error.exit_code, error.message
            raise error from None
        except AgentdError as error:
            code, message = error.exit_code, error.message
            raise
        finally:
            with interrupts.undisturbed():
                if not Guard(change, folder / "guard").is_open:  # else the next run finishes its look
                    shutil.rmtree(folder, ignore_errors=True)
                watch(journal.append(events.RunFinished(workflow=workflow, exit_code=code, message=message)))


def there(change: Change) -> Project:
    """The project as the change's own work tree has it."""
    return change.project._replace(tree=change.tree)


def _put_right(change: Change, token: str) -> tuple[Trespass, ...]:
    """What a killed run left: files its agent may not have changed, calls it did not count, steps half done."""
    found: list[Trespass] = []
    for folder in _left_behind(change):
        found += Guard(change, folder / "guard").finish_cut(folder / MARK).put_back
        shutil.rmtree(folder, ignore_errors=True)
    spend.settle(change, token)

    def ended(old: State) -> State:
        return replace(old, steps=tuple(_not_running(step) for step in old.steps))

    change.update(ended, token)
    return tuple(found)


def _not_running(step: Step) -> Step:
    return replace(step, status=StepStatus.FAILED) if step.status is StepStatus.RUNNING else step


def trespassed(run: Run, found: tuple[Trespass, ...], agent: str, names: Mapping[str, Any]) -> None:
    """What the guard put back waits in STATE.yaml as findings until the record of a round takes them up."""
    if not found:
        return
    used = [one.id for one in (*standing(run.change.records()), *run.change.read().findings)]
    first = max((int(id_[1:]) for id_ in used if re.fullmatch(r"G\d{1,9}", id_)), default=0) + 1
    made = tuple(replace(finding_of(one, agent), id=f"G{number}") for number, one in enumerate(found, first))
    run.update(lambda old: replace(old, findings=(*old.findings, *made)))
    for one in made:
        told = {name: getattr(one, name) for name in ("id", "severity", "title", "where", "verified", "by", "state")}
        run.emit(events.FindingMade(**names, **told))


def _left_behind(change: Change) -> list[Path]:
    """Folders of earlier runs of this change; ours is not there yet."""
    room = Path(change.project.in_room("runs"))
    found = []
    for owner in sorted(room.glob(f"*/{_OWNER}")):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            if json.loads(owner.read_bytes()).get("change_id") == change.id:
                found.append(owner.parent)
    return found
