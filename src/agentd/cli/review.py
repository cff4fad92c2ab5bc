"""`agentd review`: checks and verdict on code that is there, for scripts."""

from agentd.change import lifecycle
from agentd.cli.options import Options, run_options
from agentd.cli.running import run
from agentd.domain.terms import Workflow
from agentd.engine.workflows import impl
from agentd.project.layout import find_project


@run_options("review")
def command(change_id: str, options: Options) -> int:
    """Run the checks and let the reviewer judge the code of the change ID. Exit code 0 when it is APPROVED.

    A tree that was judged is not judged again; agentd impl ID --review does that.
    """
    return run(lifecycle.open_change(find_project(), change_id), options, impl.run_review, Workflow.IMPL)
