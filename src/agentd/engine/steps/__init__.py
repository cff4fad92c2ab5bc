"""One module per kind of step: its prompt, its effect, and what its result becomes on disk.

A step works in the run's folder in the local state, `runs/<token>/`: it writes `run.json` (base and tree under review,
failed checks), the agent's tools write `report.json`, `answers.json` and `questions.json` there, and the step turns
them into records.

A verdict is its record first, written once. CHALLENGE.md or REVIEW.md, the block in proposal.md and the transition are
derived from it. A record without its transition belongs to a run that was killed; the next run finishes it.

agentd's own findings (`check:...`, `rule:...`) keep their ids over the rounds. A failed check and an undone task are
facts that only agentd closes. A weakened or missing test is a matter of judgement: a judge or a person may close it.
"""
