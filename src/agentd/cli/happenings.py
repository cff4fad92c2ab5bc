"""Entries of the journal as lines of a terminal: what `log` prints."""

from datetime import datetime

from agentd.change.event_text import describe_event
from agentd.cli import output, table
from agentd.domain import events

_HANG = "  "


def line_of(entry: events.JournalEntry) -> str:
    """Time, step and what happened, in as many lines as the terminal needs; nothing an agent said moves the cursor."""
    event = entry.event
    step = getattr(event, "step", None)
    words = table.clean(describe_event(event))
    head = [output.paint(_time(entry.at), dim=True), *([f" {step}"] if step else [])]
    width = output.width()
    if width is None:
        return " ".join([*head, f" {words}"])
    first, _, rest = words.partition(" ")
    return "\n".join(table.filled([*head, f" {first}", *rest.split()], width, _HANG))


def _time(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return at[:19]
