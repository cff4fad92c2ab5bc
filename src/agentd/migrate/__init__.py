"""Projects of other tools moved in, and specs given back. The originals are read and never written.

found             what was found there and what becomes of it, as data
looking           the files of another tool's project, no link followed
openspec_spec     a main spec of OpenSpec: read, numbered, and given back (pure)
openspec_delta    ADDED, MODIFIED, REMOVED and RENAMED as a delta of ours (pure)
openspec_proposal proposal.md, with a Summary from its own words (pure)
task_lists        checkbox lists as tasks.md (pure)
openspec          a whole OpenSpec project (pure)
speckit_spec      a feature's spec.md of Spec Kit (pure)
speckit           a whole Spec Kit project (pure)
landing           all of it written, or nothing
giving            the specs as an OpenSpec tree (pure)
laying            that tree written, or nothing
"""
