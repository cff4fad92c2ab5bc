"""`agentd wait`: until the run of a change has ended, or a person has to decide, or the time is up."""

import sys
import time
from typing import Any

import click

from agentd.change import Change, Inbox, last_outcome, open_change
from agentd.cli import output, run_summary, text_table
from agentd.cli.change_argument import change_argument
from agentd.domain import Interrupted
from agentd.engine import build_result
from agentd.project import find_project
from agentd.storage import LockHolder

_PAUSE = 0.2  # seconds between two looks
_PATIENCE = 30.0  # seconds from the end of a run until its result is there


@click.command("wait")
@change_argument()
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="How long; else as long as it takes.")
@output.json_option
def command(change_id: str, timeout: float | None, as_json: bool) -> int:
    """Wait for the run of the change ID.

    It returns when the run has ended, with its exit code; with exit code 1 when a person has to decide
    something, or when the time is up and the run goes on. "state" says which: ended, decision, running.
    """
    change = open_change(find_project(), change_id)
    try:
        if sys.stderr.isatty() and change.active_run():
            output.note(f"Waiting for the run of {change_id}; Ctrl-C ends the waiting, not the run.")
        return _waited(change, timeout, as_json)
    except KeyboardInterrupt:
        hint = f"agentd wait {change_id} waits again, agentd stop {change_id} ends it"
        raise Interrupted(f"no longer waiting; the run of {change_id} goes on", hint) from None


def _waited(change: Change, timeout: float | None, as_json: bool) -> int:
    end = None if timeout is None else time.monotonic() + timeout
    last: LockHolder | None = None
    while holder := change.active_run():
        last = holder if holder.is_known else last
        if asked := _asked(change, holder):
            return _show(change, as_json, "decision", holder, _open_question(asked), None)
        if end is not None and time.monotonic() >= end:
            return _show(change, as_json, "running", holder, None, None)
        time.sleep(_PAUSE)
    came = _result(change, last)
    decision = came["decision_needed"]
    return _show(change, as_json, "decision" if decision else "ended", None, decision, came)


def _asked(change: Change, holder: LockHolder) -> dict[str, Any] | None:
    """One that a killed run has left is not open."""
    asked = Inbox(change).asked()
    return asked if asked and str(asked.get("at", "")) >= holder.since else None


def _open_question(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: asked.get(name) for name in ("id", "question", "options")}


def _result(change: Change, last: LockHolder | None) -> dict[str, Any]:
    """What the run has told; where it could not, or nothing ran lately, how the change stands."""
    end = time.monotonic() + _PATIENCE
    while not (cut := change.cut_off()):
        kept = last_outcome(change)
        if kept and (kept.pid == last.pid if last else kept.updated_at == change.read().updated_at):
            return kept.result
        if not last or time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    error = Interrupted("the run was killed before its end", f"to go on: {cut.command}") if cut else None
    state = change.read()
    command = "impl" if state.phase.judged_by == "review" else "plan"
    return build_result(change, command, change.id, len(state.llm_calls), error=error)


def _show(
    change: Change,
    as_json: bool,
    state: str,
    holder: LockHolder | None,
    decision: dict[str, Any] | None,
    came: dict[str, Any] | None,
) -> int:
    data = {
        "change_id": change.id,
        "state": state,
        "run": holder and {"pid": holder.pid, "command": holder.command, "since": holder.since},
        "decision": decision,
        "result": came,
    }

    def text() -> str:
        if came:
            return run_summary.run_summary(came)
        if decision:
            words = [f"{change.id} waits for a decision: {decision['question']}", f"Answer it where it runs: {holder}"]
            return "\n".join(line for one in words for line in output.prose(text_table.clean_line(one)))
        lines = output.prose(f"{change.id} is still being worked on: {holder}")
        return "\n".join([*lines, *output.following(f"agentd wait {change.id}")])

    return output.show_result("wait", as_json, data, text, int(came["exit_code"]) if came else 1)
