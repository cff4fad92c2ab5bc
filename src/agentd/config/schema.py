"""Which keys exist, and what each may hold. The defaults are in template.toml and nowhere else."""

from collections.abc import Iterator, Sequence

from agentd.config.shapes import (
    Bool,
    Choice,
    Int,
    ListOf,
    MapOf,
    Name,
    Number,
    Problem,
    Regex,
    Rule,
    Shape,
    Table,
    Text,
)
from agentd.config.writing import KeyPath, dotted, show
from agentd.domain.terms import Complexity, GitSetup, Role, Severity

# In the order in which they are offered; "scripted" plays a playbook file, for the demo and for tests.
KINDS = ("gemini", "codex", "claude", "command", "scripted")
DOCUMENTS = ("proposal", "spec", "tasks", "clarifications")
OFF = "off"
ASK = "ask"
RULES = (
    "frontmatter-missing",
    "frontmatter-invalid",
    "heading-missing",
    "requirement-format",
    "requirement-duplicate",
    "requirement-untitled",
    "scenario-format",
    "scenario-count",
    "placeholder",
    "link-broken",
    "spec-missing",
    "spec-unnamed",
    "spec-ref-unknown",
    "task-format",
    "task-duplicate",
    "task-path",
    "dependency-unknown",
    "dependency-cycle",
    "requirement-without-task",
    "task-without-requirement",
    "too-long",
    "requirement-without-file",
    "requirement-without-test",
    "file-without-task",
    "test-weakened",
)


def _fields(items: Sequence[object], key: str) -> Iterator[tuple[int, object]]:
    """That key of every item that has it; what is wrong with the others is said elsewhere."""
    for index, item in enumerate(items):
        if isinstance(item, dict) and key in item:
            yield index, item[key]


def _names_differ(key: str) -> Rule:
    def rule(items: Sequence[object], path: KeyPath) -> Iterator[Problem]:
        seen: list[object] = []
        for index, name in _fields(items, key):
            if name in seen:
                where = (*path, index, key)
                yield Problem(where, f"{dotted(where)}: {show(name)} stands twice; give each its own {key}")
            seen.append(name)

    return rule


def _levels_once(items: Sequence[object], path: KeyPath) -> Iterator[Problem]:
    seen: list[object] = []
    given = {index: levels for index, levels in _fields(items, "complexity") if isinstance(levels, list)}
    for index, levels in given.items():
        for level in levels:
            if level in seen:
                where = (*path, index, "complexity")
                yield Problem(where, f"{dotted(where)}: {show(level)} stands twice; give each level to one model")
            seen.append(level)
    left = [str(level) for level in Complexity if level not in seen]
    # A level that is misspelt or forgotten has been reported.
    whole = len(given) == len(items) and all(level in tuple(Complexity) for level in seen)
    if items and left and whole:
        yield Problem(path, f"{dotted(path)} has no model for {', '.join(left)}; add the level to one of them")


_ONE_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*"
_WORDS = ListOf(Text())
_COUNT = Int(least=0)
_AT_LEAST_ONE = Int(least=1)
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
    needs=("id", "model", "complexity"),
)
AGENT = Table(
    {
        "kind": Choice(*KINDS),
        "command": Text(),
        "playbook": Text(),
        "args": ListOf(Text(empty=True)),
        "shell": _WORDS,
        "env": ListOf(Name(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable; its value stays in the environment")),
        "resume": Choice("auto", "uuid", "index"),
        "models": ListOf(MODEL, (_names_differ("id"), _levels_once)),
    }
)
PRICE = Table({"input": _USD, "output": _USD, "cached": _USD}, needs=("input", "output"))
CHECK = Table(
    {
        "name": Name(rf"(?=.*\S){_ONE_LINE}", "a text on one line that is not empty"),
        "command": Text(),
        "required": Bool(),
        "timeout": _SECONDS,
    },
    needs=("name", "command"),
)
SCHEMA = Table(
    {
        "schema_version": _AT_LEAST_ONE,
        "project_name": Name(_ONE_LINE, "a text in quotes, on one line"),
        "workflow": Table(
            {
                "human_in_loop": Bool(),
                "self_review_iterations": _COUNT,
                "format_iterations": _COUNT,
                "planning_iterations": _COUNT,
                "implementation_iterations": _COUNT,
                "script_retries": _COUNT,
                "retry_delay_secs": Number(positive=False),
                "sequential_implementation": Bool(),
            }
        ),
        "git": Table(
            {
                "setup": Choice(ASK, GitSetup.BRANCH, GitSetup.WORKTREE, GitSetup.IN_PLACE),
                "worktree_setup": Text(empty=True),
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
        "checks": ListOf(CHECK, (_names_differ("name"),)),
        "validation": Table(
            {
                "requirement_pattern": Regex(groups="the id and the title", count=2),
                "scenario_pattern": Regex(),
                "scenario_min_count": _COUNT,
                "required_headings": Table(dict.fromkeys(DOCUMENTS, _WORDS)),
                "max_lines": Table(dict.fromkeys(DOCUMENTS, _AT_LEAST_ONE)),
                "severity": Table(dict.fromkeys(RULES, Choice(*Severity, OFF))),
            }
        ),
    }
)


def shape_at(path: KeyPath) -> Shape | None:
    """The shape of a key, None if there is no such key."""
    shape: Shape | None = SCHEMA
    for part in path:
        if isinstance(shape, MapOf):
            shape = shape.item
        else:
            shape = shape.keys.get(str(part)) if isinstance(shape, Table) else None
    return shape
