"""Which keys exist, and what values they accept.

The defaults are defined only in template.toml and in the declarations of validation rules.
"""

from collections.abc import Iterator, Sequence

from agentd.agents import ADAPTERS
from agentd.domain import (
    Choice,
    Complexity,
    Flag,
    GitSetup,
    Integer,
    KeyPath,
    ListOf,
    ListRule,
    MapOf,
    Name,
    Number,
    Regex,
    Role,
    Severity,
    Shape,
    ShapeProblem,
    Table,
    Text,
    dotted_key,
    show_value,
)
from agentd.validation import CODE_RULES, RULES

DOCUMENTS = ("proposal", "spec", "tasks", "clarifications")
OFF = "off"
ASK = "ask"


def _fields(items: Sequence[object], key: str) -> Iterator[tuple[int, object]]:
    """Yield that key of every item that has it; other checks report the items that do not."""
    for index, item in enumerate(items):
        if isinstance(item, dict) and key in item:
            yield index, item[key]


def _names_differ(key: str) -> ListRule:
    def rule(items: Sequence[object], path: KeyPath) -> Iterator[ShapeProblem]:
        seen: list[object] = []
        for index, name in _fields(items, key):
            if name in seen:
                where = (*path, index, key)
                yield ShapeProblem(
                    where, message=f"{dotted_key(where)}: {show_value(name)} is used twice; give each its own {key}"
                )
            seen.append(name)

    return rule


def _levels_once(items: Sequence[object], path: KeyPath) -> Iterator[ShapeProblem]:
    seen: list[object] = []
    given = {index: levels for index, levels in _fields(items, "complexity") if isinstance(levels, list)}
    for index, levels in given.items():
        for level in levels:
            if level in seen:
                where = (*path, index, "complexity")
                yield ShapeProblem(
                    where,
                    message=f"{dotted_key(where)}: {show_value(level)} is used twice; give each level to one model",
                )
            seen.append(level)
    left = [str(level) for level in Complexity if level not in seen]
    # A misspelled or missing level has been reported already.
    whole = len(given) == len(items) and all(level in tuple(Complexity) for level in seen)
    if items and left and whole:
        yield ShapeProblem(
            path, message=f"{dotted_key(path)} has no model for {', '.join(left)}; add the level to one of them"
        )


_ONE_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*"
_WORDS = ListOf(Text())
_COUNT = Integer(least=0)
_AT_LEAST_ONE = Integer(least=1)
_SECONDS = Number(positive=True)
_USD = Number(positive=False)
_PER_ROLE = Table(dict.fromkeys(Role, _SECONDS))

MODEL = Table(
    {
        "id": Text(),
        "model": Text(),
        "complexity": ListOf(Choice(*Complexity)),
        "reasoning": Choice("low", "medium", "high", "xhigh"),
    },
    required=("id", "model", "complexity"),
)
AGENT = Table(
    {
        "kind": Choice(*ADAPTERS),
        "command": Text(),
        "playbook": Text(),
        "args": ListOf(Text(least=0)),
        "shell": _WORDS,
        "env": ListOf(Name(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable; its value stays in the environment")),
        "resume": Choice("auto", "uuid", "index"),
        "models": ListOf(MODEL, rules=(_names_differ("id"), _levels_once)),
    }
)
PRICE = Table({"input": _USD, "output": _USD, "cached": _USD}, required=("input", "output"), is_layered=True)
CHECK = Table(
    {
        "name": Name(rf"(?=.*\S){_ONE_LINE}", "a text on one line that is not empty"),
        "command": Text(),
        "required": Flag(),
        "timeout": _SECONDS,
    },
    required=("name", "command"),
)
SCHEMA = Table(
    {
        "schema_version": _AT_LEAST_ONE,
        "project_name": Name(_ONE_LINE, "a text in quotes, on one line"),
        "workflow": Table(
            {
                "human_in_loop": Flag(),
                "self_review_iterations": _COUNT,
                "format_iterations": _COUNT,
                "planning_iterations": _COUNT,
                "implementation_iterations": _COUNT,
                "script_retries": _COUNT,
                "retry_delay_secs": Number(positive=False),
                "sequential_implementation": Flag(),
            }
        ),
        "git": Table(
            {
                "setup": Choice(ASK, GitSetup.BRANCH, GitSetup.WORKTREE, GitSetup.IN_PLACE),
                "worktree_setup": Text(least=0),
                "commit": Choice("off", "per-step"),
            }
        ),
        "roles": Table(dict.fromkeys(Role, Text())),
        "agents": MapOf(Name(r"[A-Za-z0-9][A-Za-z0-9_-]*", "made of letters, digits, - and _"), AGENT),
        "limits": Table(
            {
                "calls_per_step": _AT_LEAST_ONE,
                "output_mb": _AT_LEAST_ONE,
                "wall_secs": _PER_ROLE,
                "idle_secs": _PER_ROLE,
            }
        ),
        "budget": Table({"per_change": _USD, "per_day": _USD, "unknown_price": Choice("allow", "stop")}),
        "prices": MapOf(Text(), PRICE),
        "checks": ListOf(CHECK, rules=(_names_differ("name"),)),
        "validation": Table(
            {
                "requirement_pattern": Regex(groups="the id and the title", count=2),
                "scenario_pattern": Regex(),
                "scenario_min_count": _COUNT,
                "required_headings": Table(dict.fromkeys(DOCUMENTS, _WORDS)),
                "max_lines": Table(dict.fromkeys(DOCUMENTS, _AT_LEAST_ONE)),
                "severity": Table({rule.name: Choice(*Severity, OFF) for rule in (*RULES, *CODE_RULES)}),
            }
        ),
    }
)


def shape_at(path: KeyPath) -> Shape | None:
    """Return the shape of a key, or None if there is no such key."""
    shape: Shape | None = SCHEMA
    for part in path:
        if isinstance(shape, MapOf):
            shape = shape.item
        else:
            shape = shape.keys.get(str(part)) if isinstance(shape, Table) else None
    return shape
