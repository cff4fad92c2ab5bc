"""What lies in the demo's folder at first: the sample project in git, set up by `agentd init`, with scripted agents."""

import json
import os
import re
import shutil
from importlib.resources import as_file, files
from typing import Any

from agentd.demo import workspace
from agentd.demo.story import DEMO_CHANGE_ID
from agentd.demo.workspace import DemoWorkspace
from agentd.domain import Refusal, Role
from agentd.project import find_project, git, grant_trust, load_config, trust_items

PLAYBOOK = "agentd/playbook.yaml"
_GIT_CONFIG = "[user]\n\tname = Demo\n\temail = demo@example.invalid\n[init]\n\tdefaultBranch = main\n"
_SEATS = {
    Role.PLANNER: "scripted-planner",
    Role.CHALLENGER: "scripted-judge",
    Role.IMPLEMENTER: "scripted-coder",
    Role.REVIEWER: "scripted-judge",
}
_AGENT = """
[agents.{name}]
kind = "scripted"
playbook = "{playbook}"

[[agents.{name}.models]]
id = "script"
model = "as-if"
complexity = ["low", "medium", "high", "critical"]
"""
_PRICES = """
# As if: no model is asked, and nothing is paid.
[prices."as-if"]
input = 2.5
output = 12.0
"""


def set_up_sample(place: DemoWorkspace) -> str:
    """From within the place. The command of the check that `init` has found."""
    place.git_config.write_text(_GIT_CONFIG)
    _copy_sample(place)
    git.run(str(place.project), "init", "--quiet")
    commit_sample(place, "Split an expense equally")
    done = _init()
    _seat_agents(place)
    commit_sample(place, "Set up agentd, with agents that play a script")
    project = find_project()
    grant_trust(project, trust_items(project, load_config(project.config_file)), os.environ)
    return str(done["checks"][0]["command"])


def commit_sample(place: DemoWorkspace, message: str) -> None:
    git.run(str(place.project), "add", "--all")
    git.run(str(place.project), "commit", "--quiet", "--message", message)


def merge_sample(place: DemoWorkspace) -> None:
    """Back on the main branch, which has the change now."""
    git.run(str(place.project), "switch", "--quiet", "main")
    git.run(str(place.project), "merge", "--quiet", "--ff-only", f"agentd/{DEMO_CHANGE_ID}")


def _copy_sample(place: DemoWorkspace) -> None:
    with as_file(files("agentd.demo").joinpath("sample")) as sample:
        # an installer compiles the modules of a package
        shutil.copytree(sample, place.project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def _init() -> dict[str, Any]:
    done = workspace.capture_command("init", "--no-commit", "--no-skills", "--json")
    data: dict[str, Any] = json.loads(done.out) if done.code == 0 else {}
    if not data.get("checks"):
        raise Refusal(f"agentd init did not find the tests of the sample: {done.told}", "agentd doctor")
    return data


def _seat_agents(place: DemoWorkspace) -> None:
    """Where `init` put the agents of this machine."""
    (place.project / PLAYBOOK).write_text(files("agentd.demo").joinpath("playbook.yaml").read_text("utf-8"), "utf-8")
    path = place.project / "agentd" / "config.toml"
    text = path.read_text("utf-8")
    for role, name in _SEATS.items():
        text = re.sub(rf"^{role} = .*$", f'{role} = "{name}"', text, count=1, flags=re.MULTILINE)
    agents = (_AGENT.format(name=name, playbook=PLAYBOOK) for name in dict.fromkeys(_SEATS.values()))
    path.write_text("".join((text, *agents, _PRICES)), "utf-8")
