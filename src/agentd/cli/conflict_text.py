"""Where two sides changed the same part of a spec: the three texts, for a person and for a program."""

from collections.abc import Sequence
from typing import Any

from agentd.cli import output, text_table
from agentd.merge import SpecConflict


def conflict_text(conflicts: Sequence[SpecConflict]) -> str:
    return "\n\n".join("\n".join(_lines(one)) for one in conflicts) + "\n"


def conflict_rows(conflicts: Sequence[SpecConflict]) -> list[dict[str, Any]]:
    return [
        {
            "kind": str(one.kind),
            "name": one.name,
            "why": one.why,
            "base": one.base,
            "theirs": one.theirs,
            "yours": one.yours,
        }
        for one in conflicts
    ]


def _lines(one: SpecConflict) -> list[str]:
    lines = [f"{output.paint(one.name, bold=True)}: {one.why}"]
    for name, words in (("base", one.base), ("theirs", one.theirs), ("yours", one.yours)):
        lines.append(output.paint(f"  {name}", dim=True) + ("" if words else " (not there)"))
        lines += [
            f"    {text_table.strip_control(line)}".rstrip() for line in (words or "").strip("\n").split("\n") if words
        ]
    return lines
