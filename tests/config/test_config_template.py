"""The template is what `init` writes, and the one place that holds the defaults."""

import re
import tomllib
from collections.abc import Iterator

from config_room import EXAMPLE, Room, room
from hypothesis import given
from hypothesis import strategies as st

from agentd.agents.registry import ADAPTERS
from agentd.domain.schema import MapOf, Shape, Table
from agentd.domain.terms import Role
from agentd.project.config.config_schema import AGENT, CHECK, PRICE, SCHEMA
from agentd.project.config.loader import load_config
from agentd.project.config.settings import CheckSettings
from agentd.project.config.template import default_tree, render_template, template

__all__ = ["room"]

ROLES = {
    Role.PLANNER: "gemini",
    Role.CHALLENGER: "codex",
    Role.IMPLEMENTER: "claude",
    Role.REVIEWER: "codex",
}
CHECKS = (
    CheckSettings("tests", "python -m pytest -q", True, 600),
    CheckSettings("lint", "ruff check .", True, 120),
    CheckSettings("audit", "pip-audit", False, 300),
)
LINE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")))
NAME = LINE.filter(str.strip)


def test_example_project_is_rendered_byte_for_byte() -> None:
    assert render_template("notes-service", ROLES, CHECKS).encode() == EXAMPLE.read_bytes()


def test_template_without_checks_shows_an_example_check(room: Room) -> None:
    text = render_template("notes-service", ROLES, ())
    part = text.partition("# ---- Checks")[2].partition("# ---- Validation")[0]
    assert "Nothing proves the code until a check is here." in part
    assert room.load(text).checks == ()
    shown = re.sub(r"^# ?", "", part[part.index("# [[checks]]") :], flags=re.MULTILINE)
    assert room.load(shown).checks == CHECKS[:1]


def test_roles_are_rendered_only_in_the_roles_table() -> None:
    text = render_template("notes", {Role.PLANNER: "claude", Role.REVIEWER: "gemini"}, ())
    tree = tomllib.loads(text)
    assert tree["roles"] == {
        "planner": "claude",
        "challenger": "codex",
        "implementer": "claude",
        "reviewer": "gemini",
    }
    assert tree["limits"] == default_tree()["limits"]


def test_long_name_moves_its_comment() -> None:
    line = render_template("n" * 40, {}, ()).split("\n")[4]
    assert line == f'project_name = "{"n" * 40}"  # `init` takes the folder\'s name'


@given(
    name=LINE, checks=st.lists(st.tuples(NAME, NAME, st.booleans(), st.integers(1, 10**6)), unique_by=lambda c: c[0])
)
def test_rendered_config_is_read_back(name: str, checks: list[tuple[str, str, bool, int]]) -> None:
    wanted = tuple(CheckSettings(*check) for check in checks)
    tree = tomllib.loads(render_template(name, ROLES, wanted))
    assert tree["project_name"] == name
    assert tuple(CheckSettings(**check) for check in tree.get("checks", [])) == wanted


def test_defaults_have_no_project_name_and_no_checks() -> None:
    config = load_config(None, environ={})
    assert (config.project_name, config.checks) == ("", ())
    assert {value.source for value in config.values()} == {"default"}


def test_every_template_key_is_in_the_schema() -> None:
    assert list(SCHEMA.problems(default_tree(), ())) == []


def test_every_schema_key_has_a_default_in_the_template() -> None:
    found = set(_keys(SCHEMA, default_tree()))
    # Without a default: which kind, where a playbook is; `resume` is Gemini's; prices and checks start empty.
    optional = {"checks"} | {f"agents.{name}.{key}" for name in ADAPTERS for key in ("kind", "playbook", "resume")}
    assert found - optional == set(), "in the schema, not in the template"


def _keys(shape: Shape, tree: object, path: str = "") -> Iterator[str]:
    """The keys of the schema that the tree does not have."""
    if isinstance(shape, MapOf) and isinstance(tree, dict):
        for name, item in tree.items():
            yield from _keys(shape.item, item, f"{path}{name}.")
    elif isinstance(shape, Table):
        for key, inner in shape.keys.items():
            if isinstance(tree, dict) and key in tree:
                yield from _keys(inner, tree[key], f"{path}{key}.")
            elif not isinstance(inner, MapOf):
                yield f"{path}{key}"


def test_keys_without_a_default_are_shown_in_a_comment() -> None:
    commented = "\n".join(line[2:] for line in template().split("\n") if re.match(r"# (\[|\w+ = )", line))
    shown = tomllib.loads(commented)
    assert list(SCHEMA.problems(shown, ())) == []
    assert set(shown["checks"][0]) == set(CHECK.keys)
    assert set(shown["prices"]["gemini-3-flash-preview"]) == set(PRICE.keys)
    assert set(shown["agents"]["mine"]) == set(AGENT.keys) - {"playbook", "resume"}
