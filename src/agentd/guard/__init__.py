"""Guard every agent call: restore what an agent may not change, keep a copy of its version, and report it.

protected_paths   what is guarded; check_definitions: the files that define a check
scan, snapshot    how everything was before the call, and what differs now
concurrent_runs   other runs in progress at the same time; allowed: differences that do not count
guard             compares and decides; restore writes files back
call_record       what is reported, and what the guard keeps on disk during a call

The guard detects changes; it is not a sandbox. A run that is killed leaves everything the next run needs to finish the
comparison.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.guard.call_record import Violation, violation_finding
    from agentd.guard.guard import Guard, plan_write_rule
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
