"""What agents are asked: one Markdown template per prompt, filled with plain values. A project can override them.

Files that begin with `_` are parts of others, so that a rule is written once. Every prompt gets `change_id`, `folder`,
`context` and `tools` (our name -> the name in that CLI); the step adds its own values.
"""
