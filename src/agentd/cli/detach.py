"""`--detach`: the command goes on in the background, and survives whoever started it."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from agentd.change import Change
from agentd.cli import output
from agentd.cli.options import CommandOptions
from agentd.domain import Busy

_PAUSE = 0.05  # seconds between two looks whether it runs


def start_detached(change: Change, options: CommandOptions) -> int:
    """Until it has the change's run lock. One that ends before that tells what it has to tell."""
    if holder := change.active_run():
        raise Busy(f"{change.id} is being worked on by {holder}", f"agentd wait {change.id}")
    folder = Path(change.project.in_room("detached"))
    folder.mkdir(parents=True, exist_ok=True)
    out, err = folder / f"{change.id}.out", folder / f"{change.id}.err"
    argv = [sys.executable, "-P", "-m", "agentd", *options.arguments(change.id)]
    with out.open("wb") as words, err.open("wb") as asides:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=words, stderr=asides, start_new_session=True)
    try:
        while child.poll() is None:
            holder = change.active_run()
            if holder and holder.pid == child.pid:
                return _running(change, options, child.pid)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        child.terminate()
        raise
    for source, target in ((err, sys.stderr), (out, sys.stdout)):
        with contextlib.suppress(BrokenPipeError):
            target.write(source.read_text(encoding="utf-8", errors="replace"))
            target.flush()
    return child.returncode


def _running(change: Change, options: CommandOptions, pid: int) -> int:
    place = change.read().git
    data = {
        "change_id": change.id,
        "resolved_from": options.wanted,
        "state": "running",
        "pid": pid,
        "git": {"setup": str(place.setup), "branch": place.branch, "tree": place.tree, "target": place.target},
        "next": f"agentd wait {change.id}",
    }

    def text() -> str:
        words = f"{change.id} is being worked on in the background (process {pid})."
        other = f"agentd log {change.id} --follow looks on, agentd stop {change.id} ends it"
        return "\n".join([*output.prose(words), *output.prose(other), *output.following(f"agentd wait {change.id}")])

    return output.show_result(options.command, options.as_json, data, text)
