"""Our own MCP server, started as agents start it and asked for its tools.

It is asked by a process of its own, which can be ended when no answer comes: a server's stdin must stay open until it
has answered, and a read of its stdout knows no clock.
"""

import json
import sys
from collections.abc import Mapping

from agentd.agents import environment
from agentd.doctor import probe
from agentd.doctor.rows import PROJECT, Row, State
from agentd.engine.tools.tool_table import Stage, tools_of
from agentd.project.layout import Project

# -P: a folder named agentd in the working folder is not our package.
_PYTHON = (sys.executable, "-P", "-m")
_SERVER = (*_PYTHON, "agentd", "mcp")
_NAME = "MCP server"


def row(project: Project, environ: Mapping[str, str], server: tuple[str, ...] = _SERVER) -> Row:
    asking = (*_PYTHON, "agentd.doctor.asker", *server)
    answer = probe.ask(asking, env=environment.basic_environment(environ), cwd=project.root)
    if answer.failure:
        return Row(PROJECT, _NAME, State.PROBLEM, answer.failure, "agentd mcp, run by hand, says more")
    found = json.loads(answer.out.rpartition("\n")[2])
    expected = [tool.name for tool in tools_of(Stage.UNBOUND)]
    if sorted(found) != sorted(expected):
        words = f"it offers {', '.join(found)}, not {', '.join(expected)}"
        return Row(PROJECT, _NAME, State.PROBLEM, words, "install agentd anew")
    return Row(PROJECT, _NAME, State.OK, f"answers with its {len(found)} tools")
