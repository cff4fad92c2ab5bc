"""What `init` finds out by itself: the checks a project has, and the agents that can sit in its roles.

scan          a bounded look at the project's files
python, node  how these two are tested
checks        the proposal as a whole
agents        which agents are here, who sits where, and what a person should know about it
"""

from agentd.agents.detection import (
    KNOWN_CLIS,
    VENDOR_OF,
    DetectedAgent,
    KnownCli,
    LoginStatus,
    assign_roles,
    detect_agents,
    detect_login,
    role_notes,
    suggest_alternative,
)
from agentd.project.detection.check_proposals import propose_checks

__all__ = [
    "KNOWN_CLIS",
    "VENDOR_OF",
    "DetectedAgent",
    "KnownCli",
    "LoginStatus",
    "assign_roles",
    "detect_agents",
    "detect_login",
    "propose_checks",
    "role_notes",
    "suggest_alternative",
]
