"""One call of an agent: guard before and after, read its stream, count its cost."""

import shutil
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentd.agents import (
    Adapter,
    AgentEnded,
    CannotStart,
    FailureCause,
    ProcessEnding,
    ProcessLimits,
    ProcessOutcome,
    Redactor,
    Stream,
    TokenUsage,
    Transcript,
    run_process,
    transcript_path,
    usage_cost,
)
from agentd.change import STATE_FILE, CallRecord
from agentd.domain import OverBudget, StateError, clock, events
from agentd.engine.calls import budget, call_costs, interrupts
from agentd.engine.calls.agent_selection import SelectedAgent
from agentd.engine.calls.call_costs import OpenCall
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.calls.run_context import MARK, STARTED, RunContext, record_violations
from agentd.engine.calls.stream_accumulator import StreamAccumulator, replace_surrogates
from agentd.engine.tools.tool_scope import SERVED_FILE
from agentd.guard import Guard, Violation
from agentd.storage import files

_ERRORS = 16 * 1024  # bytes kept of stderr; its end says why a program failed
_MESSAGE = 400  # characters of an error message
_REPORTS = ("report.json", "answers.json", "questions.json")


@dataclass(frozen=True)
class AgentCallResult:
    """How the call ended (without a cause: normally, as far as the process shows), and its text."""

    ended: AgentEnded
    text: str
    session: str | None
    duration_ms: int
    stopped: BaseException | None = None  # why agentd ended it: the budget, or Ctrl-C


def make_call(run: RunContext, work: CallRequest, ready: SelectedAgent) -> AgentCallResult:
    """Run the agent once. Whatever happens, its processes end, its cost is counted and the guard compares files."""
    for name in (*_REPORTS, SERVED_FILE):
        _clear(run.folder / name)  # reports of a failed attempt do not count
    for name in (STARTED, MARK):
        _clear(run.folder / name)
    for path, text in ready.command.files.items():
        files.write(path, text.encode(), mode=0o600)
    return _AgentCall(run, work, ready).run()


_INTERRUPTED = AgentEnded(cause=FailureCause.INTERRUPTED, message="interrupted")


