"""`agentd resolve-reviews`: the implementer's answers to the findings, for scripts."""

from agentd.change import lifecycle
from agentd.cli.options import Options, run_options
from agentd.cli.running import run
from agentd.domain.terms import Workflow
from agentd.engine.workflows import impl
from agentd.project.layout import find_project


@run_options("resolve-reviews")
def command(change_id: str, options: Options) -> int:
    """Let the implementer answer the open findings of the change ID. Exit code 0 when that is done."""
    change = lifecycle.open_change(find_project(), change_id)
    message = f"The findings are answered; agentd review {change_id} judges the answers"
    return run(change, options, impl.run_resolve, Workflow.IMPL, lambda: (message, 0))
