"""How agentd works in a project: `agentd/config.toml` and the sources that override it.

`load_config` reads flag > environment > user file > project file > default; `render_template` is what `init` writes.
Tables merge key by key, lists are replaced whole, and an agent whose kind changes starts from that kind's defaults.
"""
