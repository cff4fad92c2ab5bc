"""Run one agent with process.run, and tell in lines of JSON what is heard and how it ends."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from agentd.agents import process, reaper
from agentd.change import lifecycle
from agentd.project.layout import find_project
from processes import ROOMY, write_patient_reaper


def tell(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def peak_mb() -> int:
    """Of this program alone; what getrusage says includes the one it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def run(options: dict[str, Any], lock: int | None) -> None:
    count = longest = left_out = 0

    def hear(stream: str, line: bytes, missing: int) -> None:
        nonlocal count, longest, left_out
        count += 1
        longest = max(longest, len(line))
        left_out += missing
        if options.get("echo", True):
            tell(line=line.decode())

    try:
        outcome = process.run_process(
            options["argv"],
            env=dict(os.environ),
            cwd=Path.cwd(),
            stdin=b"",
            bounds=ROOMY,
            on_line=hear,
            lock=lock,
            mark=Path(options["mark"]) if "mark" in options else None,
        )
    except KeyboardInterrupt:
        tell(interrupted=True)
        sys.stdin.read()  # stay, so that nobody can think that our end has ended the agent
        return
    tell(exit_code=outcome.exit_code, count=count, longest=longest, left_out=left_out, peak_mb=peak_mb())


def main() -> None:
    options = json.loads(sys.argv[1])
    if "grace" in options:  # a longer grace, so that a test need not be quick
        reaper.__file__ = write_patient_reaper(Path.cwd(), options["grace"])
        reaper.GRACE = options["grace"]
    if "change" in options:
        with lifecycle.open_change(find_project(), options["change"]).running("agentd impl") as held:
            run(options, held.handle)
    else:
        run(options, None)


main()
