"""The viewer's pages against one rendering of the same Markdown.

500 changes, a spec of 300 kB, 60 comments beside it, 10,000 events.

Whole answers over a connection that stays open, best of 5, from a server in a process of its own.
"""

import http.client
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from agentd.change import comment_store, lifecycle
from agentd.change.folder import Change
from agentd.domain import events
from agentd.domain.state_machine import TransitionEvent
from agentd.project.layout import find_project
from agentd.web.markup import markdown
from plans import notes_tasks, proposal_text, requirement_text, scenario_text, spec_text
from program import AGENTD
from raw_http import Server, open_server
from scenario import Scenario, move

ROUNDS = 5
CHANGES = 500
EVENTS = 10_000
COMMENTS = 60
SIZE = 300_000  # bytes
BIG = "big"
DOCUMENT = "specs/notes.md"
LIMITS = {  # times one rendering; measured beside each
    "/": 0.5,  # 0.09
    f"/changes/{BIG}": 0.3,  # 0.04
    f"/changes/{BIG}/read/{DOCUMENT}": 2.0,  # 1.0
    f"/changes/{BIG}/rounds": 0.3,  # 0.03
    f"/changes/{BIG}/tasks": 0.3,  # 0.04
    f"/changes/{BIG}/trace": 0.6,  # 0.16
    f"/changes/{BIG}/specs": 2.0,  # 0.84
    f"/changes/{BIG}/{DOCUMENT}": 2.5,  # 0
    f"/changes/{BIG}/cost": 0.3,  # 0.03
    f"/changes/{BIG}/run": 0.3,  # 0.05
    f"/changes/{BIG}/bar": 0.3,  # 0.02
}


def big_spec() -> str:
    words = "A note is kept as it was written, with `its` title, and is **found** again by any of its words. " * 6
    requirements = scenarios = ""
    number = 0
    while len(requirements) + len(scenarios) < SIZE:
        number += 1
        requirements += requirement_text(f"R{number}", f"Rule {number}", words)
        scenarios += scenario_text(f"Case {number}", f"R{number}", "the note is there")
    return spec_text("notes", requirements, scenarios)


def lay_out(box: Scenario) -> Change:
    box.write("agentd/config.toml", "schema_version = 1\n")
    for number in range(CHANGES - 1):
        name = f"change-{number}"
        folder = f"agentd/changes/{name}"
        box.write(f"{folder}/STATE.yaml", f"change_id: {name}\nphase: proposed\ndescription: Better notes {number}\n")
        box.write(f"{folder}/proposal.md", proposal_text(name, []))
        box.write(f"{folder}/tasks.md", notes_tasks(name))
    change = lifecycle.create_change(find_project(str(box.root)), BIG, "A lot of rules")
    box.write(f"agentd/changes/{BIG}/proposal.md", proposal_text(BIG, ["notes"]))
    box.write(f"agentd/changes/{BIG}/{DOCUMENT}", big_spec())
    box.write(f"agentd/changes/{BIG}/tasks.md", notes_tasks(BIG))
    move(change, TransitionEvent.PLAN_GENERATED)
    box.commit("changes")
    step: dict[str, Any] = {"step": "tasks-gen", "round": 1, "number": 1, "attempt": 1}
    journal = change.journal()
    for number in range(EVENTS):
        journal.append(events.AgentActivity(**step, kind="tool", text=f"read_file src/notes/{number}.py", ok=True))
    for number in range(1, COMMENTS + 1):
        place = comment_store.comment_anchor(change, DOCUMENT, f"Rule {number}")
        comment_store.add_comment(change, place, "Who may say so?", "person:dev")
    return change


def best(work: Callable[[], object]) -> float:
    found = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - start)
    return found


def pages(door: Server) -> dict[str, float]:
    cookie = door.enter().removeprefix("Cookie: ")
    line = http.client.HTTPConnection("127.0.0.1", door.port)

    def ask(path: str) -> None:
        line.request("GET", path, headers={"Cookie": cookie})
        answer = line.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:200])

    return {path: best(lambda path=path: ask(path)) for path in LIMITS}  # type: ignore[misc]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        box = Scenario(Path(folder, "notes-service"), Path(folder, "home"))
        os.environ.update({name: box.env[name] for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")})
        change = lay_out(box)
        text = (change.folder / DOCUMENT).read_text()
        one = best(lambda: markdown.render_markdown(text, DOCUMENT))
        size = f"a spec of {len(text) // 1000} kB, {COMMENTS} comments, {EVENTS} events"
        print(f"\nthe viewer, {CHANGES} changes, {size} (best of {ROUNDS})")
        print(f"  rendering that spec once: {one * 1000:.0f} ms")
        with open_server((AGENTD, "view", "--no-open"), box.root, box.env) as door:
            taken = pages(door)
        for path, seconds in taken.items():
            limit = f"{LIMITS[path]:g}"
            print(f"  {path:36} {seconds * 1000:7.0f} ms {seconds / one:6.2f} x  (at most {limit})")
    return 0 if all(seconds / one <= LIMITS[path] for path, seconds in taken.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
