"""Checks that everything agentd needs is present, without spending, changing or hanging.

report           what was found, one row each, and which roles can run
machine_checks, project_checks, agent_checks   the rows
program_probe    a program run with a time limit; mcp_probe: our own MCP server asked for its tools
diagnosis        all of it in one go
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
