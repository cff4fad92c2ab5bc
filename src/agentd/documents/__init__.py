"""Documents of a change: text <-> data. Pure; what is not edited keeps its bytes.

text         lines, fences, comments, headings, sections, edits
frontmatter  the YAML at the top, read and edited as text
prose        labelled lines and list items; text made safe to stand in a document
order        what depends on what
affected     the specs that a proposal names
blocks       the review blocks at the end of proposal.md
proposal, spec, scenario, spec_writing, clarifications
"""
