"""A document is its text: what its lines are, and edits that keep every other byte."""

import pytest

from agentd.documents import text as base
from agentd.documents.text import InvalidDocument, LineKind, Span
from agentd.domain.errors import FormatInvalid


def titles(text: str) -> list[tuple[int, str, int]]:
    return [(heading.level, heading.title, heading.line) for heading in base.parse_document(text, "x.md").headings]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a\n", ("a\n",)),
        ("a\r\nb", ("a\r\n", "b")),
        ("a\rb\n", ("a\rb\n",)),
        ("\n\n", ("\n", "\n")),
        ("a\x0cb\u2028c\n", ("a\x0cb\u2028c\n",)),
    ],
)
def test_lines_keep_their_endings(text: str, lines: tuple[str, ...]) -> None:
    assert base.parse_document(text, "x.md").lines == lines


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# A", (1, "A", 1)),
        ("###### A", (6, "A", 1)),
        ("   ## A ##  ", (2, "A", 1)),
        ("## C#", (2, "C#", 1)),
        ("##", (2, "", 1)),
        ("## ##", (2, "", 1)),
        ("##\tA", (2, "A", 1)),
    ],
)
def test_heading_formats_are_parsed(line: str, heading: tuple[int, str, int]) -> None:
    assert titles(line) == [heading]


@pytest.mark.parametrize("line", ["#A", "####### A", "    # A", "text # A", "\\# A", "\t# A"])
def test_line_that_is_not_a_heading_is_ignored(line: str) -> None:
    assert titles(line) == []


@pytest.mark.parametrize(
    "code",
    [
        "```\n# no\n```",
        "~~~\n# no\n~~~",
        "   ```py\n# no\n```",
        "````\n```\n# no\n````",
        "```\n~~~\n# no\n```",
        "```\n    ```\n# no\n```  ",
        "<!--\n# no\n-->",
        "<!-- a\n# no\nb --> c",
        "---\n# no\n---",
    ],
)
def test_headings_in_code_comments_and_frontmatter_are_ignored(code: str) -> None:
    assert [title for _, title, _ in titles(f"{code}\n# yes\n")] == ["yes"]


@pytest.mark.parametrize("text", ["`` `\n# yes", "```a`b```\n# yes", "<!-- a -->\n# yes", "a <!--\n# yes"])
def test_inline_code_and_comments_do_not_open_a_block(text: str) -> None:
    assert [title for _, title, _ in titles(text)] == ["yes"]


def test_unclosed_fence_extends_to_the_end() -> None:
    document = base.parse_document("a\n````yaml\n# no\n```\n", "x.md")
    (fence,) = document.fences
    assert (fence.span, fence.inner, fence.info, fence.closed) == (Span(2, 4), Span(3, 4), "yaml", False)
    assert document.closing == "````"
    assert base.parse_document(document.text + document.closing, "x.md").closing == ""


def test_unclosed_comment_extends_to_the_end() -> None:
    document = base.parse_document("<!-- a\n# no\n", "x.md")
    assert not document.headings
    assert document.closing == "-->"


def test_sections_end_at_the_next_heading_of_their_level() -> None:
    document = base.parse_document("# T\n\n## A\ntext\n### B\nb\n## C\n", "x.md")
    spans = {section.heading.title: (section.span, section.own) for section in document.sections}
    assert spans == {
        "T": (Span(1, 7), Span(2, 2)),
        "A": (Span(3, 6), Span(4, 4)),
        "B": (Span(5, 6), Span(6, 6)),
        "C": (Span(7, 7), Span(8, 7)),
    }
    assert document.section("a") == document.sections[1]
    assert document.section("B") is None


@pytest.mark.parametrize(
    "heading", ["## Why", "## 1. Why", "## 1) why", "## 1.2 **Why**", "## **2. Why:**", "## __Why__"]
)
def test_numbers_and_bold_in_a_title_are_ignored(heading: str) -> None:
    assert base.parse_document(heading, "x.md").section("Why")


def test_marks_classify_each_line() -> None:
    document = base.parse_document("---\na: 1\n---\nx\n```\ny\n```\n<!-- z -->\n", "x.md")
    assert [LineKind(mark).name[0] for mark in document.kinds] == list("FFFTFFFC")
    assert [line for line, _ in document.plain_lines(document.span)] == [4]


@pytest.mark.parametrize("text", ["\ufeff---\r\nid: a\r\n---\r\n\r\n# T\r\n\r\nx", "---\nid: a\n---\n# T\nx\n"])
def test_byte_order_mark_and_line_endings_do_not_hide_structure(text: str) -> None:
    document = base.parse_document(text, "x.md")
    assert document.frontmatter == Span(1, 3)
    assert [heading.title for heading in document.headings] == ["T"]
    assert "".join(document.lines) == text


def test_content_is_the_line_without_its_ending() -> None:
    document = base.parse_document("\ufeffa  \r\nb\t\nc\r", "x.md")
    assert [document.content(line) for line in (1, 2, 3)] == ["a  ", "b\t", "c\r"]


def test_edit_keeps_every_other_byte() -> None:
    text = "\ufeffa\r\nb\nc\rd\r\ne"
    document = base.parse_document(text, "x.md")
    assert document.replace(Span(2, 2), "X\n") == "\ufeffa\r\nX\nc\rd\r\ne"
    assert document.insert(2, "X\r\n") == "\ufeffa\r\nX\r\nb\nc\rd\r\ne"
    assert document.insert(5, "X") == text + "\r\nX"
    assert document.replace_all([(Span(4, 4), "E"), (Span(1, 1), "A\n")]) == "A\nb\nc\rd\r\nE"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap at line 2"):
        base.parse_document("a\nb\nc\n", "x.md").replace_all([(Span(1, 2), ""), (Span(2, 3), "")])


@pytest.mark.parametrize(("data", "line"), [(b"a\nb\xff\n", 2), (b"\xff\xfea\x00", 1), (b"a\n\n\xc3", 3)])
def test_invalid_utf8_error_names_file_and_line(data: bytes, line: int) -> None:
    with pytest.raises(InvalidDocument, match=rf"specs/a\.md:{line}: ") as caught:
        base.decode_text(data, "specs/a.md")
    assert isinstance(caught.value, FormatInvalid)
    assert (caught.value.file, caught.value.line, caught.value.exit_code) == ("specs/a.md", line, 1)


@pytest.mark.parametrize("text", ["a\nb\0", "a\n\ud800"])
def test_unwritable_text_error_names_file_and_line(text: str) -> None:
    with pytest.raises(InvalidDocument, match=r"x\.md:2: "):
        base.parse_document(text, "x.md")


def test_decoding_keeps_the_byte_order_mark() -> None:
    data = "\ufeffé\r\n".encode()
    assert base.decode_text(data, "x.md").encode() == data
