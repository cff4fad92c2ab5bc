"""How agentd works in a project: `agentd/config.toml` and what goes before it.

`load` reads flag > environment > user file > project file > default; `render_template` is what `init` writes.
Tables merge key by key, lists are replaced whole, and an agent whose kind is changed starts anew.
"""
