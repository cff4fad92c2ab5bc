"""The guard around every agent call: what an agent may not change is put back, kept as a copy, and told.

`protected` says what is guarded, `definitions` which files define a check, `mirror` how it all was (bytes in `store`),
`neighbours` and `overlap` who else was at work, `harmless` what does not count; `watch` compares and decides,
`restoring` and `putback` restore, `record` is what is told and kept of a call. `room` is the guard's own place.
"""

from agentd.guard.record import Trespass, Watched, finding_of
from agentd.guard.watch import Guard, nothing, plan_rule

__all__ = ["Guard", "Trespass", "Watched", "finding_of", "nothing", "plan_rule"]
