"""The agents: one shared vocabulary, one way to run a process, one pure adapter per kind of CLI."""
