"""Values as a page says them."""

import time
from collections.abc import Iterator

import pytest

from agentd.web import site

AT = "2026-11-16T19:25:45Z"


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In another zone than the one in which things are written."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_away")
def test_times_are_shown_in_the_local_time_zone() -> None:
    assert (site.format_moment(AT), site.format_clock(AT)) == ("17 Nov 2026, 04:25", "04:25:45")
    assert site.format_moment_utc(AT) == "16 Nov 2026, 19:25", "who is sent a file may be elsewhere"


def test_invalid_time_is_shown_unchanged() -> None:
    assert (site.format_moment("soon"), site.format_moment(None), site.format_clock("soon")) == (
        "soon",
        "",
        "",
    )
