"""What agents may do, as plain functions. Stage rights, evidence and refusals are decided here; `mcp/` only maps them."""
