"""A change on disk: its folder, state, locks, journal, and where it lies."""
