"""`validate --all` against a bare loop that reads the same files, as whole processes, best of 5, alternating.

2,000 changes with a spec each must take at most 15 times the loop, and four times as many about four times as long.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from plans import EXAMPLE
from program import AGENTD
from scenario import Scenario

ROUNDS = 5
LIMIT = 15.0
READ = """
import os
for change in os.scandir("agentd/changes"):
    for name in ("clarifications.md", "proposal.md", "tasks.md"):
        try:
            with open(f"{change.path}/{name}", encoding="utf-8") as file:
                file.read()
        except FileNotFoundError:
            pass
    for spec in os.listdir(f"{change.path}/specs"):
        with open(f"{change.path}/specs/{spec}", encoding="utf-8") as file:
            file.read()
"""
PROPOSAL = """\
---
id: {id}
type: proposal
version: 1
created: 2026-01-19T10:30:39Z
affected_specs:
  - id: user-model
    depends: []
---

# Change: {id}

## Summary

Store users and the provider accounts that belong to them.

## Why

Nobody can tell who wrote a note.

## What Changes

- Add users and their identities.

## Impact

- Scope: minor
- Affected specs: `user-model`
- Affected files: 2
- Affected code: `src/notes/models/`
- Breaking changes: none
"""


def fill(box: Scenario, count: int) -> None:
    box.write("agentd/config.toml", "schema_version = 1\n")
    spec = (EXAMPLE / "specs/user-model.md").read_text()
    tasks = (EXAMPLE / "tasks.md").read_text()
    tasks = tasks[: tasks.index("## 2. Logic Layer")]
    for number in range(count):
        folder = f"agentd/changes/change-{number}"
        box.write(f"{folder}/STATE.yaml", f"change_id: change-{number}\nphase: proposed\n")
        box.write(f"{folder}/proposal.md", PROPOSAL.format(id=f"change-{number}"))
        box.write(f"{folder}/specs/user-model.md", spec)
        box.write(f"{folder}/tasks.md", tasks.replace("add-oauth", f"change-{number}"))
    time.sleep(0.1)


def measure(count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        box = Scenario(Path(folder) / "repo", Path(folder) / "home")
        fill(box, count)
        commands = {"read": [sys.executable, "-c", READ], "validate": [AGENTD, "validate", "--all", "--strict"]}
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=box.root, env=box.env, stdout=subprocess.DEVNULL, check=True)
                best[name] = min(best[name], time.perf_counter() - start)
        return best["read"], best["validate"]


def main() -> None:
    print(f"\nvalidate --all (whole processes, best of {ROUNDS}, alternating)")
    print("  changes   bare loop    validate   ratio")
    taken = {}
    for count in (500, 2000):
        read, validate = measure(count)
        taken[count] = validate
        limit = f"  (at most {LIMIT:g} x)" if count == 2000 else ""
        print(f"  {count:7} {read * 1000:8.0f} ms {validate * 1000:8.0f} ms {validate / read:6.1f} x{limit}")
        fine = validate / read <= LIMIT
    print(f"  four times the changes: {taken[2000] / taken[500]:.1f} x the time")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