def _clear(path: Path) -> None:
    """Remove the path, even if an agent has put a folder there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class _ToolsMissing(Exception):
    def __init__(self, ended: AgentEnded) -> None:
        super().__init__(ended.message)
        self.ended = ended


class _AgentCall:
    """A call in progress, and what its stream has reported so far."""

    def __init__(self, run: RunContext, work: CallRequest, ready: SelectedAgent) -> None:
        self._run = run
        self._work = work
        self._ready = ready
        self._names = work.names(ready.brief.attempt)
        self._session = ready.brief.resume or ready.brief.session
        self._has_begun = self._is_over = False
        self._restored: set[str] = set()
        self._errors: deque[bytes] = deque()
        self._errors_size = 0
        self._redactor = Redactor(ready.env)
        read, clean = ready.adapter.read, self._redactor.clean
        before = call_costs.counted_usage(run.change, ready.brief.resume)
        self._stream = StreamAccumulator(read, self._emit_activity, self._set_session, self._add_usage, clean, before)
        self._guard = Guard(run.change, run.folder / "guard", run.config.checks, work.only_reads, work.may_edit)

    def run(self) -> AgentCallResult:
        run, began = self._run, time.monotonic()
        self._spent, self._limits = (
            run.spent(),
            run.limits,
        )  # read now: during the call the agent could change STATE.yaml
        self._day = clock.now()[:10]
        usage_cost(
            TokenUsage(), self._ready.brief.model, run.config.prices
        )  # loads the price table now, so that no usage waits for it
        self._guard.before()
        self._open = OpenCall.begin(
            run.change,
            run.token,
            **self._names,
            agent=self._ready.agent.name,
            role=self._work.role,
            model=self._ready.brief.model,
            session=self._session,
        )
        stopped: BaseException | None = None
        failure: BaseException | None = None
        ended = AgentEnded(cause=FailureCause.CRASHED)
        changed: tuple[str, ...]
        try:
            ended = self._run_process()
        except _ToolsMissing as error:
            ended = error.ended
        except OverBudget as error:
            ended, stopped = AgentEnded(cause=FailureCause.BUDGET, message=error.message), error
        except KeyboardInterrupt as error:
            ended, stopped = _INTERRUPTED, error
        except BaseException as error:
            failure = error  # raised once the cost is counted
        took, changed = round((time.monotonic() - began) * 1000), ()
        try:
            with interrupts.defer_interrupts():
                changed = self._count(took)
        except KeyboardInterrupt as error:
            ended, stopped = _INTERRUPTED, error
        if failure:
            raise failure
        if changed and self._ready.adapter.cannot_write:
            changed = self._drop_unprotected(changed)
        if ended.cause is None and changed:
            message = f"it may only read, but {_list_some(changed)} changed during the call"
            ended = AgentEnded(cause=FailureCause.CHANGED_FILES, message=message)
        if ended.cause is None and self._ready.command.needs_server and not (run.folder / SERVED_FILE).is_file():
            ended = AgentEnded(cause=FailureCause.TOOLS_MISSING, message="it did not start agentd's MCP server")
        return AgentCallResult(ended, self._stream.text, self._session, took, stopped)

    def _drop_unprotected(self, changed: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the guard restored. Other changes are a person's, because this agent cannot write."""
        restored = tuple(name for name in changed if name in self._restored)
        if others := tuple(name for name in changed if name not in restored):
            name = self._ready.agent.name
            message = f"{_list_some(others)} changed during the call; {name} cannot write, so someone else did it"
            self._run.emit(events.NoticeIssued(**self._names, code="others-work", message=message))
        return restored

    def _run_process(self) -> AgentEnded:
        run, brief, command = self._run, self._ready.brief, self._ready.command
        assert run.change.run
        limits = run.config.limits
        output = limits.output_mb * 1024 * 1024
        bounds = ProcessLimits(wall_secs=brief.wall_secs, idle_secs=limits.idle_secs[brief.role], output_bytes=output)
        path = transcript_path(
            run.change.project.local_state_path("transcripts", run.change.id), run.change.run, **self._names
        )
        argv = (self._ready.program, *command.argv[1:])
        with Transcript(path, self._redactor) as self._transcript:
            self._transcript.start(self._ready.agent.name, brief, argv)
            ending, outcome, began = "stopped by agentd", None, time.monotonic()
            files.write(run.folder / STARTED, b"")
            try:
                self._has_begun = True
                outcome = run_process(
                    argv,
                    env=self._ready.env,
                    cwd=command.cwd,
                    stdin=command.stdin.encode("utf-8", "replace"),
                    bounds=bounds,
                    on_line=self._read_line,
                    lock=run.lock.handle,
                    mark=run.folder / MARK,
                )
                ending = outcome.ending
            except CannotStart as error:
                self._has_begun = False
                ending = str(error)
                return AgentEnded(
                    cause=FailureCause.NOT_INSTALLED if error.is_missing else FailureCause.CRASHED, message=ending
                )
            finally:
                self._is_over = True
                self._stream.finish()
                code = outcome.exit_code if outcome else None
                self._transcript.end(ending, code, time.monotonic() - began)
        if not outcome.is_gone:
            raise StateError(
                f"processes of {self._ready.agent.name} could not be ended", "find them with ps and end them"
            )
        if self._transcript.problem:
            run.emit(events.WarningIssued(**self._names, code="transcript", message=self._transcript.problem))
        errors = self._redactor.clean(b"\n".join(self._errors).decode("utf-8", "replace"))
        ended = _ended(self._ready.adapter, outcome, self._stream, errors, bounds)
        return replace(ended, message=self._redactor.clean(replace_surrogates(ended.message))[:_MESSAGE])

    def _read_line(self, stream: Stream, line: bytes, left_out: int) -> None:
        self._transcript.line(stream, line, left_out)
        if stream == "err":
            self._keep_error(line)
        elif not left_out or not self._ready.adapter.final_event:  # a cut text is readable, a cut event is not
            self._stream.add(line)
            if (ended := self._stream.ended) and ended.cause is FailureCause.TOOLS_MISSING:
                raise _ToolsMissing(ended)  # without its tools it would only cost money

    def _keep_error(self, line: bytes) -> None:
        """Keep the last lines whole: part of a secret could not be redacted."""
        self._errors.append(line[:_ERRORS])
        self._errors_size += len(self._errors[-1])
        while self._errors_size > _ERRORS:
            self._errors_size -= len(self._errors.popleft())

    def _emit_activity(self, kind: str, text: str, ok: bool | None) -> None:
        self._run.emit(events.AgentActivity(**self._names, kind=kind, text=text, ok=ok))

    def _set_session(self, session: str) -> None:
        self._session = session
        if self._work.on_session:
            with interrupts.defer_interrupts(), self._guard.own_write(self._run.change.folder / STATE_FILE):
                self._work.on_session(session)

    def _add_usage(self, usage: TokenUsage) -> None:
        run, prices_ = self._run, self._run.config.prices
        costs = [usage_cost(part, self._ready.brief.model, prices_) for part in self._stream.parts]
        known = [cost for cost in costs if cost is not None]  # count what has a price
        with interrupts.defer_interrupts():
            self._open.update(usage, sum(known) if known else None)
        if self._is_over or self._stream.ended:
            return  # the work is done; the budget can only stop the next call
        today = call_costs.day_spending(run.change.project, self._day, but=self._open.id)
        spent = replace(self._spent, today=today)
        budget.check_budget(self._limits, run.change.id, spent, self._open.cost, run.max_cost, self._work.role)

    def _warn_restored(self, violations: tuple[Violation, ...]) -> None:
        """Say where the copies are: the change may have been a person's."""
        for one in violations[:5]:
            if one.kept:
                name = self._ready.agent.name
                message = f"{one.path} was {one.what} while {name} worked, and restored; a copy is in {one.kept}"
                self._run.emit(events.WarningIssued(**self._names, code="put-back", message=message))

    def _count(self, took: int) -> tuple[str, ...]:
        """Count the cost, let the guard compare files, and return what changed during a judge's call."""
        run, counted = self._run, None
        try:
            with self._guard.own_write(run.change.folder / STATE_FILE):
                if self._has_begun:
                    counted = self._open.finish(took, self._session)
                else:
                    self._open.withdraw()
        finally:  # the guard compares in any case
            watched = self._guard.after()
            run.sign()  # again: the agent may have removed it, and the next run must find it
            files.write(run.folder / STARTED, b"")
            record_violations(run, watched.put_back, self._ready.agent.name, self._names)
            self._restored = {one.path for one in watched.put_back}
            self._warn_restored(watched.put_back)
            self._guard.close()
        if counted:
            run.emit(_usage(self._names, counted, run.change.read().total_cost))
        return watched.changed


