"""`agentd mcp`: the MCP server for agents and your own sessions."""

from pathlib import Path

import click

from agentd.cli import output
from agentd.domain import UsageError
from agentd.engine import Stage, ToolScope, open_run_scope
from agentd.project import find_project

COMMANDS = {"mcp": (230, "Serve agentd's tools over MCP to agents and your own sessions.")}

_STAGES = [str(stage) for stage in Stage if stage is not Stage.UNBOUND]


@click.command("mcp")
@click.option(
    "--http",
    is_flag=True,
    help="Serve streamable HTTP on 127.0.0.1 instead of stdio; prints the path of the token file.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="With --http: the port; 0 picks a free one.",
)
@click.option("--change", "change_id", metavar="ID", help="Bind the server to one change (agentd does this for a run).")
@click.option("--stage", type=click.Choice(_STAGES), help="With --change: which tools to offer.")
@click.option("--token", help="With --change: the token of the run that may write.")
def command(http: bool, port: int, change_id: str | None, stage: str | None, token: str | None) -> int:
    """Serve agentd's tools over MCP, on stdio.

    Without --change it serves your own session: it can read, but not approve anything.
    """
    if len({change_id is None, stage is None, token is None}) > 1:
        raise UsageError("--change, --stage and --token must be used together", "agentd mcp --help")
    project = find_project()
    if change_id and stage and token:
        scope = open_run_scope(project, change_id, Stage(stage), token)
    else:
        scope = ToolScope(project)
    if http:
        from agentd.mcp import serve_http  # deferred: importing the SDK takes half a second

        serve_http(scope, port, _announce)
    else:
        from agentd.mcp import serve_stdio  # deferred, see above

        serve_stdio(scope)
    return 0


def _announce(url: str, file: Path) -> None:
    output.report(f"Serving MCP on {url}\nToken file: {file}")
