"""What a person's own Claude Code, Gemini CLI and Codex offer as plan, impl and archive: files of the project."""