def _usage(names: dict[str, Any], counted: CallRecord, total: float) -> events.UsageRecorded:
    return events.UsageRecorded(
        **names,
        agent=counted.agent or "",
        model=counted.model,
        tokens_in=counted.tokens_in,
        tokens_out=counted.tokens_out,
        tokens_cached=counted.tokens_cached,
        cost=counted.cost,
        total_cost=total,
    )


def _ended(
    adapter: Adapter, outcome: ProcessOutcome, stream: StreamAccumulator, errors: str, bounds: ProcessLimits
) -> AgentEnded:
    """A call ended normally only if both exit code and final event say so."""
    if outcome.ending is ProcessEnding.WALL:
        return AgentEnded(cause=FailureCause.WALL_CLOCK, message=f"it took longer than {bounds.wall_secs:g} s")
    if outcome.ending is ProcessEnding.IDLE:
        return AgentEnded(cause=FailureCause.IDLE, message=f"it printed nothing for {bounds.idle_secs:g} s")
    if outcome.ending is ProcessEnding.OUTPUT:
        size = bounds.output_bytes // (1024 * 1024)
        return AgentEnded(cause=FailureCause.TOO_MUCH_OUTPUT, message=f"it printed more than {size} MB")
    if stream.ended and stream.ended.cause:
        return stream.ended
    if outcome.exit_code:
        return adapter.failure(outcome.exit_code, errors) or _crashed(outcome.exit_code, errors)
    if adapter.final_event and not stream.ended:
        what = "without its final event" if stream.is_understood else "with output that agentd does not understand"
        return AgentEnded(cause=FailureCause.GARBAGE, message=f"it ended {what}")
    return stream.ended or AgentEnded()


def _crashed(code: int, errors: str) -> AgentEnded:
    how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
    return AgentEnded(cause=FailureCause.CRASHED, message=f"{how}: {last[:300]}" if last else how)


def _list_some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
