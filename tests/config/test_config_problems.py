"""Whatever is wrong is said at once, each with file and line and what would be right."""

from pathlib import Path

import pytest
from config_room import EXAMPLE, Room, room

from agentd.domain.errors import BadConfig
from agentd.project.config.loader import load_config

__all__ = ["room"]

MODELS = "[[agents.claude.models]]\nid = 'a'\nmodel = 'm'\ncomplexity = "
ALL = "['low', 'medium', 'high', 'critical']\n"

PROBLEMS = [
    # unknown keys
    (
        "[workflow]\nplaning_iterations = 3",
        "2: unknown key workflow.planing_iterations; did you mean planning_iterations?",
    ),
    ("Project_Name = 'x'", "1: unknown key Project_Name; did you mean project_name?"),
    ("\nplanning_iterations = 3", "2: unknown key planning_iterations; did you mean workflow.planning_iterations?"),
    ("[workflows]\nx.y = 3", "1: unknown key workflows; did you mean workflow?"),
    ("[git]\nzzz = 1", "2: unknown key git.zzz; known here: setup, worktree_setup, commit"),
    ("[agents.codex]\n'a b' = 1", '2: unknown key agents.codex."a b"; known here: kind, command, playbook,'),
    ("[[checks]]\nname = 't'\ncomand = 'x'\ncommand = 'x'", "3: unknown key checks[0].comand; did you mean command?"),
    ("[validation.severity]\ntoo-lon = 'low'", "2: unknown key validation.severity.too-lon; did you mean too-long?"),
    # types
    ("[workflow]\nhuman_in_loop = 1", "2: workflow.human_in_loop must be true or false, not 1"),
    (
        "[workflow]\nscript_retries = true",
        "2: workflow.script_retries must be a whole number of at least 0, not true",
    ),
    ("[workflow]\nscript_retries = 2.0", "2: workflow.script_retries must be a whole number of at least 0, not 2.0"),
    ("[workflow]\nscript_retries = -1", "2: workflow.script_retries must be a whole number of at least 0, not -1"),
    ("[budget]\nper_day = true", "2: budget.per_day must be a number of at least 0, not true"),
    ("[budget]\nper_day = nan", "2: budget.per_day must be a number of at least 0, not nan"),
    ("[budget]\nper_day = inf", "2: budget.per_day must be a number of at least 0, not inf"),
    ("[budget]\nper_day = 1" + "0" * 400, "2: budget.per_day must be a number of at least 0, not a huge number"),
    ("[limits]\ncalls_per_step = 0", "2: limits.calls_per_step must be a whole number of at least 1, not 0"),
    (
        "[limits]\nwall_secs = 5",
        "2: limits.wall_secs must be a mapping with planner, challenger, implementer, "
        "reviewer, not 5; write it below [limits.wall_secs]",
    ),
    ("[limits.wall_secs]\nplanner = 0", "2: limits.wall_secs.planner must be a number above 0, not 0"),
    ("agents = 3", "1: agents must be a mapping, not 3; write it below [agents]"),
    ("agents.codex = 3", "1: agents.codex must be a mapping with kind, command, playbook,"),
    ("project_name = 3", "1: project_name must be a text in quotes, on one line"),
    ("[git]\nsetup = 'brunch'", '2: git.setup must be "ask", "branch", "worktree" or "in-place", not "brunch"'),
    ("[git]\ncommit = '" + "x" * 999 + "'", '2: git.commit must be "off" or "per-step", not "' + "x" * 60 + '…"'),
    ("[git]\nsetup = ['ask']", '2: git.setup must be "ask", "branch", "worktree" or "in-place", not a list'),
    ('[git]\nworktree_setup = "\\u0000"', "2: git.worktree_setup must be plain UTF-8 text without NUL characters"),
    ("[agents.codex]\nargs = '-x'", '2: agents.codex.args must be a list such as ["one", "two"], not "-x"'),
    (
        "[agents.codex]\nshell = ['a', 2]",
        "2: agents.codex.shell[1] must be a text in quotes that is not empty, not 2",
    ),
    # agents and roles
    ("[agents.'a b']\nkind = 'codex'", '1: agents."a b": name must be made of letters, digits, - and _'),
    (
        "[agents.mine]\ncommand = 'x'",
        '1: agents.mine has no kind; set kind = "gemini", "codex", "claude" or "command"',
    ),
    ("[agents.mine]\n", '1: agents.mine has no kind; set kind = "gemini", "codex", "claude" or "command"'),
    ("[agents.mine]\nkind = 'command'", "1: agents.mine has no command; name the program to run"),
    ("[agents.mine]\nkind = 'scripted'", "1: agents.mine has no playbook; name the file to play"),
    ("[agents.mine]\nkind = 'shell'", '2: agents.mine.kind must be "gemini", "codex",'),
    (
        "[agents.codex]\nresume = 'auto'",
        '2: agents.codex.resume is only for agents of kind "gemini"; this one is "codex"',
    ),
    ("[agents.codex]\nplaybook = 'x'", '2: agents.codex.playbook is only for agents of kind "scripted"; this one is'),
    (
        "[agents.s]\nkind = 'scripted'\nplaybook = 'x'\ncommand = 'x'",
        '4: agents.s.command is only for agents of kind "gemi',
    ),
    ("[agents.codex]\ncommand = ' '", "2: agents.codex.command must be a text in quotes that is not empty, not"),
    ("[roles]\nplanner = 'gemni'", '2: roles.planner names "gemni", which is no agent; did you mean "gemini"?'),
    (
        "[roles]\nplanner = 'x.y'",
        '2: roles.planner names "x.y", which is no agent; add [agents."x.y"], or take "gemini", "codex" or "claude"',
    ),
    # models
    (MODELS + "['low', 'high']", "1: agents.claude.models has no model for medium, critical; add the level to one"),
    (
        MODELS + ALL + MODELS.replace("'a'", "'b'") + "['low']",
        '8: agents.claude.models[1].complexity: "low" is used twice;',
    ),
    (MODELS + ALL + MODELS + "[]", '6: agents.claude.models[1].id: "a" is used twice; give each its own id'),
    (
        MODELS + ALL + "reasoning = 'low'",
        '5: agents.claude.models[0].reasoning is only for agents of kind "codex"; this',
    ),
    (
        MODELS + "['hard']",
        '4: agents.claude.models[0].complexity[0] must be "low", "medium", "high" or "critical", not',
    ),
    ("[[agents.claude.models]]\nid = 'a'\ncomplexity = " + ALL, "1: agents.claude.models[0].model is missing; add it"),
    # checks and prices
    ("[[checks]]\nname = 't'", "1: checks[0].command is missing; add it"),
    ("[[checks]]\nname = ' '\ncommand = 'x'", "2: checks[0].name must be a text on one line that is not empty"),
    ("[[checks]]\nname = 't'\ncommand = 'x'\n" * 2, '5: checks[1].name: "t" is used twice; give each its own name'),
    ("[[checks]]\nname = 't'\ncommand = 'x'\ntimeout = 0", "4: checks[0].timeout must be a number above 0, not 0"),
    ("[checks]\nname = 't'", "1: checks must be a list, not a table; write each item below [[checks]]"),
    ("[prices.'g-5.2']\ninput = 1", '1: prices."g-5.2".output is missing; add it'),
    ("[prices.g]\ninput = -1\noutput = 1", "2: prices.g.input must be a number of at least 0, not -1"),
    # validation
    (
        "[validation]\nrequirement_pattern = '(R)'",
        "2: validation.requirement_pattern must have 2 groups, the id and the title, not 1; write others as (?:…)",
    ),
    (
        "[validation]\nscenario_pattern = '(a'",
        "2: validation.scenario_pattern must be a Python regular expression: missing ), unterminated subpattern",
    ),
    (
        "[validation.severity]\ntoo-long = 'none'",
        '2: validation.severity.too-long must be "high", "medium", "low" or "off",',
    ),
    ("[validation.max_lines]\nspec = 0", "2: validation.max_lines.spec must be a whole number of at least 1, not 0"),
    # the file
    (
        "schema_version = 2\nnew = 1",
        "1: schema_version is 2: the file was written by a newer agentd; this one reads 1,",
    ),
    ("schema_version = 0", "1: schema_version must be a whole number of at least 1, not 0"),
    ("[workflow]\nscript_retries = many", "2: not TOML: invalid value in column 18; a text needs quotes"),
    ("[git]\nsetup = 'ask'\n\n[git]", "4: not TOML: cannot declare ('git',) twice in column 5"),
    ("[git]\nsetup = '''ask\n\n\n", "2: not TOML: expected \"'''\", the file ends"),
    (b"[git]\n\nsetup = '\xff'", "3: not UTF-8 text; save the file as UTF-8"),
]


