"""Amounts, counts and lists as people read them."""

import pytest

from agentd.domain.humanize import format_usd, format_usd_of, join_words, pluralize, usd_digits


@pytest.mark.parametrize(
    ("usd", "words"), [(0.0, "0.00 USD"), (0.0099, "0.0099 USD"), (0.01, "0.01 USD"), (12.345, "12.35 USD")]
)
def test_an_amount_has_four_digits_only_below_a_cent(usd: float, words: str) -> None:
    assert format_usd(usd) == words


def test_amounts_below_each_other_have_the_digits_of_the_smallest() -> None:
    assert usd_digits([5.0, 0.002]) == 4
    assert usd_digits([5.0, 0.0]) == usd_digits([]) == 2


def test_an_amount_is_shown_beside_its_limit() -> None:
    assert format_usd_of(1.5, 10.0) == "1.50 of 10.00 USD"
    assert format_usd_of(1.5, None) == format_usd_of(1.5, 0.0) == "1.50 USD"


def test_only_one_is_singular() -> None:
    assert [pluralize(count, "task") for count in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_a_list_has_one_and() -> None:
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
