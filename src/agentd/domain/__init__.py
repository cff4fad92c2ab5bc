"""The vocabulary every other package shares. Pure: nothing here reads or writes a file.

terms          phases, roles, severities, verdicts and the other enumerations
errors         the error tree; each class carries its exit code and a hint
state_machine  the table of transitions: phase and event to the next phase
events         what can happen during a run, and how the journal stores it
schema         shapes of data from outside: configuration, tool arguments, stored mappings
clock, humanize, yaml12   times, values as text, YAML 1.2
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.domain import clock, events, yaml12
    from agentd.domain.clock import seconds_since, utc_now
    from agentd.domain.errors import (
        AgentdError,
        AgentFailed,
        AgentMissing,
        BadConfig,
        BadId,
        Bug,
        Busy,
        CallsUsedUp,
        ChangeNotComplete,
        ChangeNotFound,
        ChangeNotReady,
        FormatInvalid,
        Interrupted,
        MissingDescription,
        NoGit,
        NoProject,
        NotCheckedOut,
        NotTrusted,
        OverBudget,
        Refusal,
        SessionLost,
        SetupError,
        StaleBranch,
        StateError,
        Unanswered,
        UsageError,
        VerdictUnknown,
        WrongPhase,
    )
    from agentd.domain.events import Event, JournalEntry, NoticeIssued, WarningIssued
    from agentd.domain.humanize import (
        KeyPath,
        dotted_key,
        format_amount,
        format_usd,
        format_usd_of,
        join_choices,
        join_words,
        nearest_word,
        pluralize,
        printable,
        quote_toml,
        show_value,
        usd_digits,
    )
    from agentd.domain.schema import (
        Choice,
        FieldReader,
        Flag,
        Integer,
        ListOf,
        ListRule,
        MapOf,
        Name,
        Number,
        Regex,
        Shape,
        ShapeProblem,
        Table,
        Text,
        TextOrTable,
    )
    from agentd.domain.state_machine import TRANSITIONS, TransitionEvent, check_decision, event_for_verdict, next_phase
    from agentd.domain.terms import (
        CHANGE_ID,
        DEMO_PART,
        ID_LENGTH,
        SPEC_STEPS,
        STEPS,
        ChallengeVerdict,
        CheckStatus,
        Complexity,
        FindingState,
        GitSetup,
        Lane,
        Layer,
        Phase,
        ReviewVerdict,
        Role,
        Severity,
        StepStatus,
        TaskAction,
        TaskStatus,
        Workflow,
        is_step,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
