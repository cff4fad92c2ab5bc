"""The guard around every agent call: what an agent may not change is put back, kept as a copy, and told.

`protected` says what is guarded, `definitions` which files define a check, `mirror` how it all was (bytes in `store`),
`neighbours` and `overlap` who else was at work, `harmless` what does not count; `watch` compares and decides,
`restoring` and `putback` restore, `record` is what is told and kept of a call. `room` is the guard's own place.
"""

from agentd.guard.call_record import GuardResult, Violation, violation_finding
from agentd.guard.guard import Guard, allow_nothing, plan_write_rule

__all__ = ["Guard", "GuardResult", "Violation", "allow_nothing", "plan_write_rule", "violation_finding"]
