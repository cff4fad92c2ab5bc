"""Coding agents: one module per agent with everything known about it. Only this package starts agent processes.

protocol, registry    what an agent's module provides; the list of agents
claude, codex, gemini, command, scripted   the agents; playbook and playbook_player belong to `scripted`
process, reaper, streams   run a program so that nothing it starts outlives the call
environment, redaction, transcript, failures, prices   around a call: variables, secrets, log, causes, cost
detection             which CLIs are installed and logged in, and which role each one gets
skills, registration  agentd's commands and MCP server inside a person's own CLI sessions; server_entry, json_entry
                      and toml_entry edit the files
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.agents.detection import (
        VENDOR_OF,
        DetectedAgent,
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
    from agentd.agents.prices import PriceSettings, has_known_price, sanitize_usage, usage_cost
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
        AgentSettings,
        AgentText,
        CliProfile,
        ModelSettings,
        SessionLister,
        SessionStarted,
        TokenUsage,
        UsageUpdate,
    )
    from agentd.agents.redaction import Redactor
    from agentd.agents.registration import RegistrationResult, register_server, unregister_server
    from agentd.agents.registry import ADAPTERS, CLIS, context_file_names, get_adapter
    from agentd.agents.skills import KEPT, OURS, skill_paths, write_skills
    from agentd.agents.streams import Stream
    from agentd.agents.transcript import Transcript, TranscriptFile, list_transcripts, transcript_path
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
