"""Archiving a change: its specs are merged into the project's, its folder moves to the archive; all of it or nothing.

preview       what the main specs become, the changelog entry, and conflicts with other changes
branch_check  whether the change's branch has the current specs, and the git commands that are left to run
archive       archive and undo
rebase        update a change to the current specs

An archive is one transaction. Its record is in `archiving` of the local state while it runs, and in `archived` for as
long as it can be undone; anything that lists changes first completes what a killed archive left. A rebase keeps an
approval where others touched nothing that the change touches: `rebased` in STATE.yaml maps a spec's new hash to the
judged one.
"""
