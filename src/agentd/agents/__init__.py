"""Coding agents: one protocol, one pure adapter per CLI, and the only code that starts agent processes.

protocol, registry    what an adapter provides; which adapter serves which kind of agent
claude, codex, gemini, command, scripted   the adapters; playbook and playbook_player belong to `scripted`
process, reaper, streams   run a program so that nothing it starts outlives the call
environment, redaction, transcript, failures, prices   around a call: variables, secrets, log, causes, cost
detection             which CLIs are installed and logged in, and which role each gets
skills, registration  agentd's commands and MCP server inside a person's own CLI sessions
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from agentd.agents.environment import allowed_environment, basic_environment, is_session_variable
    from agentd.agents.failures import FailureCause, failure_hint
    from agentd.agents.playbook import parse_playbook
    from agentd.agents.playbook_player import McpClient, PlaybookMismatch
    from agentd.agents.prices import has_known_price, sanitize_usage, usage_cost
    from agentd.agents.process import (
        CannotStart,
        ProcessEnding,
        ProcessLimits,
        ProcessOutcome,
        find_program,
        run_process,
    )
    from agentd.agents.protocol import (
        Adapter,
        AgentAction,
        AgentBrief,
        AgentCommand,
        AgentEnded,
        AgentEvent,
        AgentText,
        SessionLister,
        SessionStarted,
        TokenUsage,
        UsageUpdate,
    )
    from agentd.agents.redaction import Redactor
    from agentd.agents.registration.registration import RegistrationResult, register_server, unregister_server
    from agentd.agents.registry import get_adapter
    from agentd.agents.skills.skill_files import KEPT, OURS, wanted_targets, write_skills
    from agentd.agents.skills.skill_targets import SKILL_TARGETS, SKILL_WORKFLOWS
    from agentd.agents.streams import Stream
    from agentd.agents.transcript import Transcript, TranscriptFile, list_transcripts, transcript_path
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
