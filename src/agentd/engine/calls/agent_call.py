"""One call of an agent: its process between the guard's two looks, its stream heard, its cost counted."""

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

_ERRORS = 16 * 1024  # of stderr, the end tells why a program failed
_MESSAGE = 400  # characters of what a program said about its failure
_WAITING = ("report.json", "answers.json", "questions.json")


@dataclass(frozen=True)
class AgentCallResult:
    """How it ended (no cause: well, by all that the process told), and what it said."""

    ended: AgentEnded
    text: str
    session: str | None
    duration_ms: int
    stopped: BaseException | None = None  # why we ended it: the budget, or Ctrl-C


def make_call(run: RunContext, work: CallRequest, ready: SelectedAgent) -> AgentCallResult:
    """Run the agent once. Whatever happens, its processes are gone, its cost is counted, the guard has looked."""
    for name in (*_WAITING, SERVED_FILE):
        _clear(run.folder / name)  # what a failed attempt reported counts for nothing
    for name in (STARTED, MARK):
        _clear(run.folder / name)
    for path, text in ready.command.files.items():
        files.write(path, text.encode(), mode=0o600)
    return _AgentCall(run, work, ready).made()


_INTERRUPTED = AgentEnded(cause=FailureCause.INTERRUPTED, message="interrupted")


