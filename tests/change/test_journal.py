"""The journal: numbered without gaps by any number of writers, readable after a torn line."""

import subprocess
import sys
from pathlib import Path

from agentd.change.journal import Journal
from agentd.domain import events
from scenario import Scenario


def warn(journal: Journal, text: str = "x") -> int:
    return journal.append(events.WarningIssued(code="test", message=text)).seq


WRITE = """
import sys
from pathlib import Path
from agentd.domain import events
from agentd.change.journal import Journal

for number in range(40):
    Journal(Path("journal.jsonl"), "add-oauth", "run").append(events.WarningIssued(code="test", message=str(number)))
"""


def test_concurrent_writers_get_consecutive_numbers(box: Scenario) -> None:
    started = [subprocess.Popen([sys.executable, "-c", WRITE], cwd=box.root, env=box.env) for _ in range(5)]
    assert [process.wait() for process in started] == [0] * 5
    entries, _ = Journal(box.root / "journal.jsonl", "add-oauth", None).since(0)
    assert [entry.seq for entry in entries] == list(range(1, 201))


def test_torn_last_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, "add-oauth", "run-1")
    assert [warn(journal), warn(journal)] == [1, 2]
    path.write_bytes(path.read_bytes()[:-30])
    assert warn(journal) == 2
    assert [entry.seq for entry in journal.since(0)[0]] == [1, 2]
    assert path.read_bytes().count(b"\n") == 3


def test_very_long_last_line_is_found(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", "add-oauth", None)
    assert warn(journal, "x" * 300_000) == 1
    assert warn(journal) == 2


def test_missing_journal_is_empty(tmp_path: Path) -> None:
    assert Journal(tmp_path / "none.jsonl", "x", None).since(0) == ([], 0)