@pytest.mark.parametrize(("text", "message"), PROBLEMS, ids=[message for _, message in PROBLEMS])
def test_problem_names_its_line_and_the_expected_value(text: str | bytes, message: str, room: Room) -> None:
    [problem] = room.problems(text)
    assert problem.startswith(f"agentd/config.toml:{message}")


def test_problems_of_all_layers_are_reported_together_in_order(room: Room) -> None:
    problems = room.problems(
        "[roles]\nplanner = 'nobody'\n[git]\ncommit = 1\n[workflow]\nx = 1\nscript_retries = 'two'\n",
        user="\n\nproject_nam = 'x'\n",
        environ={"AGENTD_GIT__COMMIT": "maybe", "AGENTD_BUDGET__PER_DAY": "-1"},
        flags=["git.setup=x", "oops", "git.setpu=ask"],
    )
    assert [problem.partition(": ")[0] for problem in problems] == [
        "agentd/config.toml:2",
        "agentd/config.toml:4",
        "agentd/config.toml:6",
        "agentd/config.toml:7",
        "~/.config/agentd/config.toml:3",
        "AGENTD_BUDGET__PER_DAY",
        "AGENTD_GIT__COMMIT",
        "--set",
        "--set",
        "--set",
    ]


def test_overridden_value_must_still_be_valid(room: Room) -> None:
    assert room.problems("[git]\ncommit = 1", flags=["git.commit=off"]) == [
        'agentd/config.toml:2: git.commit must be "off" or "per-step", not 1'
    ]


