"""`agentd log`: a change's journal and its agents' transcripts."""

import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from agentd.agents import TranscriptFile, list_transcripts
from agentd.change import ChangeLocator, Journal, check_change_id, describe_event, is_in_progress
from agentd.cli import output, text_table
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.domain import NotCheckedOut, UsageError, events
from agentd.project import Project, find_project

COMMANDS = {"log": (130, "Show what happened to a change, and what its agents said.")}

_HANG = "  "


def entry_line(entry: events.JournalEntry) -> str:
    """Format one entry as time, step and description, wrapped to the terminal; agent text is sanitised."""
    event = entry.event
    step = getattr(event, "step", None)
    text = text_table.clean_line(describe_event(event))
    head = [output.paint(_time(entry.at), dim=True), *([f" {step}"] if step else [])]
    width = output.width()
    if width is None:
        return " ".join([*head, f" {text}"])
    first, _, rest = text.partition(" ")
    return "\n".join(text_table.fill_pieces([*head, f" {first}", *rest.split()], width, _HANG))


def _time(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return at[:19]


_PAUSE = 0.2  # seconds between polls with --follow


@click.command("log")
@change_argument()
@click.option("--follow", "-f", is_flag=True, help="Keep printing new entries until Ctrl-C.")
@click.option("--step", metavar="STEP", help="Only entries of this step, for example challenge.")
@click.option("--last", is_flag=True, help="Only the last run.")
@click.option("--transcript", "full", is_flag=True, help="Print the transcript of the latest agent call.")
@click.option("--events", "raw", is_flag=True, help="Print the journal itself, one JSON object per line.")
@output.json_option
def command(change_id: str, follow: bool, step: str | None, last: bool, full: bool, raw: bool, as_json: bool) -> int:
    """Show what happened to the change ID, oldest first.

    Journal and transcripts stay on this machine, inside the .git folder; secrets in them are redacted.
    """
    if sum((as_json, raw, full)) > 1 or (as_json and follow):
        message = "use only one of --json, --events and --transcript; --json cannot be combined with --follow"
        raise UsageError(message, "agentd log --help")
    project = find_project()
    check_change_id(change_id)
    journal = Journal(Path(project.local_state_path("journal", f"{change_id}.jsonl")), change_id, None)
    entries, place = journal.since(0)
    transcripts = list_transcripts(project.local_state_path("transcripts", change_id))
    calls = [transcript for transcript in transcripts if step in (None, transcript.step)]
    if not entries and not calls:
        _check_exists(project, change_id)
    if full:
        return _transcript(change_id, calls[-1].path if calls else None, follow)
    selected = list(_filter_entries(entries, step, last))
    if as_json:
        return output.show_result("log", True, _data(change_id, selected, calls), str)
    if not selected and not follow:
        output.report(f"Nothing has happened to {change_id} yet.")
    show = events.JournalEntry.line if raw else entry_line
    output.stream(show(entry) for entry in selected if raw or not is_in_progress(entry.event))
    if follow:
        _stream_until_interrupted(show(entry) for entry in _follow_entries(journal, place, step))
    elif calls and not raw:
        more = f"agentd log {change_id} --transcript --step {calls[-1].step}"
        output.note("\n".join(output.following(more, name="More")))
    return 0


def _check_exists(project: Project, change_id: str) -> None:
    with contextlib.suppress(NotCheckedOut):
        find_anywhere(ChangeLocator(project), change_id)


def _filter_entries(entries: list[events.JournalEntry], step: str | None, last: bool) -> Iterator[events.JournalEntry]:
    run = next((entry.run for entry in reversed(entries) if entry.run), None)
    for entry in entries:
        if (not last or entry.run == run) and step in (None, getattr(entry.event, "step", None)):
            yield entry


def _follow_entries(journal: Journal, place: int, step: str | None) -> Iterator[events.JournalEntry]:
    while True:
        entries, place = journal.since(place)
        yield from _filter_entries(entries, step, last=False)
        time.sleep(_PAUSE)


def _transcript(change_id: str, path: Path | None, follow: bool) -> int:
    if path is None:
        raise UsageError(f"{change_id} has no matching transcript", f"agentd log {change_id} shows its steps")
    if follow:
        _stream_until_interrupted(_follow_file(path))
    else:
        with open(path, encoding="utf-8", errors="replace") as file:
            output.stream(text_table.strip_control(line.rstrip("\n")) for line in file)
    return 0


def _follow_file(path: Path) -> Iterator[str]:
    with open(path, "rb") as file:
        pending = b""
        while True:
            pending += file.read()
            complete, line_end, rest = pending.rpartition(b"\n")
            if line_end:
                yield from (text_table.strip_control(line) for line in complete.decode("utf-8", "replace").split("\n"))
                pending = rest
            time.sleep(_PAUSE)


def _stream_until_interrupted(lines: Iterator[str]) -> None:
    try:
        output.stream(lines)
    except KeyboardInterrupt:
        return  # Ctrl-C is how the user ends it


def _data(change_id: str, entries: list[events.JournalEntry], calls: list[TranscriptFile]) -> dict[str, Any]:
    return {
        "change_id": change_id,
        "entries": [entry.data() for entry in entries],
        "transcripts": [
            {
                "run": transcript.run,
                "step": transcript.step,
                "round": transcript.round,
                "number": transcript.number,
                "attempt": transcript.attempt,
                "file": str(transcript.path),
            }
            for transcript in calls
        ],
    }
