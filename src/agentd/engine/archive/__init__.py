"""The end of a change: its specs become those of the project, its folder moves to the archive. All of it or nothing.

outlook     what the main specs would become, and where others have changed the same
standpoint  the branch that the change is on, and whether it knows the specs of today
changelog   the entry in agentd/specs/CHANGELOG.md
ending      archive, and take it back
rebasing    bring a change onto the specs of today
"""
