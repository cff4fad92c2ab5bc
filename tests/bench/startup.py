"""How quick `status` and `list` are, as a ratio to a bare start of the same interpreter, best of 20, alternating."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from plans import EXAMPLE
from program import AGENTD
from scenario import Scenario

ROUNDS = 20


def fill(box: Scenario, count: int) -> None:
    box.write("agentd/config.toml", "schema_version = 1\n")
    text = (EXAMPLE / "STATE.yaml").read_text()
    text = text.replace("setup: branch", "setup: in-place").replace("branch: agentd/add-oauth", "branch: null")
    for number in range(count):
        box.write(f"agentd/changes/change-{number}/STATE.yaml", text.replace("add-oauth", f"change-{number}"))
    time.sleep(0.1)


def measure(box: Scenario, commands: dict[str, list[str]]) -> dict[str, float]:
    """The best time of each, taken in turns so that a busy moment hits all alike."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, cwd=box.root, env=box.env, stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def report(title: str, best: dict[str, float], limits: dict[str, float]) -> bool:
    bare = best["python -c pass"]
    fine = True
    print(f"\n{title} (best of {ROUNDS}, alternating)")
    for name, seconds in best.items():
        ratio = seconds / bare
        limit = limits.get(name)
        fine = fine and (limit is None or ratio <= limit)
        print(f"  {name:16} {seconds * 1000:7.1f} ms  {ratio:5.2f} x" + (f"  (at most {limit:g} x)" if limit else ""))
    return fine


def main() -> None:
    bare = {"python -c pass": [sys.executable, "-c", "pass"]}
    fine = True
    for count, names, limit in ((10, ("status", "list"), 6.0), (5000, ("list",), 12.0)):
        with tempfile.TemporaryDirectory() as folder:
            box = Scenario(Path(folder) / "repo", Path(folder) / "home")
            fill(box, count)
            commands = bare | {f"agentd {name}": [AGENTD, name] for name in names}
            for command in commands.values():  # warms the index and the bytecode
                subprocess.run(command, cwd=box.root, env=box.env, stdout=subprocess.DEVNULL, check=True)
            best = measure(box, commands)
            fine &= report(f"{count} changes", best, {f"agentd {name}": limit for name in names})
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
