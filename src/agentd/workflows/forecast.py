"""What a command would do from here on: its steps, who takes them, and about what they cost. Nothing is run."""

from collections.abc import Iterable
from dataclasses import dataclass

from agentd.change.state import ChangeState
from agentd.domain.terms import Complexity, Phase, Role, StepStatus
from agentd.project.config import Config
from agentd.project.layout import Project
from agentd.steps import form
from agentd.steps.facts import Facts
from agentd.workflows import course, estimate
from agentd.workflows.course import Ahead
from agentd.workflows.estimate import Estimate

_ROLES = {
    "challenge": Role.CHALLENGER,
    "implement": Role.IMPLEMENTER,
    "resolve": Role.IMPLEMENTER,
    "review": Role.REVIEWER,
}


@dataclass(frozen=True)
class Forecast:
    ahead: Ahead
    role: Role
    agent: str
    model: str | None
    expected: Estimate


def of_plan(
    project: Project,
    config: Config,
    state: ChangeState,
    facts: Facts | None,
    round_: int,
    is_answering: bool,
    is_malformed: bool = False,
) -> list[Forecast]:
    """Steps of specs that no proposal names yet are not among them; of rounds to come, the next one is."""
    steps = course.ahead(state, config.workflow.self_review_iterations, facts, round_, is_answering)
    is_drafting = state.phase is Phase.DRAFTING
    left = [one for one in steps if is_drafting or one.kind in ("challenge", "reproposal")]
    if is_malformed:
        left.insert(0, Ahead(form.STEP, round_, 1, "Format fix", form.STEP))
    return forecast(project, config, state, left, facts.complexity if facts else Complexity.MEDIUM)


def forecast(
    project: Project, config: Config, state: ChangeState, steps: Iterable[Ahead], complexity: Complexity
) -> list[Forecast]:
    """Of those that are left and that an agent takes."""
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    found = []
    for one in steps:
        if one.key in ended or one.kind == "checks":
            continue
        role = _ROLES.get(one.kind, Role.PLANNER)
        agent = config.agent_for(role)
        model = agent.model_for(complexity)
        name = model.model if model else None
        expected = estimate.expected(project, config, one.step, agent, name)
        found.append(Forecast(one, role, agent.name, name, expected))
    return found
