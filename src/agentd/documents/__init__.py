"""Documents of a change: text <-> data. Pure; what is not edited keeps its bytes.

text             lines, fences, comments, headings, sections, edits
frontmatter      the YAML at the top, read and edited as text
prose            labelled lines and list items; text made safe to stand in a document
order            what depends on what
faults           what is wrong with a document, as data
proposal         with affected (the specs it names) and blocks (the review blocks at its end)
spec             with scenario, delta (what it removes and renames) and spec_writing
tasks            with task (one of them), task_forms, task_boxes, task_values and task_writing
clarifications   questions and answers before planning
records          the record of a round; standing: how its findings stand after all rounds
review           CHALLENGE.md and REVIEW.md from a record; review_edits: what a person changed there
verdict          a verdict in a text; self_review: the marker of a self-review
"""
