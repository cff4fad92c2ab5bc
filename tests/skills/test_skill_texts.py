"""What the commands say: each in its CLI's own format, short, and naming only what agentd has."""

import re
import shlex
import tomllib

import click
import pytest
import yaml

from agentd.agents.protocol import SkillFiles, SkillWorkflow
from agentd.agents.registry import CLIS
from agentd.agents.skills import SKILL_WORKFLOWS, render_skill
from agentd.cli.app import app
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import TOOLS

SKILLS = {name: cli.skills for name, cli in CLIS.items() if cli.skills}
EACH = [
    pytest.param(skills, workflow, id=f"{name}-{workflow.name}")
    for name, skills in SKILLS.items()
    for workflow in SKILL_WORKFLOWS
]
MARKDOWN = [one for one in EACH if str(one.id).startswith(("claude", "codex"))]
each = pytest.mark.parametrize(("cli", "workflow"), EACH)


def commands(text: str) -> list[list[str]]:
    """Every command line of agentd's that stands in the text."""
    return [shlex.split(line) for line in re.findall(r"`(agentd [^`]+)`", text)]


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@each
def test_every_command_named_in_a_skill_exists(cli: SkillFiles, workflow: SkillWorkflow) -> None:
    text = render_skill(cli, workflow)
    found = commands(text)
    assert found
    with click.Context(app) as context:
        for _, name, *rest in found:
            command = app.get_command(context, name)
            assert command, name
            wished = {word for word in rest if word.startswith("-")}
            assert wished <= options(command), (name, wished)
    # options that are named by themselves belong to plan
    command = app.get_command(click.Context(app), "plan")
    assert command
    alone = {line.split()[0] for line in re.findall(r"`(--[^`]+)`", text)}
    assert alone <= options(command) | {"--json"}


@each
def test_skill_text_is_short_and_completely_rendered(cli: SkillFiles, workflow: SkillWorkflow) -> None:
    text = render_skill(cli, workflow)
    assert text.count("\n") <= 60
    left = set(re.findall(r"\$\w+", text)) - {"$ARGUMENTS", "$agentd"}
    assert not left
    assert text.endswith("\n") and not re.search(r"\n\n\n| \n", text)


@each
def test_skill_text_contains_no_cli_include_or_execute_syntax(cli: SkillFiles, workflow: SkillWorkflow) -> None:
    """By these signs Claude Code and Gemini CLI put in a command's output, a file or one of the arguments."""
    assert not re.search(r"!\{|@\{|!`|@\w|\$\d", render_skill(cli, workflow))


@pytest.mark.parametrize(("cli", "workflow"), MARKDOWN)
def test_frontmatter_matches_what_the_cli_reads(cli: SkillFiles, workflow: SkillWorkflow) -> None:
    start, head, body = render_skill(cli, workflow).split("---\n", 2)
    assert start == "" and body.startswith(("Plan ", "Implement ", "Archive "))
    found = yaml.safe_load(head)
    assert found["description"].startswith(workflow.description)
    if cli is SKILLS["codex"]:
        assert found.keys() == {"name", "description"}
        assert f"/{found['name']}/SKILL.md" in cli.path.format(workflow.name), "a skill bears the name of its folder"
        assert "$ARGUMENTS" not in body, "Codex puts nothing in its place"
    else:
        assert found["argument-hint"] == workflow.hint and "\nArguments: $ARGUMENTS\n" in body


def test_gemini_commands_are_toml() -> None:
    gemini = SKILLS["gemini"]
    for workflow in SKILL_WORKFLOWS:
        found = tomllib.loads(render_skill(gemini, workflow))
        assert found.keys() == {"description", "prompt"}
        assert found["description"] == workflow.description and "\nArguments: {{args}}\n" in found["prompt"]


@pytest.mark.parametrize("workflow", SKILL_WORKFLOWS, ids=lambda one: str(one.name))
def test_claude_may_run_only_the_named_commands_without_asking(workflow: SkillWorkflow) -> None:
    """Not `trust`, `init` or `drop`: a text in the repository may talk the model into it."""
    claude = SKILLS["claude"]
    head, body = render_skill(claude, workflow).split("---\n", 2)[1:]
    tools = yaml.safe_load(head)["allowed-tools"].split(", ")
    named = {name for _, name, *_ in commands(body)}
    runs = {found[1] for tool in tools if (found := re.fullmatch(r"Bash\(agentd (\w+):\*\)", tool))}
    assert runs == named == set(workflow.runs)
    assert runs.isdisjoint({"trust", "init", "drop", "mcp"})
    others = {tool for tool in tools if not tool.startswith("Bash")}
    kept = {"mcp__agentd__create_clarifications", "Read", "Glob", "Grep"}
    assert others == (kept if workflow.name == "plan" else set())


def test_clarifications_use_a_tool_available_to_personal_sessions() -> None:
    (tool,) = [tool for tool in TOOLS if tool.name == "create_clarifications"]
    assert Stage.UNBOUND in tool.stages
    for cli in SKILLS.values():
        text = render_skill(cli, SKILL_WORKFLOWS[0])
        assert "create_clarifications" in text
        assert all(f"`{name}`" in text for name in ("topic", "question", "answer", "rationale", "change_id"))
