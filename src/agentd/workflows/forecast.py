"""What a plan would do from here on: its steps, who takes them, and about what they cost. Nothing is run."""

from dataclasses import dataclass

from agentd.change.state import State
from agentd.config import Config
from agentd.project import Project
from agentd.steps.facts import Facts
from agentd.terms import Complexity, Phase, Role, StepStatus
from agentd.workflows import course, estimate
from agentd.workflows.course import Ahead
from agentd.workflows.estimate import Estimate


@dataclass(frozen=True)
class Forecast:
    ahead: Ahead
    role: Role
    agent: str
    model: str | None
    expected: Estimate


def forecast(
    project: Project, config: Config, state: State, facts: Facts | None, round_: int, is_answering: bool
) -> list[Forecast]:
    """Steps of specs that no proposal names yet are not among them; of rounds to come, the next one is."""
    looks = config.workflow.self_review_iterations
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    complexity = facts.complexity if facts else Complexity.MEDIUM
    found = []
    for one in course.ahead(state, looks, facts, round_, is_answering):
        is_draft = one.kind not in ("challenge", "reproposal")
        if one.key in ended or (is_draft and state.phase is not Phase.DRAFTING):
            continue
        role = Role.CHALLENGER if one.kind == "challenge" else Role.PLANNER
        agent = config.agent_for(role)
        model = agent.model_for(complexity)
        name = model.model if model else None
        expected = estimate.expected(project, config, one.step, agent, name)
        found.append(Forecast(one, role, agent.name, name, expected))
    return found
