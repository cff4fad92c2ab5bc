"""Events in words: what `log`, every live view and the viewer say of them."""

from agentd.domain import events, format_usd


def is_in_progress(event: events.Event) -> bool:
    """An action of an agent whose end is told too."""
    return isinstance(event, events.AgentActivity) and event.kind != "text" and event.ok is None


def describe_event(event: events.Event) -> str:
    match event:
        case events.RunStarted(command=command):
            return command
        case events.RunFinished(exit_code=code, message=message):
            return f"ended with exit code {code}{f': {message}' if message else ''}"
        case events.StepStarted():
            return _started(event)
        case events.StepFinished(status=status, duration_ms=took, message=message):
            return f"{status} after {format_seconds(took)}{f': {message}' if message else ''}"
        case events.AgentActivity(kind=kind, text=text, ok=ok):
            return text if kind == "text" else f"{_MARKS[ok]} {text}"
        case events.UsageRecorded():
            return _usage(event)
        case events.CheckFinished(name=name, status=status, duration_ms=took):
            return f"check {name} {status.replace('-', ' ')} after {format_seconds(took)}"
        case events.FindingReported(id=id_, severity=severity, title=title, where=where, state=state):
            place = f" ({where})" if where else ""
            return f"{' '.join(word for word in (id_, severity) if word)}, {state}: {title}{place}"
        case events.Transition(from_=origin, to=to, by=by, why=why):
            return f"{origin} → {to} by {by}{f': {why}' if why else ''}"
        case events.DecisionRequested(question=question, options=options):
            return f"asked: {question} ({', '.join(options)})"
        case events.DecisionMade(answer=answer, reason=reason, by=by):
            return f"{by} decided: {answer}{f' ({reason})' if reason else ''}"
        case events.NoticeIssued(message=message):
            return message
        case events.WarningIssued(message=message):
            return f"warning: {message}"
        case events.ErrorOccurred(message=message, retry_in_secs=wait):
            return f"failed: {message}{f'; again in {wait:g} s' if wait is not None else ''}"
    return event.type


_MARKS = {True: "✓", False: "✗", None: "…"}


def _started(event: events.StepStarted) -> str:
    who = ", ".join(word for word in (event.agent, event.model) if word) or "agentd"
    tries = f", attempt {event.attempt}" if event.attempt > 1 else ""
    rounds = f", round {event.round}" if event.round > 1 else ""
    return f"started: {who}{rounds}{tries}{', session resumed' if event.resumed else ''}"


def _usage(event: events.UsageRecorded) -> str:
    cost = "cost unknown" if event.cost is None else format_usd(event.cost)
    if event.tokens_in is None or event.tokens_out is None:
        return f"no usage reported, {cost}"
    cached = f" ({event.tokens_cached:,} cached)" if event.tokens_cached else ""
    return f"{event.tokens_in:,} tokens in{cached}, {event.tokens_out:,} out, {cost}"


def format_seconds(milliseconds: int) -> str:
    whole = milliseconds / 1000
    if whole < 10:
        return f"{whole:.1f} s"
    if whole < 120:
        return f"{whole:.0f} s"
    return f"{whole // 60:.0f} min {whole % 60:.0f} s"
