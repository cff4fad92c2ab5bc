"""The guard around every agent call: what an agent may not change is put back, kept as a copy, and told.

`protected` says what is guarded, `definitions` which files define a check, `mirror` how it all was, `neighbours` who
else was at work; `watch` compares and decides, `putback` restores.
"""

from agentd.guard.watch import Guard, Trespass, Watched, finding_of, nothing, plan_rule

__all__ = ["Guard", "Trespass", "Watched", "finding_of", "nothing", "plan_rule"]
