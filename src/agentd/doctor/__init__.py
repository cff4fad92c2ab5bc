"""Check that everything agentd needs is present, without spending money, changing anything or hanging.

report           the findings, one row each, and which roles can run
system_checks    the rows about the machine and the project; programs run with a time limit
agent_checks     the rows about each agent
mcp_probe        ask agentd's own MCP server for its tools
diagnosis        run all checks
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.doctor.diagnosis import examine
    from agentd.doctor.report import (
        MACHINE_SECTION,
        PROJECT_SECTION,
        DoctorReport,
        DoctorRow,
        DoctorState,
        agent_section,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
