"""Two texts compared: nothing is lost, the change is small, and white space makes no noise."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markup import parse_markup

from agentd.web.markup import word_diff
from agentd.web.markup.word_diff import DiffPiece, DiffPieceKind
from plans import EXAMPLE

TEXTS = st.lists(st.sampled_from(["a", "b", "word", " ", "  ", "\n", "\n\n", ".", "ä", "\r\n"]), max_size=40).map(
    "".join
)


def new_of(pieces: list[DiffPiece]) -> str:
    return "".join(piece.text for piece in pieces if piece.kind is not DiffPieceKind.REMOVED)


def old_of(pieces: list[DiffPiece]) -> str:
    return "".join(
        piece.before if piece.kind is DiffPieceKind.SPACING else piece.text
        for piece in pieces
        if piece.kind is not DiffPieceKind.ADDED
    )


def changes(old: str, new: str) -> list[tuple[str, str]]:
    return [
        (str(piece.kind), piece.text)
        for piece in word_diff.diff_words(old, new)
        if piece.kind is not DiffPieceKind.SAME
    ]


@given(TEXTS, TEXTS)
def test_both_texts_can_be_rebuilt_from_the_diff(old: str, new: str) -> None:
    pieces = word_diff.diff_words(old, new)
    assert (old_of(pieces), new_of(pieces)) == (old, new)
    assert pieces == word_diff.diff_words(old, new)
    assert all(piece.text or piece.before for piece in pieces)
    assert all(one.kind is not two.kind for one, two in pairwise(pieces))


@given(TEXTS)
def test_equal_texts_have_no_difference(text: str) -> None:
    assert word_diff.diff_words(text, text) == ([DiffPiece(DiffPieceKind.SAME, text)] if text else [])


@given(TEXTS)
def test_white_space_alone_is_never_added_or_removed(text: str) -> None:
    assert {kind for kind, _ in changes(text, "\n".join(text.split(" ")))} <= {"spacing"}
    assert {kind for kind, _ in changes(text, text + "\n\n")} == {"spacing"}


def test_single_changed_word_is_a_one_word_difference() -> None:
    old = "# A\n\nThe cookie is valid for 7 days, then it is gone.\n\nEnd.\n"
    assert changes(old, old.replace("7", "14")) == [("removed", " 7"), ("added", " 14")]


def test_lines_around_a_change_are_unchanged() -> None:
    old = (EXAMPLE / "specs" / "auth-flow.md").read_text()
    new = old.replace("at most 10 minutes ago", "at most five minutes ago").replace("## Flow", "## The flow")
    assert changes(old, new) == [
        ("removed", " 10"),
        ("added", " five"),
        ("removed", " Flow"),
        ("added", " The flow"),
    ]


def test_new_paragraph_between_equal_ones_is_added_whole() -> None:
    assert changes("a\n\nb\n\na\n\nb\n", "a\n\nb\n\nnew words\n\na\n\nb\n") == [("added", "\n\nnew words")]


def test_moved_paragraph_is_removed_and_added() -> None:
    kinds = changes("first one\n\nsecond two\n\nthird three\n", "second two\n\nthird three\n\nfirst one\n")
    assert kinds == [("removed", "first one"), ("spacing", ""), ("added", "\n\nfirst one")]


def test_rewritten_paragraph_is_not_fragmented() -> None:
    old = "All cats of the house sleep on the mat in the sun until noon.\n"
    new = "Requests with a token in the query are no longer recognised by the service.\n"
    kinds = [kind for kind, _ in changes(old, new)]
    assert kinds == ["removed", "added"]


def test_rewrapped_paragraph_differs_only_in_spacing() -> None:
    old, new = "one two three\nfour five\n", "one two\nthree four\nfive\n"
    assert {kind for kind, _ in changes(old, new)} == {"spacing"}
    found = parse_markup(word_diff.diff_html(word_diff.diff_words(old, new)))
    assert found.tags == {"span"} and found.text == new


def test_added_and_removed_words_are_marked_and_escaped() -> None:
    found = parse_markup(word_diff.diff_html(word_diff.diff_words("a <b> c\n", "a <script> c\u202e\n")))
    assert found.tags == {"ins", "del", "span"} and found.text == "a <bscript> cU+202E\n"
    assert found.one("span", "unseen").text == "U+202E"


def _random(letters: str, size: int, seed: int, between: str) -> str:
    chance = random.Random(seed)
    return between.join(chance.choice(letters) for _ in range(size))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_random("abcdefgh", 150_000, 1, " "), _random("abcdefgh", 150_000, 2, " ")),
        (_random("abcdefgh", 150_000, 1, "\n"), _random("abcdefgh", 150_000, 2, "\n")),
        ("a\n" * 150_000, "a\nb\n" * 75_000),
        ("\n" * 300_000, "\n" * 200_000),
        (" ".join(map(str, range(50_000))), " ".join(map(str, reversed(range(50_000))))),
        ("".join(f"line {n} of many\n" for n in range(15_000)), "".join(f"line {n} of  more\n" for n in range(15_000))),
        ("." * 300_000, ".," * 150_000),
        ("a" * 300_000, "b" * 300_000),
        ("", "words " * 50_000),
    ],
    ids=["words", "lines", "repeated", "blank", "reversed", "each line", "marks", "one word", "new"],
)
def test_texts_of_300_kb_are_compared(old: str, new: str) -> None:
    pieces = word_diff.diff_words(old, new)
    assert (old_of(pieces), new_of(pieces)) == (old, new)


def test_small_change_in_a_large_text_is_found() -> None:
    old = "".join(f"line {number % 7} of many\n" for number in range(15_000))
    new = old[:150_000] + "here it is\n" + old[150_000:]
    assert sum(len(text) for kind, text in changes(old, new)) < 40


def test_short_line_between_two_new_paragraphs_is_unchanged() -> None:
    old = "An old paragraph of some length here.\n\n## Flow\n\nAnother one that goes away.\n"
    new = "Something else entirely, written today.\n\n## Flow\n\nThis has nothing in common with it.\n"
    assert "Flow" not in "".join(text for _, text in changes(old, new))


def test_longer_of_two_swapped_passages_is_unchanged() -> None:
    first, second = (" ".join(f"word{n}" for n in some) for some in (range(10), range(10, 40)))
    old, new = f"{first} {second}", f"{second} {first}"
    assert changes(old, new)[0] == ("removed", " ".join(f"word{n}" for n in range(10)))
    assert sum(len(text.split()) for _, text in changes(old, new)) == 20
