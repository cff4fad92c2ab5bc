"""`agentd implement`: the code of a change and no verdict, for scripts."""

import click

from agentd.change import lifecycle
from agentd.cli import impl as whole
from agentd.cli.options import Options, run_options
from agentd.cli.running import run, settled
from agentd.domain.terms import Workflow
from agentd.engine.workflows import impl, impl_start
from agentd.project.layout import find_project


@run_options("implement")
@click.option("--tasks", metavar="1.1,2.1", help="Only these tasks.")
def command(change_id: str, options: Options) -> int:
    """Write the code of the change ID, and stop there. Exit code 0 when that is done."""
    change = lifecycle.open_change(find_project(), change_id)
    if message := impl_start.impl_settled(change, False):
        return settled(change, options, message, 0)
    ahead = None if options.tasks is None else whole.course_of(options)
    return run(change, options, impl.run_implement, Workflow.IMPL, lambda: whole.made(change), ahead)
