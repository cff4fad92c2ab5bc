"""Labelled lines, list items, safe text, and what comes before what."""

import pytest

from agentd.documents import prose
from agentd.documents import text as base
from agentd.documents.order import dependency_order
from agentd.documents.text import Span


def fields(text: str) -> list[tuple[str, str, Span]]:
    document = base.parse_document(text, "x.md")
    found = prose.read_fields(document, document.span, {"scope", "breaking changes"})
    return [(one.label, one.full, one.span) for one in found]


def items(text: str) -> list[tuple[str, Span, bool]]:
    document = base.parse_document(text, "x.md")
    return [(one.full, one.span, one.bulleted) for one in prose.read_items(document, document.span)]


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
def test_field_is_read_in_every_markup_variant(line: str) -> None:
    assert fields(line) == [("scope", "major", Span(1, 1))]


@pytest.mark.parametrize("line", ["- Scope major", "- Other: x", "Scoped: x", "- Scope:x", "```\nScope: x\n```"])
def test_line_that_is_not_a_field_is_ignored(line: str) -> None:
    assert fields(line) == []


def test_field_includes_the_indented_lines_below_it() -> None:
    text = "- Scope: one\n  two\n\n  ```\n  # code\n  ```\n- Other: x\n- Breaking changes:\n  - Scope: a\n  - b\n"
    assert fields(text) == [
        ("scope", "one\ntwo\n\n```\n# code\n```", Span(1, 6)),
        ("breaking changes", "- Scope: a\n- b", Span(8, 10)),
    ]


def test_bare_label_includes_the_list_below_it() -> None:
    assert fields("Scope:\n- a\n- b\n\nBreaking changes: c\n") == [
        ("scope", "- a\n- b", Span(1, 3)),
        ("breaking changes", "c", Span(5, 5)),
    ]


def test_items_include_nested_lists_and_paragraphs_are_separate() -> None:
    text = "Before\nwrapped\n\n- a\n  more\n\n  - nested\n- b\n<!-- hidden -->\n* c\nlazy\n\nAfter\n"
    assert items(text) == [
        ("Before\nwrapped", Span(1, 2), False),
        ("a\nmore\n\n- nested", Span(4, 7), True),
        ("b", Span(8, 8), True),
        ("c\nlazy", Span(10, 11), True),
        ("After", Span(13, 13), False),
    ]


@pytest.mark.parametrize("word", ["", "none", "None.", "N/A", "**none**", "(none)", "-", "`null`", "[]"])
def test_words_meaning_nothing_are_recognized(word: str) -> None:
    assert prose.is_empty_phrase(word)


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
def test_block_text_cannot_close_its_section(text: str, level: int, written: str) -> None:
    assert prose.embed_text(text, level) == written


def test_item_keeps_its_lines_together() -> None:
    written = prose.render_item("a\n\n# b\n```\nc", "**Answer**")
    document = base.parse_document(f"# T\n\n{written}\n- next\n\n## Next\n", "x.md")
    assert [heading.title for heading in document.headings] == ["T", "Next"]
    assert [one.text for one in prose.read_items(document, document.sections[0].own)][-1] == "next"


@pytest.mark.parametrize("text", ["graph TD", "a\n```\nb\n```", "a\n~~~"])
def test_fenced_text_round_trips(text: str) -> None:
    fenced = prose.fence_code(text, "mermaid")
    assert prose.unfence_code(fenced) == text
    assert len(base.parse_document(fenced, "x.md").fences) == 1


@pytest.mark.parametrize("text", ["a", "```\na\n```\nb", "```\na\n```\n```\nb\n```", "```\na"])
def test_text_that_is_not_a_single_fence_is_unchanged(text: str) -> None:
    assert prose.unfence_code(text) == text


def test_dependencies_come_first_and_the_rest_keeps_its_order() -> None:
    found = dependency_order({"d": [], "a": ["c"], "b": [], "c": ["b"], "e": []})
    assert (found.ids, found.unknown, found.cycle) == (("d", "b", "c", "a", "e"), (), ())


def test_unknown_dependencies_and_cycles_are_reported_not_raised() -> None:
    found = dependency_order({"a": ["b", "x"], "b": ["c"], "c": ["b"], "d": ["y", "y"]}, known=["x"])
    assert found.unknown == (("d", "y"),)
    assert found.cycle == ("b", "c", "b")
    assert found.ids == ("d", "a", "b", "c")
    assert dependency_order({"a": ["a"]}).cycle == ("a", "a")
