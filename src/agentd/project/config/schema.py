"""Which keys exist, and what each may hold. The defaults are in template.toml and in the declarations of
validation rules, and nowhere else."""

from collections.abc import Iterator, Sequence

from agentd.agents import ADAPTERS
from agentd.domain import Complexity, GitSetup, KeyPath, Role, Severity, dotted_key, show_value
from agentd.project.config.shapes import (
    BoolShape,
    ChoiceShape,
    ConfigShape,
    IntShape,
    ListShape,
    MapShape,
    NameShape,
    NumberShape,
    RegexShape,
    Rule,
    ShapeProblem,
    TableShape,
    TextShape,
)
from agentd.validation import CODE_RULES, RULES

DOCUMENTS = ("proposal", "spec", "tasks", "clarifications")
OFF = "off"
ASK = "ask"


def _fields(items: Sequence[object], key: str) -> Iterator[tuple[int, object]]:
    """That key of every item that has it; what is wrong with the others is said elsewhere."""
    for index, item in enumerate(items):
        if isinstance(item, dict) and key in item:
            yield index, item[key]


def _names_differ(key: str) -> Rule:
    def rule(items: Sequence[object], path: KeyPath) -> Iterator[ShapeProblem]:
        seen: list[object] = []
        for index, name in _fields(items, key):
            if name in seen:
                where = (*path, index, key)
                yield ShapeProblem(
                    where, f"{dotted_key(where)}: {show_value(name)} stands twice; give each its own {key}"
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
                    where, f"{dotted_key(where)}: {show_value(level)} stands twice; give each level to one model"
                )
            seen.append(level)
    left = [str(level) for level in Complexity if level not in seen]
    # A level that is misspelt or forgotten has been reported.
    whole = len(given) == len(items) and all(level in tuple(Complexity) for level in seen)
    if items and left and whole:
        yield ShapeProblem(path, f"{dotted_key(path)} has no model for {', '.join(left)}; add the level to one of them")


_ONE_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*"
_WORDS = ListShape(TextShape())
_COUNT = IntShape(least=0)
_AT_LEAST_ONE = IntShape(least=1)
_SECONDS = NumberShape(positive=True)
_USD = NumberShape(positive=False)
_PER_ROLE = TableShape(dict.fromkeys(Role, _SECONDS))

MODEL = TableShape(
    {
        "id": TextShape(),
        "model": TextShape(),
        "complexity": ListShape(ChoiceShape(*Complexity)),
        "reasoning": ChoiceShape("low", "medium", "high", "xhigh"),
    },
    needs=("id", "model", "complexity"),
)
AGENT = TableShape(
    {
        "kind": ChoiceShape(*ADAPTERS),
        "command": TextShape(),
        "playbook": TextShape(),
        "args": ListShape(TextShape(empty=True)),
        "shell": _WORDS,
        "env": ListShape(
            NameShape(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable; its value stays in the environment")
        ),
        "resume": ChoiceShape("auto", "uuid", "index"),
        "models": ListShape(MODEL, (_names_differ("id"), _levels_once)),
    }
)
PRICE = TableShape({"input": _USD, "output": _USD, "cached": _USD}, needs=("input", "output"))
CHECK = TableShape(
    {
        "name": NameShape(rf"(?=.*\S){_ONE_LINE}", "a text on one line that is not empty"),
        "command": TextShape(),
        "required": BoolShape(),
        "timeout": _SECONDS,
    },
    needs=("name", "command"),
)
SCHEMA = TableShape(
    {
        "schema_version": _AT_LEAST_ONE,
        "project_name": NameShape(_ONE_LINE, "a text in quotes, on one line"),
        "workflow": TableShape(
            {
                "human_in_loop": BoolShape(),
                "self_review_iterations": _COUNT,
                "format_iterations": _COUNT,
                "planning_iterations": _COUNT,
                "implementation_iterations": _COUNT,
                "script_retries": _COUNT,
                "retry_delay_secs": NumberShape(positive=False),
                "sequential_implementation": BoolShape(),
            }
        ),
        "git": TableShape(
            {
                "setup": ChoiceShape(ASK, GitSetup.BRANCH, GitSetup.WORKTREE, GitSetup.IN_PLACE),
                "worktree_setup": TextShape(empty=True),
                "commit": ChoiceShape("off", "per-step"),
            }
        ),
        "roles": TableShape(dict.fromkeys(Role, TextShape())),
        "agents": MapShape(NameShape(r"[A-Za-z0-9][A-Za-z0-9_-]*", "made of letters, digits, - and _"), AGENT),
        "limits": TableShape(
            {
                "calls_per_step": _AT_LEAST_ONE,
                "output_mb": _AT_LEAST_ONE,
                "wall_secs": _PER_ROLE,
                "idle_secs": _PER_ROLE,
            }
        ),
        "budget": TableShape({"per_change": _USD, "per_day": _USD, "unknown_price": ChoiceShape("allow", "stop")}),
        "prices": MapShape(TextShape(), PRICE),
        "checks": ListShape(CHECK, (_names_differ("name"),)),
        "validation": TableShape(
            {
                "requirement_pattern": RegexShape(groups="the id and the title", count=2),
                "scenario_pattern": RegexShape(),
                "scenario_min_count": _COUNT,
                "required_headings": TableShape(dict.fromkeys(DOCUMENTS, _WORDS)),
                "max_lines": TableShape(dict.fromkeys(DOCUMENTS, _AT_LEAST_ONE)),
                "severity": TableShape({rule.name: ChoiceShape(*Severity, OFF) for rule in (*RULES, *CODE_RULES)}),
            }
        ),
    }
)


def shape_at(path: KeyPath) -> ConfigShape | None:
    """The shape of a key, None if there is no such key."""
    shape: ConfigShape | None = SCHEMA
    for part in path:
        if isinstance(shape, MapShape):
            shape = shape.item
        else:
            shape = shape.keys.get(str(part)) if isinstance(shape, TableShape) else None
    return shape
