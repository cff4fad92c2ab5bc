"""The steps of a workflow: the prompt of each, how its effect is verified, what its result becomes on disk.

planner, challenge           the planner's steps; the challenge and the planner's answers
implement, review            the implementer's steps; the review
judge_call, verdict_record   calling a judge; the record of a verdict and what follows from it
check_run, engine_findings   the checks that agentd runs; the problems that it finds itself
person_findings              what people edit in a review or comment on
code_trees, step_context     code as git trees; what every step works with

A step uses the run's folder in the local state, `runs/<token>/`: it writes `run.json` (base and tree under review,
failed checks), the agent's tools write `report.json`, `answers.json` and `questions.json`, and the step turns them into
records.

The record of a verdict is written first, and once. CHALLENGE.md or REVIEW.md, the block in proposal.md and the
transition are derived from it. A record without its transition belongs to a killed run; the next run finishes it.

agentd's own findings (`check:...`, `rule:...`) keep their ids over the rounds. A failed check and an undone task are
facts that only agentd closes. A weakened or missing test is a matter of judgement: a judge or a person may close it.
"""
