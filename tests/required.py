"""What the tests need of a machine: without it a test is skipped, and in CI, which has all of it, it fails."""

import os
from typing import NoReturn

import pytest

CLIS = "AGENTD_TEST_CLIS_REQUIRED"
BROWSER = "AGENTD_TEST_BROWSER_REQUIRED"


def is_required(*names: str) -> bool:
    """By one of these variables."""
    return any(os.environ.get(name) == "1" for name in names)


def missing(words: str, *names: str) -> NoReturn:
    if is_required(*names):
        pytest.fail(words)
    pytest.skip(words)
