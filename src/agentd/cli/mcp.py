"""`agentd mcp`: the server that agents and people's own sessions talk to."""

from pathlib import Path

import click

from agentd.cli import output
from agentd.domain import UsageError
from agentd.engine import Stage, ToolScope, open_run_scope
from agentd.project import find_project

_BOUND = [str(stage) for stage in Stage if stage is not Stage.UNBOUND]


@click.command("mcp")
@click.option("--http", is_flag=True, help="Streamable HTTP on 127.0.0.1 instead of stdio; the token is in a file.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="With --http: the port; 0 takes a free one.",
)
@click.option("--change", "change_id", metavar="ID", help="Bind the server to one change (agentd does, for a run).")
@click.option("--stage", type=click.Choice(_BOUND), help="With --change: which tools there are.")
@click.option("--token", help="With --change: the token of the run that may write.")
def command(http: bool, port: int, change_id: str | None, stage: str | None, token: str | None) -> int:
    """Serve agentd's tools over MCP, on stdio.

    Without --change it is for your own session: it reads, and cannot approve anything.
    """
    if len({change_id is None, stage is None, token is None}) > 1:
        raise UsageError("--change, --stage and --token go together", "agentd mcp --help")
    project = find_project()
    if change_id and stage and token:
        binding = open_run_scope(project, change_id, Stage(stage), token)
    else:
        binding = ToolScope(project)
    if http:
        from agentd.mcp import serve_http  # late: the SDK costs half a second

        serve_http(binding, port, _announce)
    else:
        from agentd.mcp import serve_stdio  # late: see above

        serve_stdio(binding)
    return 0


def _announce(url: str, file: Path) -> None:
    output.report(f"agentd serves MCP on {url}\nThe token is in {file}")