def _clear(path: Path) -> None:
    """Whatever stands there: an agent could have put a folder in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class _ToolsMissing(Exception):
    def __init__(self, ended: AgentEnded) -> None:
        super().__init__(ended.message)
        self.ended = ended


class _AgentCall:
    """One call under way, and what it has told so far."""

    def __init__(self, run: RunContext, work: CallRequest, ready: SelectedAgent) -> None:
        self._run = run
        self._work = work
        self._ready = ready
        self._names = work.names(ready.brief.attempt)
        self._session = ready.brief.resume or ready.brief.session
        self._has_begun = self._is_over = False
        self._put_back: set[str] = set()
        self._errors: deque[bytes] = deque()
        self._errors_size = 0
        self._redactor = Redactor(ready.env)
        read, clean = ready.adapter.read, self._redactor.clean
        before = call_costs.counted_usage(run.change, ready.brief.resume)
        self._listener = StreamAccumulator(read, self._did, self._in_session, self._used, clean, before)
        self._guard = Guard(run.change, run.folder / "guard", run.config.checks, work.only_reads, work.may_edit)

    def made(self) -> AgentCallResult:
        run, began = self._run, time.monotonic()
        self._spent, self._limits = run.spent(), run.limits  # now: during the call STATE.yaml could be the agent's
        self._day = clock.now()[:10]
        usage_cost(
            TokenUsage(), self._ready.brief.model, run.config.prices
        )  # loaded now, so that no usage waits for it
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
            ended = self._ran()
        except _ToolsMissing as error:
            ended = error.ended
        except OverBudget as error:
            ended, stopped = AgentEnded(cause=FailureCause.BUDGET, message=error.message), error
        except KeyboardInterrupt as error:
            ended, stopped = _INTERRUPTED, error
        except BaseException as error:
            failure = error  # it is told when all is counted
        took, changed = round((time.monotonic() - began) * 1000), ()
        try:
            with interrupts.defer_interrupts():
                changed = self._count(took)
        except KeyboardInterrupt as error:
            ended, stopped = _INTERRUPTED, error
        if failure:
            raise failure
        if changed and self._ready.adapter.cannot_write:
            changed = self._others(changed)
        if ended.cause is None and changed:
            words = f"it may only read, but while it worked {_some(changed)} changed"
            ended = AgentEnded(cause=FailureCause.CHANGED_FILES, message=words)
        if ended.cause is None and self._ready.command.needs_server and not (run.folder / SERVED_FILE).is_file():
            words = "it did not start agentd's MCP server"
            ended = AgentEnded(cause=FailureCause.TOOLS_MISSING, message=words)
        return AgentCallResult(ended, self._listener.text, self._session, took, stopped)

    def _others(self, changed: tuple[str, ...]) -> tuple[str, ...]:
        """A person may work in the same tree: what is not guarded is taken for theirs. What was put back counts."""
        guarded = tuple(name for name in changed if name in self._put_back)
        if free := tuple(name for name in changed if name not in guarded):
            words = f"{_some(free)} changed meanwhile; {self._ready.agent.name} cannot write, so that was somebody else"
            self._run.emit(events.NoticeIssued(**self._names, code="others-work", message=words))
        return guarded

    def _ran(self) -> AgentEnded:
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
                    on_line=self._hear,
                    lock=run.held.handle,
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
                self._listener.finish()
                code = outcome.exit_code if outcome else None
                self._transcript.end(ending, code, time.monotonic() - began)
        if not outcome.is_gone:
            raise StateError(f"processes of {self._ready.agent.name} could not be ended", "ps shows them; end them")
        if self._transcript.problem:
            run.emit(events.WarningIssued(**self._names, code="transcript", message=self._transcript.problem))
        errors = self._redactor.clean(b"\n".join(self._errors).decode("utf-8", "replace"))
        ended = _ended(self._ready.adapter, outcome, self._listener, errors, bounds)
        return replace(ended, message=self._redactor.clean(replace_surrogates(ended.message))[:_MESSAGE])

    def _hear(self, stream: Stream, line: bytes, left_out: int) -> None:
        self._transcript.line(stream, line, left_out)
        if stream == "err":
            self._keep_error(line)
        elif not left_out or not self._ready.adapter.final_event:  # half an event cannot be read, half a text can
            self._listener.hear(line)
            if (ended := self._listener.ended) and ended.cause is FailureCause.TOOLS_MISSING:
                raise _ToolsMissing(ended)  # what it does without them would be paid for nothing

    def _keep_error(self, line: bytes) -> None:
        """The last lines, whole: half a secret could not be redacted."""
        self._errors.append(line[:_ERRORS])
        self._errors_size += len(self._errors[-1])
        while self._errors_size > _ERRORS:
            self._errors_size -= len(self._errors.popleft())

    def _did(self, kind: str, text: str, ok: bool | None) -> None:
        self._run.emit(events.AgentActivity(**self._names, kind=kind, text=text, ok=ok))

    def _in_session(self, session: str) -> None:
        self._session = session
        if self._work.on_session:
            with interrupts.defer_interrupts(), self._guard.own_write(self._run.change.folder / STATE_FILE):
                self._work.on_session(session)

    def _used(self, usage: TokenUsage) -> None:
        run, prices_ = self._run, self._run.config.prices
        costs = [usage_cost(part, self._ready.brief.model, prices_) for part in self._listener.parts]
        known = [cost for cost in costs if cost is not None]  # what has no price hides nothing of the rest
        with interrupts.defer_interrupts():
            self._open.saw(usage, sum(known) if known else None)
        if self._is_over or self._listener.ended:
            return  # it has done its work; the next call is what the budget can still stop
        today = call_costs.day_spending(run.change.project, self._day, but=self._open.id)
        spent = replace(self._spent, today=today)
        budget.check_budget(self._limits, run.change.id, spent, self._open.cost, run.max_cost, self._work.role)

    def _tell_kept(self, put_back: tuple[Violation, ...]) -> None:
        """It may have been a person's: say where it is."""
        for one in put_back[:5]:
            if one.kept:
                words = (
                    f"{one.path} was {one.what} while {self._ready.agent.name} worked, and put back; a copy: {one.kept}"
                )
                self._run.emit(events.WarningIssued(**self._names, code="put-back", message=words))

    def _count(self, took: int) -> tuple[str, ...]:
        """What it cost, and what it touched: the files that changed under a judge."""
        run, counted = self._run, None
        try:
            with self._guard.own_write(run.change.folder / STATE_FILE):
                if self._has_begun:
                    counted = self._open.finish(took, self._session)
                else:
                    self._open.withdraw()
        finally:  # whatever went wrong there, the guard looks
            watched = self._guard.after()
            run.sign()  # again, as the agent may have removed it: until all is recorded the next run must find it
            files.write(run.folder / STARTED, b"")
            record_violations(run, watched.put_back, self._ready.agent.name, self._names)
            self._put_back = {one.path for one in watched.put_back}
            self._tell_kept(watched.put_back)
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
    adapter: Adapter, outcome: ProcessOutcome, heard: StreamAccumulator, errors: str, bounds: ProcessLimits
) -> AgentEnded:
    """Good only by exit code and final event both."""
    if outcome.ending is ProcessEnding.WALL:
        return AgentEnded(cause=FailureCause.WALL_CLOCK, message=f"it took longer than {bounds.wall_secs:g} s")
    if outcome.ending is ProcessEnding.IDLE:
        return AgentEnded(cause=FailureCause.IDLE, message=f"it printed nothing for {bounds.idle_secs:g} s")
    if outcome.ending is ProcessEnding.OUTPUT:
        size = bounds.output_bytes // (1024 * 1024)
        return AgentEnded(cause=FailureCause.TOO_MUCH_OUTPUT, message=f"it printed more than {size} MB")
    if heard.ended and heard.ended.cause:
        return heard.ended
    if outcome.exit_code:
        return adapter.failure(outcome.exit_code, errors) or _crashed(outcome.exit_code, errors)
    if adapter.final_event and not heard.ended:
        what = "without its final event" if heard.understood else "with output that agentd does not understand"
        return AgentEnded(cause=FailureCause.GARBAGE, message=f"it ended {what}")
    return heard.ended or AgentEnded()


def _crashed(code: int, errors: str) -> AgentEnded:
    how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
    return AgentEnded(cause=FailureCause.CRASHED, message=f"{how}: {last[:300]}" if last else how)


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
