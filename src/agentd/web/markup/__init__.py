"""Untrusted text as safe HTML and SVG. Pure.

markdown         a document as a page: HTML with source lines, sanitized by an allow-list, and its contents
markdown_parser  Markdown to HTML, each block with its source lines; links, images and checkboxes made safe
links            where a link leads, and the ids of headings
word_diff        what changed between two texts, word by word, optionally shortened
diff_hunks       the diff of a file as numbered lines
task_graph       the tasks by layer, as SVG
cost_chart       costs as bars, as SVG
svg              shared drawing helpers; invisible characters made visible
"""
