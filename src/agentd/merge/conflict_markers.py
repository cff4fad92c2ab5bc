"""The marks of a conflict in a text: where they stand, and how three texts are written between them."""

import re
from collections.abc import Sequence

from agentd.documents import Document, parse_document

YOURS, BASE, MIDDLE, THEIRS = "<<<<<<< yours", "||||||| base", "=======", ">>>>>>> theirs"
_MARK = re.compile(r"(<{7}|\|{7}|>{7})(?: |$)")


def find_conflict_markers(text: str, name: str) -> tuple[int, ...]:
    """The lines with marks, git's own too, outside code and comments.

    `=======` alone may underline a heading; it is a mark only where another mark stands open above it.
    """
    return conflict_markers_in(parse_document(text, name))


def conflict_markers_in(document: Document) -> tuple[int, ...]:
    if not any(mark in document.text for mark in ("<<<<<<<", "|||||||", ">>>>>>>")):
        return ()
    found: list[int] = []
    is_open = False
    for line, content in document.plain_lines(document.span):
        mark = _MARK.match(content) if content[:1] in ("<", "|", ">") else None
        if mark:
            is_open = not content.startswith(">")
        if mark or (is_open and content.rstrip() == MIDDLE):
            found.append(line)
    return tuple(found)


def with_markers(yours: Sequence[str], ancestor: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Three texts as lines between marks; an empty one says that the thing is not there."""
    return [YOURS, *yours, BASE, *ancestor, MIDDLE, *theirs, THEIRS]


def as_comment(lines: Sequence[str]) -> list[str]:
    """Lines as a comment, for a place where they would be read as something else."""
    return ["<!--", *(line.replace("-->", "--&gt;") for line in lines), "-->"] if lines else []