def test_agent_setting_misused_in_another_layer_is_reported(room: Room) -> None:
    problems = room.problems("[agents.mine]\nkind = 'command'\ncommand = 'x'", user="[agents.mine]\nresume = 'auto'")
    message = 'agents.mine.resume is only for agents of kind "gemini"; this one is "command"'
    assert problems == [f"~/.config/agentd/config.toml:2: {message}"]


def test_missing_agent_setting_is_reported_where_the_agent_is_first_named(room: Room) -> None:
    [problem] = room.problems("\n[agents.mine]", user="[agents.mine]\ncommand = 'x'")
    assert problem.startswith("agentd/config.toml:2: agents.mine has no kind;")


def test_consequential_errors_are_not_reported(room: Room) -> None:
    text = "[roles]\nplanner = 'mine'\n[agents.mine]\nkind = 'comand'\n[prices.m]\ninput = 'x'\n"
    assert [problem[:40] for problem in room.problems(text)] == [
        "agentd/config.toml:4: agents.mine.kind m",
        "agentd/config.toml:6: prices.m.input mus",
    ]
    assert len(room.problems("[agents.mine]\nkind = 'command'\ncommand = 1")) == 1
    assert len(room.problems("agents = 1\nroles.planner = 'mine'")) == 1
    assert len(room.problems("[agents]\nmine = 1\n[roles]\nplanner = 'mine'")) == 1
    assert len(room.problems("[agents.mine", user="[roles]\nplanner = 'mine'")) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AGENTD_WORKFLOW__PLANING_ITERATIONS", "did you mean AGENTD_WORKFLOW__PLANNING_ITERATIONS?"),
        ("AGENTD_WORKFLOW__planning_iterations", "did you mean AGENTD_WORKFLOW__PLANNING_ITERATIONS?"),
        ("AGENTD_AGENTS__CODX__COMMAND", "did you mean AGENTD_AGENTS__CODEX__COMMAND?"),
        ("AGENTD__PROJECT_NAME", "did you mean AGENTD_PROJECT_NAME?"),
        ("AGENTD_Q__\udcff\n", "`agentd config` shows the known ones"),
    ],
)
def test_unknown_variable_is_reported_with_the_nearest_key(name: str, message: str, room: Room) -> None:
    [problem] = room.problems(environ={name: "3"})
    shown = name.replace("\udcff", "\\uDCFF").replace("\n", "\\u000A")
    assert problem == f"{shown}: unknown key; {message}"


