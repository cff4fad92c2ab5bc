"""events.md: what `--events` prints and the journal keeps."""

import inspect
from dataclasses import fields

from agentd.domain.events import EVENT_TYPES, Event, JournalEntry, OptionalStepEvent, StepEvent
from reference.markdown import code, paragraphs, table
from reference.types_in_words import rows_of, words_of

_HEAD = """# Events

`agentd plan ID --events` prints one JSON object a line as things happen, `agentd log ID --events` those that were kept.
The names are stable. A reader skips a type that it does not know.

"""
_STEP = {one.name for one in fields(StepEvent)}


def page() -> str:
    rows = [*_entry(), ["`type`", "text", "one of those below"]]
    head = f"## Every line\n\n{table(('field', 'value', 'meaning'), rows)}"
    return _HEAD + "\n".join([head, _in_step(), *(_kind(name, kind) for name, kind in EVENT_TYPES.items())])


def _entry() -> list[list[str]]:
    return [[code(one.name), words_of(one.type), ""] for one in fields(JournalEntry) if one.name != "event"]


def _in_step() -> str:
    rows = [[code(one.name), words_of(one.type)] for one in fields(StepEvent)]
    words = "Events of a step have these too. Where it says *maybe*, they are there if the event belongs to a step."
    return f"## Of a step\n\n{words}\n\n{table(('field', 'value'), rows)}"


def _kind(name: str, kind: type[Event]) -> str:
    own = kind.__doc__ if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(") else ""
    step = (
        "Of a step."
        if issubclass(kind, StepEvent)
        else "Maybe of a step."
        if issubclass(kind, OptionalStepEvent)
        else ""
    )
    lead = "\n\n".join(filter(None, (paragraphs(inspect.cleandoc(own or "")), step)))
    rows = [[code(field.rstrip("_")), *rest] for field, *rest in rows_of(kind) if field not in _STEP]
    return f"## {name}\n\n{lead}\n\n{table(('field', 'value', 'meaning'), rows)}".replace("\n\n\n\n", "\n\n")
