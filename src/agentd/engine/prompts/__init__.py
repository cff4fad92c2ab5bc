"""What agents are asked: a Markdown file per prompt, filled with plain values; a project can bring its own, trusted.

Files that begin with `_` are parts of others, so that a rule is written once. Every prompt knows `change_id`, `folder`,
`context` and `tools` (plain name -> the name in that CLI); the rest is named by whoever renders it.
"""
