"""`agentd challenge`: the verdict on a plan that is there, for scripts."""

from agentd.change import lifecycle
from agentd.cli.options import Options, run_options
from agentd.cli.running import run
from agentd.engine.workflows import plan
from agentd.project.layout import find_project


@run_options("challenge")
def command(change_id: str, options: Options) -> int:
    """Let the challenger judge the plan of the change ID. Exit code 0 when it is APPROVED, 1 otherwise.

    A plan that was judged as it is now is not judged again.
    """
    return run(lifecycle.open_change(find_project(), change_id), options, plan.run_challenge)
