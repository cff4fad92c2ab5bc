"""`Config.values` says of every value where it comes from; lines are found in any file that TOML allows."""

import tomllib

from config_room import EXAMPLE, Room, room
from hypothesis import given
from hypothesis import strategies as st

from agentd.project.config.layers import key_lines
from agentd.project.config.loader import load_config

__all__ = ["room"]

NASTY = '''\
# "comment [
a = 1 # not ]
[ "b.c" . d ] # [[
text = """
x = 1
[no] \\"""
"""" # "[
other.'q [' = \'\'\'
]
\'\'\'
list = [
  1, # ]
  [2], "]",
  {in = "{"},
]

[[many]]
x = 1
  [[many.inner]]
  y = 1
  [[many.inner]]
  y = 2
[[many]]
[many.table]
z = {p = {q = 1}}
[[many.inner]]
y = 3'''


def test_every_value_has_its_source(room: Room) -> None:
    config = room.load(
        'project_name = "notes"\n\n[prices."gpt-5.2"]\n# so much\ninput = 1\noutput = 2\n',
        user="[[checks]]\nname = 't'\ncommand = 'x'\n",
        environ={"AGENTD_GIT__COMMIT": "per-step"},
        flags=["workflow.script_retries=0"],
    )
    values = {value.key: (value.value, value.source) for value in config.values()}
    assert values["project_name"] == ("notes", "agentd/config.toml:1")
    assert values['prices."gpt-5.2".input'] == (1, "agentd/config.toml:5")
    assert values["checks"] == ([{"name": "t", "command": "x"}], "~/.config/agentd/config.toml:1")
    assert values["git.commit"] == ("per-step", "AGENTD_GIT__COMMIT")
    assert values["workflow.script_retries"] == (0, "--set")
    assert values["workflow.format_iterations"] == (2, "default")
    assert values["agents.gemini.kind"] == ("gemini", "default")
    assert "agents.codex.resume" not in values


def test_every_value_of_the_example_has_the_line_of_its_key() -> None:
    text = EXAMPLE.read_text().split("\n")
    for value in load_config(EXAMPLE, environ={}).values():
        file, _, line = value.source.partition(":")
        last = value.key.rpartition(".")[2]
        if file == "default":
            assert last == "kind"
        else:
            assert text[int(line) - 1].startswith((f"{last} = ", f"[[{value.key}]]"))


def test_key_lines_are_found_in_complex_toml() -> None:
    tomllib.loads(NASTY)
    assert key_lines(NASTY) == {
        ("a",): 2,
        ("b.c",): 3,
        ("b.c", "d"): 3,
        ("b.c", "d", "text"): 4,
        ("b.c", "d", "other"): 8,
        ("b.c", "d", "other", "q ["): 8,
        ("b.c", "d", "list"): 11,
        ("b.c", "d", "list", 0): 11,
        ("b.c", "d", "list", 1): 11,
        ("b.c", "d", "list", 1, 0): 11,
        ("b.c", "d", "list", 2): 11,
        ("b.c", "d", "list", 3): 11,
        ("b.c", "d", "list", 3, "in"): 11,
        ("many",): 17,
        ("many", 0): 17,
        ("many", 0, "x"): 18,
        ("many", 0, "inner"): 19,
        ("many", 0, "inner", 0): 19,
        ("many", 0, "inner", 0, "y"): 20,
        ("many", 0, "inner", 1): 21,
        ("many", 0, "inner", 1, "y"): 22,
        ("many", 1): 23,
        ("many", 1, "table"): 24,
        ("many", 1, "table", "z"): 25,
        ("many", 1, "table", "z", "p"): 25,
        ("many", 1, "table", "z", "p", "q"): 25,
        ("many", 1, "inner"): 26,
        ("many", 1, "inner", 0): 26,
        ("many", 1, "inner", 0, "y"): 27,
    }


STRINGS = st.text("ab\"'#[]{}=\\\n ", max_size=12)


@given(st.lists(STRINGS, min_size=1, max_size=5))
def test_strings_do_not_hide_the_following_key(texts: list[str]) -> None:
    """Each key in turn, written as a basic, a literal or a multi-line string."""
    lines: list[str] = []
    wanted = {}
    for number, text in enumerate(texts):
        wanted[(f"k{number}",)] = len(lines) + 1
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        forms = (
            f'"""{escaped}"""',
            '"' + escaped.replace("\n", "\\n") + '"',
            f"'{text}'",
            f"'''{text}'''",
            "'''\n''' # '",
        )
        valid = [form for form in forms if _is_toml(f"k = {form}")]
        lines += f"k{number} = {valid[number % len(valid)]}".split("\n")
    assert key_lines("\n".join(lines)) == wanted


def _is_toml(text: str) -> bool:
    try:
        return list(tomllib.loads(text)) == ["k"]
    except ValueError:
        return False


def test_every_problem_of_a_long_file_has_its_line(room: Room) -> None:
    text = "".join(f"[agents.a{number}]\nkind = 'codex'\nshell = [\n'x',\n]\nodd = 1\n" for number in range(300))
    problems = room.problems(text)
    assert len(problems) == 300
    assert problems[-1].startswith("agentd/config.toml:1800: unknown key agents.a299.odd;")
