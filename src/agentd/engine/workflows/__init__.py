"""Workflows: which steps in which order, where to stop, what to ask. Running one is resuming it."""
