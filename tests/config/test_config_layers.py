"""Flag > environment > user file > project file > default; tables merge key by key, lists are replaced whole."""

import os
from pathlib import Path

import pytest
from config_room import EXAMPLE, Room, room

from agentd.agents.prices import PriceSettings
from agentd.agents.protocol import AgentSettings, ModelSettings
from agentd.domain.terms import Complexity, GitSetup, Role, Severity
from agentd.project.config.loader import load_config
from agentd.project.config.settings import CheckSettings

__all__ = ["room"]

ROUNDS = "[workflow]\nplanning_iterations = "


def test_example_is_parsed_into_types() -> None:
    config = load_config(EXAMPLE, environ={})
    assert config.project_name == "notes-service"
    assert config.workflow.human_in_loop is True
    assert config.workflow.retry_delay_secs == 5
    assert config.git.setup is None
    assert config.roles[Role.REVIEWER] == "codex"
    assert config.agent_for(Role.PLANNER).env[0] == "GEMINI_API_KEY"
    assert config.limits.wall_secs[Role.IMPLEMENTER] == 3600
    assert config.budget.per_change == 10.0
    assert config.prices == {}
    assert config.checks[2] == CheckSettings("audit", "pip-audit", required=False, timeout=300)
    assert config.validation.requirement_pattern.match("### R1: Sign in")
    assert config.validation.required_headings["spec"] == ("Overview", "Requirements", "Acceptance Criteria")
    assert config.validation.severity["too-long"] is Severity.LOW


def test_example_equals_the_defaults_except_name_and_checks() -> None:
    example = {value.key: value.value for value in load_config(EXAMPLE, environ={}).values()}
    default = {value.key: value.value for value in load_config(None, environ={}).values()}
    assert {key for key in example if example[key] != default[key]} == {"project_name", "checks"}
    assert example.keys() == default.keys()


def test_each_layer_overrides_the_ones_below(room: Room) -> None:
    seen = []
    name = "AGENTD_WORKFLOW__PLANNING_ITERATIONS"
    seen.append(room.load())
    seen.append(room.load(ROUNDS + "11"))
    seen.append(room.load(ROUNDS + "11", user=ROUNDS + "12"))
    seen.append(room.load(ROUNDS + "11", user=ROUNDS + "12", environ={name: "13"}))
    flags = ["workflow.planning_iterations=14"]
    seen.append(room.load(ROUNDS + "11", user=ROUNDS + "12", environ={name: "13"}, flags=flags))
    assert [config.workflow.planning_iterations for config in seen] == [2, 11, 12, 13, 14]


def test_tables_merge_key_by_key(room: Room) -> None:
    config = room.load("[limits.wall_secs]\nplanner = 7\n", user="[limits.wall_secs]\nreviewer = 0.5\n")
    assert config.limits.wall_secs == {
        Role.PLANNER: 7,
        Role.CHALLENGER: 1200,
        Role.IMPLEMENTER: 3600,
        Role.REVIEWER: 0.5,
    }


def test_lists_are_replaced_not_merged(room: Room) -> None:
    project = '[[checks]]\nname = "a"\ncommand = "x"\n[[checks]]\nname = "b"\ncommand = "x"\n'
    user = '[[checks]]\nname = "c"\ncommand = "y"\n[agents.codex]\nmodels = []\n'
    config = room.load(project, user=user)
    assert [check.name for check in config.checks] == ["c"]
    assert config.agents["codex"].models == ()
    assert config.agents["codex"].command == "codex"


def test_check_defaults_to_required_with_ten_minutes(room: Room) -> None:
    config = room.load('[[checks]]\nname = "tests"\ncommand = "make test"\n')
    assert config.checks == (CheckSettings("tests", "make test", required=True, timeout=600),)


def test_missing_files_are_empty_layers(tmp_path: Path) -> None:
    tmp_path.joinpath("file").touch()
    config = load_config(tmp_path / "none" / "none.toml", environ={}, user_file=tmp_path / "file" / "none.toml")
    assert config == load_config(None, environ={})


def test_user_file_is_found_in_xdg_config_home_or_home(room: Room, tmp_path: Path) -> None:
    other = tmp_path / "xdg" / "agentd" / "config.toml"
    other.parent.mkdir(parents=True)
    other.write_text(ROUNDS + "31")
    user = ROUNDS + "32"
    assert room.load(user=user).workflow.planning_iterations == 32
    for folder, rounds in ((str(tmp_path / "xdg"), 31), ("", 32), ("relative", 32)):
        config = room.load(user=user, environ={"XDG_CONFIG_HOME": folder})
        assert config.workflow.planning_iterations == rounds


