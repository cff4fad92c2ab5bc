"""A remark's place in a document is found again after edits, and told as gone when its words are."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents import anchors
from agentd.documents.anchors import Anchor, AnchorMatch, MatchKind
from assertions import TIMES, assert_linear

SPEC = """---
id: auth-flow
---

# Spec: auth-flow

## Requirements

### R1: Begin the sign-in

The service sends the **browser** to the `provider`, with a [state](https://example.invalid/a_b).

- It lasts 10 minutes.
- It is used once,
  by the same browser.

### R2: End the sign-in

The service exchanges the `code` with the verifier.

1. It lasts 10 minutes.
2. Then it is *gone*.

| word | means |
|------|-------|
| one  | 1     |

```yaml
# kept
time: 10
```
"""


def at(text: str, words: str, number: int = 0) -> Anchor:
    """The anchor of the number-th place that has these words."""
    start = -1
    for _ in range(number + 1):
        start = text.index(words, start + 1)
    return anchors.make_anchor("specs/auth-flow.md", text, start, start + len(words))


def found(anchor: Anchor, text: str) -> tuple[str, int, str]:
    place = anchors.find_anchor(anchor, text)
    assert place
    return text[place.start : place.end], place.line, str(place.kind)


def selected(quote: str) -> str:
    anchor = anchors.anchor_selection("specs/auth-flow.md", SPEC, quote)
    assert anchor
    return anchor.quote


def test_anchor_records_its_surroundings() -> None:
    anchor = at(SPEC, "lasts 10 minutes", 1)
    assert anchor.heading == ("Spec: auth-flow", "Requirements", "R2: End the sign-in")
    assert (SPEC.split("\n")[anchor.line - 1], anchor.column) == ("1. It lasts 10 minutes.", 7)
    assert anchor.before.endswith("verifier.\n\n1. It ") and anchor.after.startswith(".\n2. Then")


@pytest.mark.parametrize(
    ("quote", "source"),
    [
        ("sends the browser to the provider", "sends the **browser** to the `provider"),
        ("with a state.", "with a [state](https://example.invalid/a_b)."),
        ("It is used once, by the same browser.", "It is used once,\n  by the same browser."),
        ("minutes.\nIt is used", "minutes.\n- It is used"),
        ("minutes.\n\n\nThen\u00a0it is gone", "minutes.\n2. Then it is *gone"),
        ("R2: End the sign-in\n\nThe service exchanges", "R2: End the sign-in\n\nThe service exchanges"),
        ("word\tmeans\none\t1", "word | means |\n|------|-------|\n| one  | 1"),
        ("gone.\n\nword", "gone*.\n\n| word"),
        ("# kept\ntime: 10", "# kept\ntime: 10"),
        ("10", "10"),
        ("- It lasts", "- It lasts"),
    ],
)
def test_browser_selection_is_found_in_the_source(quote: str, source: str) -> None:
    assert selected(quote) == source


def test_surroundings_disambiguate_repeated_text() -> None:
    first, second = (at(SPEC, "lasts 10 minutes", number) for number in (0, 1))
    assert anchors.anchor_selection(first.document, SPEC, "lasts 10 minutes", "the verifier. It ", ". Then") == second
    assert anchors.anchor_selection(first.document, SPEC, "lasts 10 minutes", "a state. It ", ". It is") == first
    assert anchors.anchor_selection(first.document, SPEC, "lasts 10 minutes", line=second.line) == second


@pytest.mark.parametrize("quote", ["", " \n", "never written", "****"])
def test_missing_text_cannot_be_selected(quote: str) -> None:
    assert anchors.anchor_selection("specs/auth-flow.md", SPEC, quote) is None


def test_empty_range_has_no_anchor() -> None:
    with pytest.raises(ValueError, match="is out of range for a text"):
        anchors.make_anchor("tasks.md", "abc", 2, 2)


def test_anchor_follows_its_text_through_edits_above() -> None:
    anchor = at(SPEC, "lasts 10 minutes", 1)
    edited = SPEC.replace(
        "## Requirements\n", "## Requirements\n\nAll of these last 10 minutes: it lasts 10 minutes.\n"
    )
    assert found(anchor, edited) == ("lasts 10 minutes", anchor.line + 2, "exact")


def test_anchor_stays_when_another_occurrence_is_deleted() -> None:
    anchor = at(SPEC, "lasts 10 minutes", 1)
    edited = SPEC.replace("- It lasts 10 minutes.\n", "")
    assert found(anchor, edited) == ("lasts 10 minutes", anchor.line - 1, "exact")


def test_anchor_is_lost_when_its_own_occurrence_is_deleted() -> None:
    anchor = at(SPEC, "lasts 10 minutes", 1)
    assert anchors.find_anchor(anchor, SPEC.replace("1. It lasts 10 minutes.\n", "")) is None
    short = at(SPEC, "service", 1)
    assert anchors.find_anchor(short, SPEC.replace("The service exchanges the `code`", "The code is sent")) is None


def test_markup_changes_do_not_affect_the_anchor() -> None:
    anchor = at(SPEC, "sends the **browser** to the `provider`")
    edited = SPEC.replace("sends the **browser** to the `provider`", "sends the browser\nto the *provider*")
    assert found(anchor, edited) == ("sends the browser\nto the *provider", anchor.line, "exact")


def test_moved_paragraph_is_found_under_its_new_heading() -> None:
    sentence = "The service exchanges the `code` with the verifier."
    anchor = at(SPEC, sentence)
    edited = SPEC.replace(f"{sentence}\n\n", "").replace("# Spec: auth-flow\n", f"# Spec: auth-flow\n\n{sentence}\n")
    assert found(anchor, edited) == (sentence, 7, "moved")


def test_reworded_sentence_is_found_as_changed() -> None:
    anchor = at(SPEC, "The service exchanges the `code` with the verifier.")
    edited = SPEC.replace("the `code` with the verifier", "each `code` once with the verifier")
    words, line, sure = found(anchor, edited)
    assert (line, sure) == (anchor.line, "changed") and words.startswith("The service exchanges each `code`")


def test_reworded_short_text_is_found_by_its_surroundings() -> None:
    anchor = at(SPEC, "10 minutes", 1)
    assert found(anchor, SPEC.replace("1. It lasts 10 minutes", "1. It lasts 15 minutes")) == (
        "15 minutes",
        anchor.line,
        "changed",
    )
    assert (
        anchors.find_anchor(anchor, SPEC.replace("1. It lasts 10 minutes.\n", "1. Some minutes go by here.\n")) is None
    )
    text = "# A\n\nA user is one person. A user has one or more identities.\n"
    assert anchors.find_anchor(at(text, "A user is one person. "), text.replace("A user is one person. ", "")) is None


def test_same_words_in_another_order_do_not_match() -> None:
    sentence = "one two three four five six seven eight nine ten eleven twelve"
    anchor = at(f"# A\n\n{sentence}\n", sentence)
    assert anchors.find_anchor(anchor, f"# A\n\n{' '.join(reversed(sentence.split()))}\n") is None


def test_similar_text_under_another_heading_does_not_match() -> None:
    sentence = "The service keeps the session for at most ten minutes."
    anchor = at(f"# A\n\n{sentence}\n\n# B\n\nNothing.\n", sentence)
    edited = "# A\n\nNothing.\n\n# B\n\nThe service keeps the session for at most two hours.\n"
    assert anchors.find_anchor(anchor, edited) is None
    assert found(anchor, edited.replace("# A", "# C").replace("# B", "# A"))[2] == "changed"


def test_renamed_heading_is_found_as_changed() -> None:
    anchor = at(SPEC, "### R2: End the sign-in")
    edited = SPEC.replace("### R2: End the sign-in", "### R2: End every sign-in")
    words, line, sure = found(anchor, edited)
    assert (words, line, sure) == ("R2: End every sign-in", anchor.line, "changed")


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), lambda text: text.replace(" ", "\t ")])
def test_line_endings_tabs_and_emoji_do_not_matter(change: object) -> None:
    assert callable(change)
    text = SPEC.replace("browser", "browser 👩‍💻🇩🇪")
    anchor = at(text, "once,\n  by the same browser 👩‍💻🇩🇪.\n\n### R2")
    place = anchors.find_anchor(anchor, change(text))
    assert place and (place.line, place.last_line, place.kind) == (anchor.line, anchor.line + 3, MatchKind.EXACT)


# ---- for every text

ODD = st.text(alphabet="ab *_`#->|[]()1.\\\n\r\t\u00a0\0é👩‍💻字\ud800:=~", min_size=1, max_size=80)


def part(data: st.DataObject, text: str) -> tuple[int, int]:
    start = data.draw(st.integers(0, len(text) - 1))
    return start, data.draw(st.integers(start + 1, len(text)))


@given(ODD, st.data())
def test_any_selection_is_found_exactly_in_the_same_text(text: str, data: st.DataObject) -> None:
    start, end = part(data, text)
    place = anchors.find_anchor(anchors.make_anchor("tasks.md", text, start, end), text)
    assert place == AnchorMatch(
        start, end, text.count("\n", 0, start) + 1, text.count("\n", 0, end - 1) + 1, MatchKind.EXACT
    )


@given(ODD, ODD, st.data())
def test_arbitrary_text_gives_no_place_or_one_within_bounds(text: str, other: str, data: st.DataObject) -> None:
    anchor = anchors.make_anchor("tasks.md", text, *part(data, text))
    place = anchors.find_anchor(anchor, other)
    assert place is None or 0 <= place.start < place.end <= len(other)
    chosen = anchors.anchor_selection("tasks.md", other, anchor.quote, anchor.before, anchor.after, anchor.line)
    assert chosen is None or chosen.quote in other


def written(seed: int) -> list[str]:
    """Paragraphs, items and headings, no two words alike."""
    chance = random.Random(seed)
    lines, number = [], 0
    for _ in range(chance.randint(6, 20)):
        words = []
        for _ in range(chance.randint(2, 14)):
            number += 1
            words.append(chance.choice(("w{}", "**w{}**", "`w{}`", "w{},")).format(number))
        lines.append(chance.choice(("", "- ", "  - ", "> ", "## ", "### ", "1. ")) + " ".join(words))
    return lines


@given(st.integers(0, 10**6), st.data())
def test_anchor_is_found_after_edits_elsewhere(seed: int, data: st.DataObject) -> None:
    lines = written(seed)
    chosen = data.draw(st.integers(0, len(lines) - 1))
    text = "\n\n".join(lines)
    start = sum(len(line) + 2 for line in lines[:chosen])
    anchor = anchors.make_anchor("tasks.md", text, start, start + len(lines[chosen]))
    for number in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=8)):
        if number != chosen and not lines[number].startswith("#"):
            lines[number] = data.draw(st.sampled_from(["", "Other words.", f"{lines[number]}\n\nMore.", "x " * 30]))
    edited = data.draw(st.sampled_from(["\n\n", "\r\n\r\n"])).join(lines)
    place = anchors.find_anchor(anchor, edited)
    assert place and place.kind is not MatchKind.CHANGED
    assert edited[place.start : place.end].strip("#-> \t*`1.") == lines[chosen].strip("#-> \t*`1.")


@given(st.integers(0, 10**6), st.data())
def test_anchor_is_lost_after_its_text_is_deleted(seed: int, data: st.DataObject) -> None:
    text = "\n\n".join(written(seed))
    words = [(match.start(), match.end()) for match in anchors._WORD.finditer(text)]
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    start, end = words[first][0], words[last][1]
    anchor = anchors.make_anchor("tasks.md", text, start, end)
    assert anchors.find_anchor(anchor, text[:start] + text[end:]) is None


SHAPES = {
    "letters": "a",
    "words": "a b ",
    "lines": "a\n",
    "headings": "# a\n",
    "nested headings": "# a\n## b\n### c\n",
    "brackets": "](",
    "marks": "*_`",
    "bullets": "- ",
    "blanks": " ",
    "rules": "\n---",
    "fences": "```a\n",
    "numbers": "1. 2) ",
    "quotes": "> ",
    "many words": "one two three four five six seven eight nine ten\n",
}


@pytest.mark.parametrize("quote", ["a", "aaaaaaaa", "one two three four five six nine", "half"])
@pytest.mark.parametrize("shape", SHAPES)
def test_anchor_search_takes_linear_time(shape: str, quote: str) -> None:
    unit = SHAPES[shape]

    def look(text: str) -> None:
        anchors._index_text.cache_clear()
        words = text[: len(text) // 2] if quote == "half" else quote
        anchors.find_anchor(Anchor("tasks.md", words + " z", "b", "c", ("a",), 3), text)
        anchors.find_anchor(Anchor("tasks.md", words, "b", "c", ("a",), 3), text)
        anchors.anchor_selection("tasks.md", text, words)

    count = 4_000 // len(unit)
    assert_linear(look, unit * count, unit * count * TIMES)
