"""Plans by the real CLIs: a project in which they are at home, what their model does in each step, what it heard."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loopback import claude_home, clis, codex_home
from loopback.claude_api import ClaudeApi
from loopback.codex_api import CodexApi
from loopback.gemini_api import GeminiApi
from loopback.gemini_home import gemini_home
from loopback.model import Api, Call, Model, Request, Turn
from plans import EXAMPLE, example_calls
from playbooks import APPROVE, PASS
from prompt_cases import FOLDER
from scenario import Scenario

CONTEXT, JUDGES = f"{FOLDER}/GEMINI.md", f"{FOLDER}/AGENTS.md"
PROPOSAL, TASKS = f"{FOLDER}/proposal.md", f"{FOLDER}/tasks.md"
SPECS = tuple(f"{FOLDER}/specs/{name}.md" for name in ("user-model", "auth-flow", "api-endpoints"))
MAIN = "agentd/specs/api-endpoints.md"

APIS: dict[str, Api] = {"gemini": GeminiApi(), "codex": CodexApi(), "claude": ClaudeApi()}
MODELS = {"gemini": "gemini-2.5-pro", "codex": "gpt-5.5", "claude": "claude-sonnet-4-5"}
PRICES = {"gemini": (1.0, 8.0, 0.25), "codex": (2.0, 16.0, 0.5)}  # in, out, cached; Claude Code tells its own figure
PREFIXES = {"gemini": "mcp_agentd_", "codex": "mcp__agentd__", "claude": "mcp__agentd__"}
IGNORED = "/changes/*/GEMINI.md\n/changes/*/AGENTS.md\n.*.tmp\n"


@dataclass(frozen=True)
class Step:
    """The model reads these files, calls these tools, says this; each of its turns has so many tokens."""

    name: str
    reads: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    says: str = "Done."
    tokens: int = 1000

    @property
    def turns(self) -> list[Turn]:
        reading = tuple(Call("read_file", {"path": path}) for path in self.reads)
        doing = [Turn(calls=calls) for calls in (reading, self.calls) if calls]
        turns = (*doing, Turn(text=self.says))
        size = self.tokens
        return [replace(turn, tokens_in=size, tokens_out=size // 10, cached=size // 2) for turn in turns]

    @property
    def usage(self) -> tuple[int, int, int]:
        """In, out, cached."""
        turns = self.turns
        return (
            sum(turn.tokens_in for turn in turns),
            sum(turn.tokens_out for turn in turns),
            sum(turn.cached for turn in turns),
        )


def turns_of(*steps: Step) -> list[Turn]:
    return [turn for step in steps for turn in step.turns]


def propose(**impact: Any) -> Call:
    """The example's proposal, maybe with another impact."""
    arguments = example_calls()["create_proposal"]
    return Call("create_proposal", {**arguments, "impact": {**arguments["impact"], **impact}})


def write_spec(name: str) -> Call:
    return Call("write_spec", {"spec_id": name, "content": (EXAMPLE / "specs" / f"{name}.md").read_text()})


def break_down(count: int = 7, specs: bool = True) -> Call:
    """The example's tasks, as many as that; without specs there is nothing to refer to."""
    rows = example_calls()["create_tasks"]["tasks"][:count]
    left_out = () if specs else ("spec_ref",)
    return Call("create_tasks", {"tasks": [{key: row[key] for key in row if key not in left_out} for row in rows]})


def report(**other: Any) -> Call:
    return Call("append_review", {**APPROVE, **other})


def look(name: str, *reads: str) -> Step:
    """A self-review that finds nothing."""
    return Step(name, (CONTEXT, *reads), says=f"I looked.\n\n{PASS}")


