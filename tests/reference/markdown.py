"""Texts of the code as Markdown: tables, and words in which nothing is taken for markup."""

import inspect
import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")


def plain(text: str) -> str:
    """Words as they are; what stands in backticks is code already."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*") for part in parts)


def code(text: object) -> str:
    """As code, also within a table; nothing for nothing."""
    words = str(text)
    mark = "``" if "`" in words else "`"
    return f"{mark}{words}{mark}" if words else ""


def paragraphs(text: str) -> str:
    """A docstring, with its lines as long as a paragraph is."""
    return "\n\n".join(plain(" ".join(part.split())) for part in inspect.cleandoc(text).split("\n\n"))


def sentence(words: str) -> str:
    """Words as a paragraph; nothing for nothing."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}.\n\n" if words else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A column that nobody fills is left out."""
    filled = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in rows]
    kept = [number for number in range(len(head)) if any(row[number] for row in filled)]
    lines = [[head[number] for number in kept], ["---"] * len(kept)]
    lines += [[row[number] for number in kept] for row in filled]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
