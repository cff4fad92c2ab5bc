"""The plan, impl and archive commands for a person's own Claude Code, Gemini CLI and Codex: files in the project."""
