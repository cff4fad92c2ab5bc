"""The streams that the adapters' own tests replay, as the real programs wrote them.

AGENTD_TEST_RECORD=1 python -m pytest -n0 tests/real_cli/test_real_claude.py
"""

import os
import re
from pathlib import Path

from agentd.change.folder import Change
from scenario import Scenario

FOLDER = Path(__file__).parent.parent / "data" / "streams"
WANTED = "AGENTD_TEST_RECORD"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def keep(cli: str, name: str, change: Change, box: Scenario) -> None:
    """The change's last transcript, if somebody records: what the program printed, without this machine in it."""
    if not os.environ.get(WANTED):
        return
    paths = Path(change.project.local_state_path("transcripts")).glob("*/*/*.log")
    last = max(paths, key=lambda path: path.stat().st_mtime_ns)
    lines = [line[5:] for line in last.read_text().split("\n") if line.startswith("out| ")]
    target = FOLDER / cli / f"{name}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_neutral("".join(f"{line}\n" for line in lines), box))


def _neutral(text: str, box: Scenario) -> str:
    places = {box.root: "/home/dev/notes-service", box.home: "/home/dev", box.root.parent: "/home/dev"}
    for place, named in places.items():
        text = text.replace(str(place), named)
        text = text.replace(re.sub(r"[^0-9A-Za-z]", "-", str(place)), named.replace("/", "-"))
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
    seen: dict[str, str] = {}
    return _UUID.sub(lambda match: seen.setdefault(match[0], f"00000000-0000-4000-8000-{len(seen) + 1:012}"), text)