def test_ambiguous_variable_is_refused(room: Room) -> None:
    text = "[prices.'a-b']\ninput = 1\noutput = 1\n[prices.a_b]\ninput = 1\noutput = 1\n"
    assert room.problems(text, environ={"AGENTD_PRICES__A_B__INPUT": "3"}) == [
        "AGENTD_PRICES__A_B__INPUT: fits more than one key; set it in a file or with --set"
    ]


@pytest.mark.parametrize("flag", ["", "x", "=3", "a b=3", 'a."b=3', "a..b=3", "a.=3", '"\\q"=3'])
def test_flag_that_is_not_an_assignment_is_reported(flag: str, room: Room) -> None:
    [problem] = room.problems(flags=[flag])
    assert problem.startswith('--set: "')
    assert problem.endswith(" must be KEY=VALUE, such as workflow.planning_iterations=3")


def test_text_that_is_not_unicode_is_refused(room: Room) -> None:
    assert room.problems(environ={"AGENTD_GIT__WORKTREE_SETUP": "\udcff"}) == [
        "AGENTD_GIT__WORKTREE_SETUP: git.worktree_setup must be plain UTF-8 text without NUL characters"
    ]


def test_secret_in_the_env_list_is_not_repeated_in_the_error(room: Room) -> None:
    [problem] = room.problems("[agents.codex]\nenv = ['KEY=hunter2']")
    assert problem == (
        "agentd/config.toml:2: agents.codex.env[0] must be the name of a variable; its value stays in the environment"
    )


def test_unreadable_file_is_a_bad_config(tmp_path: Path) -> None:
    folder = tmp_path / "agentd"
    loop = folder / "config.toml"
    folder.mkdir()
    loop.symlink_to(loop)
    with pytest.raises(BadConfig, match=r"^agentd/config\.toml: cannot be read: .*; mend that or remove the file$"):
        load_config(loop, environ={})
    with pytest.raises(BadConfig, match=r"/agentd: this is a folder; a TOML file belongs here$"):
        load_config(folder, environ={})


def test_control_characters_in_a_bad_file_are_escaped_in_errors(room: Room) -> None:
    problems = room.problems('"a\\nb\\u001b[2J" = 1\n[git]\ncommit = "x\\ny"\n')
    assert len(problems) == 2
    assert all(problem.isprintable() for problem in problems)


def test_crlf_and_byte_order_mark_are_accepted(room: Room) -> None:
    text = EXAMPLE.read_bytes().replace(b"\n", b"\r\n")
    assert room.load(b"\xef\xbb\xbf" + text) == load_config(EXAMPLE, environ={})
    assert room.problems(b"\xef\xbb\xbf\r\n\r\nx.y = 1")[0].startswith("agentd/config.toml:3: unknown key x;")
