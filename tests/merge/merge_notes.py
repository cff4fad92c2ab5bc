"""A small spec of notes and deltas of it, for the plain tests of the merge."""

import re

from agentd.documents import spec
from agentd.merge.three_way import MergeResult, merge_spec

BASE = """\
---
id: notes
version: 2
---

# Spec: Notes

## Overview

What notes are.

## Requirements

### R1: Write

One writes.

### R2: Read

One reads.

## Flow

```mermaid
graph TD
```

## Acceptance Criteria

### Scenario: Written

- **Requirement**: R1
- **WHEN** one writes
- **THEN** it is there

### Scenario: Both

- **Requirement**: R1, R2
- **WHEN** one writes and reads
- **THEN** it is the same

### Scenario: Lost

- **WHEN** it is nowhere
- **THEN** 404

## Appendix

R1 and R2 in prose.
"""
INSIDE = """\
## Requirements

### R1: Write

One writes.

#### Scenario: Written

WHEN a THEN b

#### Notes

More.

### R2: Read

One reads.

## Appendix
"""
ONE = "- **WHEN** a\n- **THEN** b\n"


def delta(*, requirements: str = "", removed: str = "", renamed: str = "", criteria: str = "") -> str:
    parts = ["---\nid: notes\nbase_version: 2\n---\n\n# Spec: Notes\n\n## Overview\n\nWhat changes.\n"]
    for title, text in (
        ("Requirements", requirements),
        ("Removed", removed),
        ("Renamed", renamed),
        ("Acceptance Criteria", criteria),
    ):
        if text:
            parts.append(f"## {title}\n\n{text.rstrip()}\n")
    return "\n".join(parts)


def merged(
    main: str | None, yours: str, base: str | None = BASE, pattern: re.Pattern[str] = spec.REQUIREMENT_PATTERN
) -> str:
    found = merge_spec(main, yours, base, "notes", pattern)
    assert found.conflicts == ()
    assert found.text is not None
    assert merge_spec(found.text, yours, base, "notes", pattern) == MergeResult(found.text, (), ())
    return found.text


def of(main: str, old: str, new: str) -> str:
    assert main.count(old) == 1, old
    return main.replace(old, new)
