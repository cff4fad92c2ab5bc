"""config.md: every key with type, default and meaning, from the schema, template.toml and the validation rules."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.domain import schema as shapes
from agentd.domain.humanize import quote_toml
from agentd.project.config.config_schema import SCHEMA
from agentd.project.config.template import check_defaults, default_tree, template
from agentd.validation import CODE_RULES, RULES
from reference.markdown import code, plain, sentence, table

_HEAD = """# Configuration

`agentd/config.toml` says how agentd works in a project; `agentd init` writes it with every key and its default. A value
is taken from the first of these that has it:

1. `--set KEY=VALUE` before the command, such as `agentd --set budget.per_change=5 plan ID`
2. the environment: `AGENTD_` and the key in capitals with `__` between its parts, such as `AGENTD_BUDGET__PER_CHANGE=5`
3. your own `~/.config/agentd/config.toml` (or below `XDG_CONFIG_HOME`)
4. `agentd/config.toml` of the project
5. the default

`agentd config` shows each value in force and where it comes from. An unknown key, and every other fault, is told with
its file and line.

"""
_AGENTS = "agents.<name>"
# What the template does not say, since nobody writes it in a project.
_UNTOLD = {
    f"{_AGENTS}.playbook": "of kind `scripted`: the file it plays, for demos and tests; "
    "[bring your own agent](../how-to/bring-your-own-agent.md)",
}
_EXAMPLE = " The figures are an example."  # which only the template has
_TITLE = re.compile(r"(?:# )?\[+(?P<path>[^\]]+)\]+(?:\s+# (?P<words>.*))?")
_PAIR = re.compile(r"(?:# )?(?P<key>[\w-]+) = .*?(?:\s{2,}# (?P<words>.*))?")
_NAMED = re.compile(r"# (?P<key>[a-z]+)\s{2,}(?P<words>\S.*)")


@dataclass
class Words:
    """What the template says: of a key by its path, of a section by its name."""

    keys: dict[str, str] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    name: str
    is_list: bool
    keys: Mapping[str, shapes.Shape]
    required: Sequence[str]


def page() -> str:
    words = told()
    return _HEAD + "\n".join(_section(one, words) for one in sections()) + "\n" + _three()


def sections() -> Iterator[Section]:
    return _below(SCHEMA, "", False)


def told() -> Words:
    """The first word on a key counts; a section is told where it begins, or just before."""
    words, section, before = Words(), "", ""
    for line in template().splitlines():
        if match := _TITLE.fullmatch(line):
            section = _general(match["path"])
            words.sections.setdefault(section, match["words"] or before)
            before = ""
        elif match := _PAIR.fullmatch(line):
            words.keys.setdefault(_join(section, match["key"]), match["words"] or "")
            before = ""
        elif match := _NAMED.fullmatch(line):
            words.keys.setdefault(_join(_AGENTS, match["key"]), match["words"])
        elif line.startswith("# ----"):
            before = ""
        elif line.startswith("# ") and not line.endswith(":"):
            before = f"{before} {line[2:]}".strip()
    words.keys = {
        key: text or _UNTOLD.get(key, "") for key, text in {**dict.fromkeys(_UNTOLD, ""), **words.keys}.items()
    }
    words.keys |= {f"validation.severity.{rule.name}": rule.description for rule in (*RULES, *CODE_RULES)}
    words.sections[f"{_AGENTS}.models"] = words.keys.get(f"{_AGENTS}.models", "")
    return words


def _below(shape: shapes.Table, name: str, is_list: bool) -> Iterator[Section]:
    inner = {key: one for key, one in shape.keys.items() if _is_section(one)}
    own = {key: one for key, one in shape.keys.items() if key not in inner}
    if own:
        yield Section(name, is_list, own, shape.required)
    for key, one in inner.items():
        path = _join(name, key)
        if isinstance(one, shapes.Table):
            yield from _below(one, path, False)
        elif isinstance(one, shapes.MapOf):
            yield from _below(one.item, _join(path, "<model>" if key == "prices" else "<name>"), False)
        elif isinstance(one, shapes.ListOf) and isinstance(one.item, shapes.Table):
            yield from _below(one.item, path, True)


def _is_section(shape: shapes.Shape) -> bool:
    is_rows = isinstance(shape, shapes.ListOf) and isinstance(shape.item, shapes.Table)
    return is_rows or isinstance(shape, shapes.Table | shapes.MapOf)


def _section(one: Section, words: Words) -> str:
    title = f"[[{one.name}]]" if one.is_list else f"[{one.name}]" if one.name else "At the top"
    lead = sentence(plain(words.sections.get(one.name, "").removesuffix(_EXAMPLE)))
    defaults = _defaults(one)
    rows = [
        [
            code(key),
            plain(_type(shape)),
            "needed" if key in one.required else code(_written(defaults[key])) if key in defaults else "",
            plain(words.keys.get(_join(one.name, key), "")),
        ]
        for key, shape in one.keys.items()
    ]
    return f"## {code(title) if one.name else title}\n\n{lead}{table(('key', 'value', 'default', 'meaning'), rows)}"


def _defaults(one: Section) -> dict[str, Any]:
    if one.name == "checks":
        return check_defaults()
    tree: Any = default_tree()
    for part in filter(None, one.name.split(".")):
        tree = tree.get(part, {}) if isinstance(tree, dict) else {}
    return tree if isinstance(tree, dict) else {}


def _type(shape: shapes.Shape) -> str:
    if isinstance(shape, shapes.ListOf):
        return f"a list, each {_type(shape.item)}"
    if isinstance(shape, shapes.Regex):
        return f"a regular expression{f' with {shape.count} groups, {shape.groups}' if shape.groups else ''}"
    if isinstance(shape, shapes.Choice):
        return ", ".join(code(quote_toml(word)) for word in shape.words)
    return shape.expected


def _three() -> str:
    """The agents that are there without a word."""
    rows = []
    for name, agent in default_tree()["agents"].items():
        models = [
            f"{', '.join(one['complexity'])}: {code(one['model'])}"
            + (f" ({one['reasoning']})" if "reasoning" in one else "")
            for one in agent["models"]
        ]
        rows.append([code(name), code(agent["command"]), "; ".join(models), ", ".join(map(code, agent["env"]))])
    head = ("agent", "command", "models by complexity", "variables passed on")
    return f"## The agents by default\n\n{table(head, rows)}"


def _written(value: object) -> str:
    """As TOML has it."""
    if isinstance(value, str):
        return f"'{value}'" if "\\" in value else quote_toml(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    assert tomllib.loads(f"x = {text}")["x"] == value
    return text


def _general(path: str) -> str:
    """`agents.gemini.models` as `agents.<name>.models`."""
    first, *rest = path.split(".")
    if first == "prices":
        return "prices.<model>"
    return ".".join([first, "<name>", *rest[1:]]) if first == "agents" else path


def _join(*parts: str) -> str:
    return ".".join(filter(None, parts))
