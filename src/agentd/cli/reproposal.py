"""`agentd reproposal`: the planner's answers to the findings, for scripts."""

from agentd.change import lifecycle
from agentd.cli.options import Options, run_options
from agentd.cli.running import run
from agentd.engine.workflows import plan
from agentd.project.layout import find_project


@run_options("reproposal")
def command(change_id: str, options: Options) -> int:
    """Let the planner answer the open findings of the change ID. Exit code 0 when that is done."""
    change = lifecycle.open_change(find_project(), change_id)
    message = f"The findings are answered; agentd challenge {change_id} judges the answers"
    return run(change, options, plan.run_reproposal, told=lambda: (message, None))
