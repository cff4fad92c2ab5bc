"""`agentd wait`: wait until a change's run ends, needs a decision, or the timeout expires."""

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

COMMANDS = {"wait": (140, "Wait until a change's run ends or needs a decision.")}

_PAUSE = 0.2  # seconds between polls
_RESULT_TIMEOUT = 30.0  # seconds to wait for the result after a run ended


@click.command("wait")
@change_argument()
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop waiting after this time. Default: never."
)
@output.json_option
def command(change_id: str, timeout: float | None, as_json: bool) -> int:
    """Wait for the run of the change ID.

    Returns the run's exit code when it ends, or 1 if a decision is needed or the timeout expires while it is
    still running. In the JSON output, "state" tells them apart: ended, decision, running.
    """
    change = open_change(find_project(), change_id)
    try:
        if sys.stderr.isatty() and change.active_run():
            output.note(f"Waiting for the run of {change_id}; Ctrl-C stops waiting, not the run.")
        return _wait(change, timeout, as_json)
    except KeyboardInterrupt:
        hint = f"agentd wait {change_id} to wait again, agentd stop {change_id} to stop it"
        raise Interrupted(f"stopped waiting; {change_id} is still running", hint) from None


def _wait(change: Change, timeout: float | None, as_json: bool) -> int:
    end = None if timeout is None else time.monotonic() + timeout
    last: LockHolder | None = None
    while holder := change.active_run():
        last = holder if holder.is_known else last
        if question := _current_question(change, holder):
            return _show(change, as_json, "decision", holder, _open_question(question), None)
        if end is not None and time.monotonic() >= end:
            return _show(change, as_json, "running", holder, None, None)
        time.sleep(_PAUSE)
    result = _result(change, last)
    decision = result["decision_needed"]
    return _show(change, as_json, "decision" if decision else "ended", None, decision, result)


def _current_question(change: Change, holder: LockHolder) -> dict[str, Any] | None:
    """Return the open question; one left by a killed run does not count."""
    question = Inbox(change).asked()
    return question if question and str(question.get("at", "")) >= holder.since else None


def _open_question(question: dict[str, Any]) -> dict[str, Any]:
    return {name: question.get(name) for name in ("id", "question", "options")}


def _result(change: Change, last: LockHolder | None) -> dict[str, Any]:
    """Return the run's result; without one, the change's current state."""
    end = time.monotonic() + _RESULT_TIMEOUT
    while not (interrupted := change.interrupted_run()):
        outcome = last_outcome(change)
        if outcome and (outcome.pid == last.pid if last else outcome.updated_at == change.read().updated_at):
            return outcome.result
        if not last or time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    error = Interrupted("the run was killed", f"to continue: {interrupted.command}") if interrupted else None
    state = change.read()
    command = "impl" if state.phase.judged_by == "review" else "plan"
    return build_result(change, command, change.id, len(state.llm_calls), error=error)


def _show(
    change: Change,
    as_json: bool,
    state: str,
    holder: LockHolder | None,
    decision: dict[str, Any] | None,
    result: dict[str, Any] | None,
) -> int:
    data = {
        "change_id": change.id,
        "state": state,
        "run": holder and {"pid": holder.pid, "command": holder.command, "since": holder.since},
        "decision": decision,
        "result": result,
    }

    def text() -> str:
        if result:
            return run_summary.run_summary(result)
        if decision:
            lines = [
                f"{change.id} is waiting for a decision: {decision['question']}",
                f"Answer it where it is running: {holder}",
            ]
            return "\n".join(line for text in lines for line in output.prose(text_table.clean_line(text)))
        lines = output.prose(f"{change.id} is still running: {holder}")
        return "\n".join([*lines, *output.following(f"agentd wait {change.id}")])

    return output.show_result("wait", as_json, data, text, int(result["exit_code"]) if result else 1)
