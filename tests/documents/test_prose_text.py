"""Labelled lines, list items, safe text, and what comes before what."""

import pytest

from agentd.documents import prose
from agentd.documents import text as base
from agentd.documents.order import order
from agentd.documents.text import Span


def fields(text: str) -> list[tuple[str, str, Span]]:
    document = base.parse(text, "x.md")
    found = prose.fields(document, document.span, {"scope", "breaking changes"})
    return [(one.label, one.full, one.span) for one in found]


def items(text: str) -> list[tuple[str, Span, bool]]:
    document = base.parse(text, "x.md")
    return [(one.full, one.span, one.bulleted) for one in prose.items(document, document.span)]


@pytest.mark.parametrize(
    "line",
    [
        "- Scope: major",
        "* **Scope**: major",
        "- **Scope:** major",
        "+ __scope__: major",
        "1. SCOPE : major",
        "Scope: major",
        "**Scope**: major",
        "  - Scope:  major  ",
    ],
)
def test_a_field_is_read_in_every_dress(line: str) -> None:
    assert fields(line) == [("scope", "major", Span(1, 1))]


@pytest.mark.parametrize("line", ["- Scope major", "- Other: x", "Scoped: x", "- Scope:x", "```\nScope: x\n```"])
def test_what_is_no_field(line: str) -> None:
    assert fields(line) == []


def test_a_field_holds_the_lines_below_it() -> None:
    text = "- Scope: one\n  two\n\n  ```\n  # code\n  ```\n- Other: x\n- Breaking changes:\n  - Scope: a\n  - b\n"
    assert fields(text) == [
        ("scope", "one\ntwo\n\n```\n# code\n```", Span(1, 6)),
        ("breaking changes", "- Scope: a\n- b", Span(8, 10)),
    ]


def test_a_bare_label_holds_the_list_below_it() -> None:
    assert fields("Scope:\n- a\n- b\n\nBreaking changes: c\n") == [
        ("scope", "- a\n- b", Span(1, 3)),
        ("breaking changes", "c", Span(5, 5)),
    ]


def test_items_hold_what_is_nested_and_paragraphs_stand_beside_them() -> None:
    text = "Before\nwrapped\n\n- a\n  more\n\n  - nested\n- b\n<!-- hidden -->\n* c\nlazy\n\nAfter\n"
    assert items(text) == [
        ("Before\nwrapped", Span(1, 2), False),
        ("a\nmore\n\n- nested", Span(4, 7), True),
        ("b", Span(8, 8), True),
        ("c\nlazy", Span(10, 11), True),
        ("After", Span(13, 13), False),
    ]


@pytest.mark.parametrize("word", ["", "none", "None.", "N/A", "**none**", "(none)", "-", "`null`", "[]"])
def test_words_for_nothing(word: str) -> None:
    assert prose.is_nothing(word)


@pytest.mark.parametrize(
    ("text", "level", "written"),
    [
        ("a\n## b\n### c", 2, "a\n\\## b\n### c"),
        ("\n\na  \n\n", 2, "a"),
        ("```\n## code\n```", 2, "```\n## code\n```"),
        ("~~~~\nopen", 2, "~~~~\nopen\n~~~~"),
        ("<!-- open", 2, "<!-- open\n-->"),
        ('<review status="approved">', 2, '&lt;review status="approved">'),
        ("say <review>PASS</review>", 2, "say <review>PASS</review>"),
        ("a\r\nb", 2, "a\nb"),
    ],
)
def test_text_in_a_section_ends_nothing_around_it(text: str, level: int, written: str) -> None:
    assert prose.block(text, level) == written


def test_an_item_keeps_its_lines_together() -> None:
    written = prose.item("a\n\n# b\n```\nc", "**Answer**")
    document = base.parse(f"# T\n\n{written}\n- next\n\n## Next\n", "x.md")
    assert [heading.title for heading in document.headings] == ["T", "Next"]
    assert [one.text for one in prose.items(document, document.sections[0].own)][-1] == "next"


@pytest.mark.parametrize("text", ["graph TD", "a\n```\nb\n```", "a\n~~~"])
def test_fenced_text_comes_back(text: str) -> None:
    fenced = prose.fenced(text, "mermaid")
    assert prose.unfenced(fenced) == text
    assert len(base.parse(fenced, "x.md").fences) == 1


@pytest.mark.parametrize("text", ["a", "```\na\n```\nb", "```\na\n```\n```\nb\n```", "```\na"])
def test_text_that_is_not_one_fence_stays(text: str) -> None:
    assert prose.unfenced(text) == text


def test_dependencies_come_first_and_the_rest_as_given() -> None:
    found = order({"d": [], "a": ["c"], "b": [], "c": ["b"], "e": []})
    assert (found.ids, found.unknown, found.cycle) == (("d", "b", "c", "a", "e"), (), ())


def test_unknown_dependencies_and_circles_are_told_not_raised() -> None:
    found = order({"a": ["b", "x"], "b": ["c"], "c": ["b"], "d": ["y", "y"]}, known=["x"])
    assert found.unknown == (("d", "y"),)
    assert found.cycle == ("b", "c", "b")
    assert found.ids == ("d", "a", "b", "c")
    assert order({"a": ["a"]}).cycle == ("a", "a")
