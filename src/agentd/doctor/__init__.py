"""Is everything here that agentd needs? Looked at without spending, changing anything or waiting without end.

rows         what was found: a row each, and which roles can run (pure)
probe        a program run with a clock
ground       Python, git and the user's own folder
place        the repository and the project in it
server       our own MCP server, started and asked for its tools by a process of its own (`asker`)
seats        the agents in the roles: program, version, login, models
examination  all of it in one go
"""

from agentd.doctor.diagnosis import examine
from agentd.doctor.report import MACHINE_SECTION, PROJECT_SECTION, DoctorReport, DoctorRow, DoctorState, agent_section

__all__ = ["MACHINE_SECTION", "PROJECT_SECTION", "DoctorReport", "DoctorRow", "DoctorState", "agent_section", "examine"]
