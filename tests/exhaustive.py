"""How much of an exhaustive test is run: a seeded tenth in `make test`, everything in `make test-long`.

A test that asks for the fixture `exhaustive` is part of `make test-long`, and so is every property test.
"""

import os
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

IS_LONG = os.environ.get("AGENTD_TEST_LONG") == "1"
SEED = os.environ.get("AGENTD_TEST_SEED") or "1"  # any text
MINUTES = os.environ.get("AGENTD_TEST_MINUTES") or "inf"  # after that no test starts
SHARE = 10  # one point in this many is a sample
EXAMPLES = 25  # of a property test, for a sample

Point = TypeVar("Point")


class Exhaustive:
    is_long = IS_LONG

    def points(self, points: Iterable[Point]) -> Iterator[Point]:
        """All points, or a tenth of them. They may go on for ever; the test ends its loop when none is left."""
        chance = random.Random(SEED)
        wanted = chance.randrange(3)  # soon, so that a sample of a few points is not empty
        for place, point in enumerate(points):
            if IS_LONG or place == wanted:
                yield point
            if place == wanted:
                wanted += chance.randint(1, 2 * SHARE - 1)

    def seeds(self, count: int) -> list[int]:
        """For random runs: that many, or one."""
        chance = random.Random(SEED)
        return [chance.randrange(10**6) for _ in range(count if IS_LONG else 1)]

    def size(self, full: int, sample: int) -> int:
        """How large something is: to scale, or as large as shows the same in a moment."""
        return full if IS_LONG else sample


def set_up() -> None:
    """No test fails because the machine is busy."""
    try:
        float(MINUTES)
    except ValueError:
        raise pytest.UsageError(f"MINUTES={MINUTES} is not a number; try make test-long MINUTES=5") from None
    patient: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("long", max_examples=500, print_blob=True, **patient)
    settings.register_profile("sample", max_examples=EXAMPLES, derandomize=True, **patient)
    settings.load_profile("long" if IS_LONG else "sample")


def select(items: list[pytest.Item]) -> list[pytest.Item]:
    """What is not exhaustive is taken out of a long run; the rest comes in an order that the seed decides."""
    if not IS_LONG:
        return []
    rest = [item for item in items if not is_exhaustive(item)]
    items[:] = sorted(filter(is_exhaustive, items), key=lambda item: item.nodeid)
    random.Random(SEED).shuffle(items)
    return rest


def is_exhaustive(item: pytest.Item) -> bool:
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or "exhaustive" in getattr(item, "fixturenames", ())


_started = time.monotonic()


def skip_after_end() -> None:
    if time.monotonic() - _started > 60 * float(MINUTES):
        pytest.skip("the time for this part of the long tests is over")
