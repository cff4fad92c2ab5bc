"""Entries of the journal as lines of a terminal: what `log` prints."""

from datetime import datetime

from agentd import events
from agentd.change.happenings import words_of
from agentd.cli import output, table


def line_of(entry: events.Entry) -> str:
    """Time, step and what happened; nothing an agent said can move the cursor."""
    event = entry.event
    step = getattr(event, "step", None)
    words = table.clean(words_of(event))
    head = output.paint(_time(entry.at), dim=True)
    return f"{head}  {step}  {words}" if step else f"{head}  {words}"


def _time(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return at[:19]
