"""A run in a process of its own: it outlives the terminal or page that started it.

`python -m agentd.engine.detached_run ID FILE` reads the request as JSON from stdin and writes the result to FILE.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from agentd.change import Change, open_change
from agentd.domain import Bug, Busy
from agentd.engine.calls.run_context import change_project
from agentd.engine.workflow_run import RunResult, run_workflow
from agentd.engine.workflows.run_request import RunRequest
from agentd.project import ensure_trusted, find_project, load_config
from agentd.storage import files

_POLL = 0.05  # seconds


@dataclass(frozen=True)
class DetachedProcess:
    child: subprocess.Popen[bytes]
    result: Path
    errors: Path

    def wait(self) -> RunResult:
        """Wait for the process to end and return its result."""
        code = self.child.wait()
        try:
            return RunResult(json.loads(self.result.read_bytes()))
        except (OSError, ValueError):
            lines = self.errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise Bug(f"the run ended with exit code {code}: {' '.join(lines[-1:])}", f"read {self.errors}") from None


def start_detached(change: Change, request: RunRequest) -> int | RunResult:
    """Start the run and return its process id once it holds the lock, or its result if it ended before that."""
    process = _spawn(change, request)
    try:
        while process.child.poll() is None:
            holder = change.active_run()
            if holder and holder.pid == process.child.pid:
                return process.child.pid
            time.sleep(_POLL)
    except KeyboardInterrupt:
        process.child.terminate()
        raise
    return process.wait()


def run_detached(change: Change, request: RunRequest) -> RunResult:
    """Run in a process of its own and wait for the result: stopping that run does not stop the caller."""
    return _spawn(change, request).wait()


def _spawn(change: Change, request: RunRequest) -> DetachedProcess:
    if holder := change.active_run():
        raise Busy(f"{change.id} is being worked on by {holder}", f"agentd wait {change.id}")
    project = change_project(change)
    ensure_trusted(project, load_config(project.config_file, flags=request.settings), os.environ)
    folder = Path(change.project.local_state_path("detached"))
    folder.mkdir(parents=True, exist_ok=True)
    result, errors = folder / f"{change.id}.json", folder / f"{change.id}.err"
    result.unlink(missing_ok=True)
    argv = [sys.executable, "-P", "-m", "agentd.engine.detached_run", change.id, str(result)]
    with errors.open("wb") as stderr:
        child = subprocess.Popen(
            argv,
            cwd=project.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    assert child.stdin
    with child.stdin:
        child.stdin.write(json.dumps(request.to_json()).encode())
    return DetachedProcess(child, result, errors)


def main() -> int:
    request = RunRequest.from_json(json.load(sys.stdin))
    result = run_workflow(open_change(find_project(), sys.argv[1]), request)
    files.write(Path(sys.argv[2]), json.dumps(result.data, ensure_ascii=False).encode())
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
