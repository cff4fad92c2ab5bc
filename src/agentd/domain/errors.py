"""All errors, as one tree. The exit code and the default hint are defined on the class.

    AgentdError
    ├── Refusal              1    the command ran; the answer is no
    │   ├── ChangeNotFound
    │   ├── NotCheckedOut         the change's branch or worktree is missing
    │   ├── WrongPhase            ChangeNotReady, ChangeNotComplete
    │   ├── FormatInvalid
    │   ├── VerdictUnknown
    │   ├── SessionLost
    │   ├── StaleBranch           the change's branch lacks commits of its target
    │   └── Unanswered            a question without a terminal to ask it on
    ├── UsageError           2    BadId, MissingDescription
    ├── SetupError           3    NoGit, NoProject, BadConfig, AgentMissing, NotTrusted
    ├── AgentFailed          4
    ├── Busy                 5
    ├── StateError           6    what is on disk cannot be trusted
    ├── OverBudget           7    CallsUsedUp
    ├── Bug                 70
    └── Interrupted        130

A verdict is never an error. An error says what is wrong and which command to run next.
"""

import re


class AgentdError(Exception):
    exit_code = 70
    hint = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    @property
    def code(self) -> str:
        """The class name in kebab case: stable, for programs that read `--json`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self).__name__).lower()


class Refusal(AgentdError):
    exit_code = 1


class ChangeNotFound(Refusal):
    hint = "agentd list"


class NotCheckedOut(Refusal):
    pass


class WrongPhase(Refusal):
    hint = "agentd status"


class ChangeNotReady(WrongPhase):
    pass


class ChangeNotComplete(WrongPhase):
    pass


class FormatInvalid(Refusal):
    hint = "agentd validate"


class VerdictUnknown(Refusal):
    pass


class SessionLost(Refusal):
    hint = "run the command again with --new-session"


class StaleBranch(Refusal):
    pass


class Unanswered(Refusal):
    pass


class UsageError(AgentdError):
    exit_code = 2
    hint = "agentd --help"


class BadId(UsageError):
    hint = "use lower-case letters, digits and dashes, at most 64, not starting with a dash"


class MissingDescription(UsageError):
    pass


class SetupError(AgentdError):
    exit_code = 3


class NoGit(SetupError):
    hint = "git init"


class NoProject(SetupError):
    hint = "agentd init"


class BadConfig(SetupError):
    hint = "agentd config shows the values in force once these are mended"


class AgentMissing(SetupError):
    hint = "agentd doctor"


class NotTrusted(SetupError):
    hint = "agentd trust"


class AgentFailed(AgentdError):
    """Raised when an agent call fails. `cause` is a `FailureCause` of `agents`; programs read it as the error code."""

    exit_code = 4

    def __init__(self, message: str, hint: str | None = None, cause: str = "crashed") -> None:
        super().__init__(message, hint)
        self.cause = cause

    @property
    def code(self) -> str:
        return self.cause


class Busy(AgentdError):
    exit_code = 5
    hint = "wait for it to finish, then try again"


class StateError(AgentdError):
    exit_code = 6


class OverBudget(AgentdError):
    exit_code = 7
    hint = "raise [budget] in agentd/config.toml, then run the command again"


class CallsUsedUp(OverBudget):
    hint = "raise limits.calls_per_step in agentd/config.toml, then run the command again"


class Bug(AgentdError):
    exit_code = 70
    hint = "run the command again; if that does not help, report it with this line"


class Interrupted(AgentdError):
    exit_code = 130
    hint = "run the same command again to go on"