def test_environment_defaults_to_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AGENTD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    monkeypatch.setenv("AGENTD_PROJECT_NAME", "from the shell")
    assert load_config(None).project_name == "from the shell"
    assert load_config(None, environ={}).project_name == ""


def test_variables_map_to_keys_with_double_underscores(room: Room) -> None:
    environ = {
        "AGENTD_PROJECT_NAME": "2024",
        "AGENTD_GIT__SETUP": "in-place",
        "AGENTD_GIT__WORKTREE_SETUP": "true",
        "AGENTD_VALIDATION__SEVERITY__TOO_LONG": "off",
        "AGENTD_LIMITS__WALL_SECS__PLANNER": "1.5",
        "AGENTD_AGENTS__CODEX__ARGS": '["--quiet"]',
        "AGENTD_CHECKS": "not ours",
        "AGENTD_LOG": "not ours",
        "OTHER__KEY": "not ours",
    }
    config = room.load(environ=environ)
    assert config.project_name == "2024"
    assert config.git.setup is GitSetup.IN_PLACE
    assert config.git.worktree_setup == "true"
    assert config.validation.severity["too-long"] is None
    assert config.limits.wall_secs[Role.PLANNER] == 1.5
    assert config.agents["codex"].args == ("--quiet",)
    assert config.checks == ()


def test_variables_match_custom_names_of_other_layers(room: Room) -> None:
    config = room.load(
        '[prices."gpt-5.2"]\ninput = 1\noutput = 2\n',
        user='[agents.My-Agent]\nkind = "command"\ncommand = "one"\n',
        environ={"AGENTD_PRICES__GPT_5_2__OUTPUT": "3", "AGENTD_AGENTS__MY_AGENT__COMMAND": "two"},
    )
    assert config.prices == {"gpt-5.2": PriceSettings(1, 3)}
    assert config.agents["My-Agent"].command == "two"


def test_flags_accept_toml_values_and_plain_words(room: Room) -> None:
    flags = [
        'agents.codex.command="my codex"',
        "agents.claude.command = other=claude",
        'agents.claude.shell=["alembic"]',
        'prices."a.b=c"={input=1, output=2}',
        "project_name=",
        "workflow.human_in_loop=false",
        "workflow.script_retries=1",
        "workflow.script_retries=0",
    ]
    config = room.load('project_name = "notes"', flags=flags)
    assert config.agents["codex"].command == "my codex"
    assert config.agents["claude"].command == " other=claude"
    assert config.agents["claude"].shell == ("alembic",)
    assert config.prices == {"a.b=c": PriceSettings(1, 2)}
    assert config.project_name == ""
    assert config.workflow.human_in_loop is False
    assert config.workflow.script_retries == 0


def test_flag_value_cannot_inject_another_key(room: Room) -> None:
    config = room.load(flags=['git.worktree_setup="a"\nvalue2 = 1'])
    assert config.git.worktree_setup == '"a"\nvalue2 = 1'


def test_custom_agent_inherits_the_defaults_of_its_kind(room: Room) -> None:
    agents = room.load('[agents.deep]\nkind = "codex"\nargs = ["-x"]\n').agents
    assert agents["deep"].args == ("-x",)
    assert (agents["deep"].command, agents["deep"].models) == ("codex", agents["codex"].models)
    assert list(agents) == ["gemini", "codex", "claude", "deep"]


def test_command_agent_has_no_defaults(room: Room) -> None:
    agent = room.load('[agents.mine]\nkind = "command"\ncommand = "my-agent"\n').agents["mine"]
    assert agent == AgentSettings("mine", "command", "my-agent", "", (), (), (), None, ())
    assert agent.model_for(Complexity.HIGH) is None


def test_changing_an_agents_kind_resets_its_settings(room: Room) -> None:
    flags = ["agents.gemini.playbook=demo.yaml", "agents.gemini.kind=scripted"]
    agent = room.load(EXAMPLE.read_bytes(), flags=flags).agents["gemini"]
    assert agent == AgentSettings("gemini", "scripted", "", "demo.yaml", (), (), (), None, ())


def test_each_complexity_has_its_model() -> None:
    codex = load_config(None, environ={}).agents["codex"]
    found = [codex.model_for(complexity) for complexity in Complexity]
    assert [model.id for model in found if model] == ["fast", "balanced", "deep", "deepest"]
    assert found[3] == ModelSettings("deepest", "gpt-5.2-codex", (Complexity.CRITICAL,), "xhigh")
