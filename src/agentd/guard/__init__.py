"""The guard around every agent call: what an agent may not change is restored, kept as a copy, and reported.

protected_paths   what is guarded; check_definitions: the files that define a check
snapshot          how everything was before the call (bytes in copy_store)
concurrent_runs, overlapping_guards, allowed   who else was at work, and what does not count
guard             compares and decides; restore and file_restore put files back
call_record       what is reported and kept of a call; private_folder is where the guard keeps it
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.guard.call_record import Violation, violation_finding
    from agentd.guard.guard import Guard, plan_write_rule
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