def three_specs() -> list[Step]:
    """Every step of the example's plan: three specs, each built on those before, the last a delta."""
    steps = [Step("proposal-gen", (CONTEXT,), (propose(),)), look("proposal-review", PROPOSAL)]
    for number, path in enumerate(SPECS):
        name = path.rpartition("/")[2].removesuffix(".md")
        before = (PROPOSAL, *SPECS[:number], *([MAIN] if path == SPECS[-1] else []))
        steps.append(Step(f"spec-gen-{name}", (CONTEXT, *before), (write_spec(name),)))
        steps.append(look(f"spec-review-{name}", *before, path))
    steps.append(Step("tasks-gen", (CONTEXT, PROPOSAL, *SPECS), (break_down(),)))
    steps.append(look("tasks-review", PROPOSAL, *SPECS, TASKS))
    steps.append(Step("challenge", (JUDGES, MAIN), (report(),)))
    return [replace(step, tokens=1000 + 20 * number) for number, step in enumerate(steps)]


def without_specs() -> list[Step]:
    """A plan as short as they come, without self-reviews."""
    return [
        Step("proposal-gen", (CONTEXT,), (propose(affected_specs=[]),)),
        Step("tasks-gen", (CONTEXT, PROPOSAL), (break_down(2, specs=False),)),
        Step("challenge", (JUDGES,), (report(),)),
    ]


# ---- the project


def seat(
    box: Scenario,
    model: Model,
    planner: Sequence[Turn],
    judge: Sequence[Turn],
    who: tuple[str, str] = ("gemini", "codex"),
    workflow: str = "",
    more: str = "",
) -> list[Request]:
    """A project in which these two plan and judge, with these turns; what both ask their model comes in one list."""
    log: list[Request] = []
    for cli, turns in zip(who, (planner, judge), strict=True):
        if cli not in APIS:
            continue
        scenario = model.conversation(APIS[cli], *turns)
        scenario.asked = log
        if cli == "gemini":
            gemini_home(box.home, scenario)
        elif cli == "codex":
            codex_home.codex_home(box.home, scenario)
        else:
            claude_home.claude_home(box.home, scenario)
    box.env |= {codex_home.KEY: "a-dummy-key", claude_home.KEY: "a-dummy-key"}
    roles = f'[roles]\nplanner = "{who[0]}"\nchallenger = "{who[1]}"\n'
    box.write(MAIN, (EXAMPLE / "base" / "api-endpoints.md").read_text())
    box.write("agentd/.gitignore", IGNORED)
    retries = "[workflow]\nretry_delay_secs = 0.05\nscript_retries = 0\n"
    box.configure(f"schema_version = 1\n{retries}{workflow}\n{roles}{_agents()}{more}")
    return log


def _agents() -> str:
    keys = {"gemini": [], "codex": [codex_home.KEY], "claude": [claude_home.KEY]}
    levels = json.dumps(["low", "medium", "high", "critical"])
    text = ""
    for name, names in keys.items():
        text += f"[agents.{name}]\ncommand = {json.dumps(clis.need(name))}\nenv = {json.dumps(names)}\n"
        text += f'[[agents.{name}.models]]\nid = "only"\nmodel = "{MODELS[name]}"\ncomplexity = {levels}\n'
    for name, (given, out, cached) in PRICES.items():
        text += f'[prices."{MODELS[name]}"]\ninput = {given}\noutput = {out}\ncached = {cached}\n'
    return text


def price(cli: str, step: Step) -> float:
    given, out, cached = PRICES[cli]
    tokens_in, tokens_out, tokens_cached = step.usage
    return round(((tokens_in - tokens_cached) * given + tokens_cached * cached + tokens_out * out) / 1_000_000, 6)


# ---- what the model heard


def heard(request: Request) -> str:
    """Everything but the list of tools, as the model reads it."""
    return "\n".join(_strings({key: value for key, value in request.body.items() if key != "tools"}))


def begins(request: Request) -> bool:
    """The first of a session: the model has said nothing in it yet."""
    said = ("model", "assistant", "function_call")
    return not any(one.get("role") in said or one.get("type") in said for one in _objects(request.body))


def sessions(log: Sequence[Request]) -> list[list[Request]]:
    """The requests by fresh session, in the order in which those began."""
    found: list[list[Request]] = []
    for request in log:
        if begins(request):
            found.append([])
        found[-1].append(request)
    return found


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(one)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(one)
