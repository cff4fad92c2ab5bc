"""The commands as text: one template for each workflow, filled for each CLI and sealed with our mark (pure)."""

from collections.abc import Mapping
from importlib import resources
from string import Template

from agentd.skills import seal
from agentd.skills.clis import Cli, Workflow

_PARTS = ("rules", "wait")


def render(cli: Cli, workflow: Workflow) -> str:
    parts = {name: _filled(f"_{name}.md", cli.values).strip() for name in _PARTS}
    body = _filled(f"{workflow.name}.md", {**cli.values, **parts})
    return seal.sealed(*cli.format(workflow, body))


def _filled(file: str, values: Mapping[str, str]) -> str:
    text = resources.files(__package__).joinpath(file).read_text("utf-8")
    return Template(text).substitute(values)
