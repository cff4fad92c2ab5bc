"""The calls of a step: retried where that can help, reminded once of what is missing, limited in number."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentd.agents import AgentEnded, FailureCause, failure_hint
from agentd.change import ChangeState, StepRecord
from agentd.domain import AgentdError, AgentFailed, AgentMissing, CallsUsedUp, SessionLost, StepStatus, clock, events
from agentd.engine.calls import agent_call, agent_selection, document_backup, step_commits
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.calls.run_context import RunContext

LONGEST_WAIT = 600.0  # seconds; a longer rate limit is reported instead of waited for


def perform_call(run: RunContext, work: CallRequest) -> CallResult:
    """Call the agent until the work is verified; raise an error if it cannot be done. The step calls `finish_step`."""
    settings = run.config.workflow
    tries, delay, prompt, reminded = settings.script_retries, settings.retry_delay_secs, work.prompt, False
    while True:
        attempt = _next_attempt(run, work)
        ready = agent_selection.select_agent(run, work, attempt, prompt)
        document_backup.back_up_documents(run.change, run.folder, work, attempt)
        _begin(run, work, ready)
        called = agent_call.make_call(run, work, ready)
        ended = called.ended
        if ended.cause is None and work.effect and not work.effect() and not work.answer(called.text):
            ended = AgentEnded(
                cause=FailureCause.DID_NOTHING, message="it exited normally but did not do what was asked"
            )
        if ended.cause is None and work.on_session and ready.adapter.sessions != "none" and not called.session:
            ended = AgentEnded(cause=FailureCause.SESSION_LOST, message=agent_selection.NOT_CAPTURED)
        if ended.cause is None:
            return CallResult(attempt=attempt, text=called.text, session=called.session, duration_ms=called.duration_ms)
        wait = None
        if ended.cause is FailureCause.DID_NOTHING and not reminded:
            wait, reminded = 0.0, True
            prompt = f"{work.prompt}\n\n{work.reminder}".rstrip()
        elif tries and (wait := _wait(ended, delay)) is not None:
            tries, delay = tries - 1, delay * 2
        _failed(run, work, attempt, called.duration_ms, ended, ready.agent.name, wait)
        if called.stopped:
            raise called.stopped
        if wait is None:
            raise call_error(ended, ready.agent.name, work, run.change.id)
        time.sleep(wait)


def finish_step(
    run: RunContext,
    work: CallRequest,
    done: CallResult,
    outputs: Mapping[str, str],
    message: str = "",
    also: Callable[[ChangeState], ChangeState] = lambda old: old,
    **more: Any,
) -> None:
    """Record in STATE.yaml that the step's result is on disk; `also` is applied in the same write.

    `more` is added to the step's record.
    """
    row = replace(_row(work, done.attempt, StepStatus.DONE, outputs), extra=more)
    run.update(lambda old: also(old.with_step(row)))
    names = work.names(done.attempt)
    ended = events.StepFinished(
        **names, status=StepStatus.DONE, duration_ms=done.duration_ms, outputs=outputs, message=message
    )
    run.emit(ended)
    step_commits.commit_step(run, work.step)


def call_error(ended: AgentEnded, agent: str, work: CallRequest, change_id: str) -> AgentdError:
    assert ended.cause
    if ended.cause is FailureCause.SESSION_LOST:
        if ended.message != agent_selection.NOT_CAPTURED:
            return agent_selection.session_lost(agent_selection.NOT_FOUND, change_id)
        return SessionLost(ended.message, failure_hint(ended.cause, agent, work.role, change_id))
    if ended.cause is FailureCause.NOT_INSTALLED:
        return AgentMissing(f"{agent}: {ended.message}")
    hint = failure_hint(ended.cause, agent, work.role, change_id)
    if ended.cause is FailureCause.RATE_LIMITED and ended.wait_secs:
        hint = f"wait {_span(ended.wait_secs)}, then run the command again"
    return AgentFailed(f"{work.step}: {agent}: {ended.message or ended.cause}", hint, ended.cause)


def _next_attempt(run: RunContext, work: CallRequest) -> int:
    """Count the attempts in STATE.yaml: each is recorded before it starts, so no crash or resume resets the limit."""
    used = [step.attempt for step in run.change.read().steps if (step.name, step.round, step.number) == work.key]
    cap = run.config.limits.calls_per_step
    if len(used) >= cap:
        raise CallsUsedUp(f"{work.step} has used all of its {cap} calls")
    return max(used, default=0) + 1


def _begin(run: RunContext, work: CallRequest, ready: agent_selection.SelectedAgent) -> None:
    attempt = ready.brief.attempt
    run.update(lambda old: old.with_step(_row(work, attempt, StepStatus.RUNNING, {})))
    run.emit(
        events.StepStarted(
            **work.names(attempt),
            role=work.role,
            agent=ready.agent.name,
            model=ready.brief.model,
            session=ready.brief.resume or ready.brief.session,
            resumed=ready.brief.resume is not None,
        )
    )


def _failed(
    run: RunContext, work: CallRequest, attempt: int, took: int, ended: AgentEnded, agent: str, wait: float | None
) -> None:
    def failed(old: ChangeState) -> ChangeState:
        return old.with_step(replace(_row(work, attempt, StepStatus.FAILED, {}), extra={"cause": str(ended.cause)}))

    document_backup.restore_documents(run.change, run.folder, run.token)
    run.update(failed)
    names = work.names(attempt)
    message = f"{agent}: {ended.message or ended.cause}"
    code = str(ended.cause)
    run.emit(events.ErrorOccurred(**names, code=code, message=message, retry_in_secs=wait, final=wait is None))
    run.emit(events.StepFinished(**names, status=StepStatus.FAILED, duration_ms=took, outputs={}))


def _row(work: CallRequest, attempt: int, status: StepStatus, outputs: Mapping[str, str]) -> StepRecord:
    return StepRecord(work.step, work.round, work.number, attempt, status, dict(outputs), clock.now())


def _wait(ended: AgentEnded, delay: float) -> float | None:
    """Return the seconds until the next attempt; None if there is no point in one."""
    if not ended.cause or not ended.cause.can_pass:
        return None
    wait = max(delay, ended.wait_secs or 0.0)
    return wait if wait <= max(LONGEST_WAIT, delay) else None


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
