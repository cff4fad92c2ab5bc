"""The file that `agentd init` writes. It contains every default: the default layer is this file, parsed."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentd.agents import ADAPTERS, assign_roles
from agentd.domain import Role, join_choices, quote_toml, show_value
from agentd.project.config.settings import CheckSettings
from agentd.validation import CODE_RULES, RULES

_NO_CHECKS = "# Nothing proves the code"
_NO_AGENT = "# No agent was found when this was written: once one is installed, `agentd init` puts in who is here."
_PAIR = re.compile(r"(?P<key>\w+) = .*?(?P<comment>#.*)?")


@cache
def template() -> str:
    """Return the text of template.toml with every role, agent and validation rule filled in."""
    text = Path(__file__).with_name("template.toml").read_text(encoding="utf-8")
    severities = ["\n".join(f'{rule.name} = "{rule.severity}"' for rule in rules) for rules in (RULES, CODE_RULES)]
    values = {
        "roles": "\n".join(f"{role} = {quote_toml(name)}" for role, name in assign_roles(()).items()),
        "kinds": join_choices(kind for kind, adapter in ADAPTERS.items() if "command" in adapter.config_keys),
        "agents": "\n".join(adapter.config for adapter in ADAPTERS.values() if adapter.config).rstrip("\n"),
        "rules": "\n# found by trace, during impl\n".join(severities),
    }
    return re.sub(r"%(\w+)%", lambda match: values[match[1]], text)


@cache
def default_tree() -> dict[str, Any]:
    return tomllib.loads(template())


@cache
def check_defaults() -> dict[str, Any]:
    """Return the defaults of a check's optional keys, from the example in the template."""
    example = tomllib.loads("\n".join(_example_check()))
    return {key: example[key] for key in ("required", "timeout")}


def render_template(project_name: str, roles: Mapping[Role, str], checks: Sequence[CheckSettings]) -> str:
    """Render the configuration of a new project. Roles not given keep their default; no roles: no agent was found."""
    paragraphs = template().split("\n\n")
    return "\n\n".join(_paragraph(paragraph, project_name, roles, checks) for paragraph in paragraphs)


def assign_template_roles(text: str, roles: Mapping[Role, str]) -> str:
    """Assign the roles in a configuration that was written without any agent, unless someone has edited them."""
    [lines] = (part.split("\n") for part in template().split("\n\n") if "[roles]" in part.split("\n"))
    open_seats = _seats(lines, {})
    return "\n\n".join(_seats(lines, roles) if part == open_seats else part for part in text.split("\n\n"))


def _paragraph(text: str, project_name: str, roles: Mapping[Role, str], checks: Sequence[CheckSettings]) -> str:
    lines = text.split("\n")
    if "[roles]" in lines:
        return _seats(lines, roles)
    if text.startswith("schema_version"):
        return "\n".join(_filled(lines, {"project_name": quote_toml(project_name)}))
    if text.startswith(_NO_CHECKS) and checks:
        return "\n\n".join(_check(check, first=index == 0) for index, check in enumerate(checks))
    return text


def _seats(lines: Sequence[str], roles: Mapping[Role, str]) -> str:
    filled = _filled(lines, {role: quote_toml(name) for role, name in roles.items()})
    at = filled.index("[roles]")
    return "\n".join(filled if roles else [*filled[:at], _NO_AGENT, *filled[at:]])


def _check(check: CheckSettings, *, first: bool) -> str:
    values = {
        "name": quote_toml(check.name),
        "command": quote_toml(check.command),
        "required": show_value(check.required),
        "timeout": show_value(check.timeout),
    }
    # Only the first check has the comments.
    lines = [line if first else line.partition("#")[0] for line in _example_check()]
    return "\n".join(["[[checks]]", *_filled(lines, values)])


def _example_check() -> list[str]:
    """Return the lines of the commented-out check, with their comments in place."""
    [paragraph] = (part for part in template().split("\n\n") if part.startswith(_NO_CHECKS))
    _, _, example = paragraph.partition("# [[checks]]\n")
    return [line.removeprefix("# ").replace("  #", "    #") for line in example.split("\n")]


def _filled(lines: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the lines with new values; a comment keeps its column if the value fits."""
    done = []
    for line in lines:
        match = _PAIR.fullmatch(line)
        if match and match["key"] in values:
            pair = f"{match['key']} = {values[match['key']]}"
            line = pair.ljust(match.start("comment") - 2) + "  " + match["comment"] if match["comment"] else pair
        done.append(line)
    return done
