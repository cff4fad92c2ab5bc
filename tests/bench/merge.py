"""A merge into a large spec against reading that spec once, in processor time, best of 5, alternating.

A spec of 2,000 requirements with 4,000 scenarios must merge in at most 12 times the reading, and twice the spec in
about twice the time. The change touches every tenth requirement; others touched others meanwhile.
"""

import sys
import time
from collections.abc import Callable

from agentd.documents import spec
from agentd.merge.three_way import merge_spec

ROUNDS = 5
LIMIT = 12.0
GROWTH = 3.0
HEAD = (
    "---\nid: large\ntype: spec\ntitle: Large\n{}: 3\n---\n\n# Spec: Large\n\n## Overview\n\nMuch.\n\n## Requirements\n"
)
REQUIREMENT = "\n### R{0}: Rule {0}\n\n**Priority**: high\n\nThe service keeps rule {0}, {1}.\n"
SCENARIO = "\n### Scenario: {2} of {0}\n\n- **Requirement**: R{0}\n- **WHEN** {0} is asked\n- **THEN** it is {1}\n"


def page(numbers: range, words: Callable[[int], str], version: str = "version", more: str = "") -> str:
    parts = [HEAD.format(version)]
    parts += [REQUIREMENT.format(number, words(number)) for number in numbers]
    parts += [more, "\n## Acceptance Criteria\n"]
    parts += [SCENARIO.format(number, words(number), name) for number in numbers for name in ("Fine", "Bad")]
    return "".join(parts)


def texts(count: int) -> tuple[str, str, str]:
    """The main spec, the change, and the base."""
    everyone = range(1, count + 1)
    base = page(everyone, lambda number: "old")
    main = page(everyone, lambda number: "theirs" if number % 10 == 3 else "old")
    removed = "".join(f"- R{number}\n" for number in everyone[4::10])
    renamed = "".join(f"- R{number} → R{number + count * 2}\n" for number in everyone[6::10])
    more = f"\n## Removed\n\n{removed}\n## Renamed\n\n{renamed}"
    mine = page(range(10, count + count // 10, 10), lambda number: "yours", "base_version", more)
    return main, mine, base


def best(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    found = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, one in work.items():
            start = time.process_time()
            one()
            found[name] = min(found[name], time.process_time() - start)
    return found


def measure(count: int) -> tuple[float, float]:
    main, mine, base = texts(count)
    result = merge_spec(main, mine, base, "large")
    assert not result.conflicts and result.touches
    work = {"read": lambda: spec.parse_spec(main, "large.md"), "merge": lambda: merge_spec(main, mine, base, "large")}
    taken = best(work)
    return taken["read"], taken["merge"]


def main() -> None:
    print(f"\nmerge into a large spec (processor time, best of {ROUNDS}, alternating)")
    print("  requirements    read once       merge   ratio")
    taken: dict[int, float] = {}
    fine = True
    for count in (1000, 2000):
        read, taken[count] = measure(count)
        ratio = taken[count] / read
        print(f"  {count:12} {read * 1000:9.0f} ms {taken[count] * 1000:8.0f} ms {ratio:6.1f} x  (at most {LIMIT:g} x)")
        fine = fine and ratio <= LIMIT
    growth = taken[2000] / taken[1000]
    print(f"  twice the requirements: {growth:.1f} x the time (at most {GROWTH:g} x)")
    sys.exit(0 if fine and growth <= GROWTH else 1)


if __name__ == "__main__":
    main()
