"""Archive a change: merge its specs into the project's and move its folder to the archive, all or nothing.

preview       what the main specs become, the changelog entry, and conflicts with other changes
branch_check  whether the change's branch has the current specs, and the git commands left to run
archive       archive and undo
rebase        update a change to the current specs

An archive is one transaction. Its record is in `archiving` in the local state while it runs, and in `archived` for as
long as it can be undone. Anything that lists changes first completes what a killed archive left behind. A rebase keeps
an approval if others touched nothing that the change touches: `rebased` in STATE.yaml maps a spec's new hash to the
reviewed one.
"""
