"""Plan and impl: which steps run in which order, when to stop, and what to ask a person.

A maker's step is done by name and round, a judge's by the hashes it judged. `run:` in STATE.yaml exists while a command
runs and after it was interrupted; its `rounds_left` and `steps_before` carry the rounds and format fixes already used
over to the next command.
"""
