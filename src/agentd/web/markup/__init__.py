"""Text of which nobody is sure, as safe HTML and SVG. Pure.

markdown    a document as a page: HTML with source lines, and its contents
parsing     Markdown into HTML, block by block with its lines; marking: how each kind of token is written
dressing    links, images and boxes made ready; links: where a link leads, and the ids of headings
cleaning    the allow-list that all of it must pass in the end
shown       characters that cannot be seen, made visible
words       what changed between two texts, word by word; matching: what two lists have in common; eliding: made short
hunks       the diff of a file as lines with their numbers
graph       the tasks by layer, as SVG; chart: what was spent, as SVG; drawing: what both are drawn with
"""
