"""The scripted model, and the real CLIs pointed at it."""
