"""The marker with which a maker ends its self-review."""

import re
from enum import StrEnum

from agentd.documents.text import Mark, Scanner

_MARKER = re.compile(r"(?<!`)<review>\s*+(pass|needs[ _-]?revision)\s*+</review>(?!`)", re.IGNORECASE)


class SelfReview(StrEnum):
    PASS = "PASS"  # noqa: S105
    NEEDS_REVISION = "NEEDS_REVISION"
    MISSING = "missing"


def self_review(text: str) -> SelfReview:
    """The last `<review>PASS</review>` in an assistant's own text; in a fence or in code it is a quotation."""
    scanner = Scanner()
    lines = text.replace("\r\n", "\n").split("\n")
    plain = (line for line in lines if scanner.feed(line) is Mark.TEXT)
    markers = _MARKER.findall("\n".join(_bare_marker(line) for line in plain))
    if not markers:
        return SelfReview.MISSING
    return SelfReview.PASS if markers[-1].upper() == "PASS" else SelfReview.NEEDS_REVISION


def _bare_marker(line: str) -> str:
    """A line that is nothing but a marker in code is meant."""
    return line.strip("` \t*") if line.lstrip().startswith("`<") else line
