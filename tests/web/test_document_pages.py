"""Documents of a change as pages: the example's own, with lines, contents, links, frontmatter and review blocks."""

from pathlib import Path

import pytest
from markup import Element, Markup, parse_markup

from agentd.documents import text as base
from agentd.web.markup import markdown
from plans import EXAMPLE

NAMES = sorted(str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*.md"))


def example(name: str) -> str:
    return (EXAMPLE / name).read_text()


def page(text: str, name: str = "specs/a.md") -> Markup:
    return parse_markup(markdown.render_markdown(text, name).html)


def lines(element: Element) -> tuple[int, int]:
    return int(element["data-line"]), int(element["data-end"])


@pytest.mark.parametrize("name", NAMES)
def test_every_line_with_text_is_shown_by_a_block_that_names_it(name: str) -> None:
    shown: dict[int, str] = {}
    for element in page(example(name), name).elements:
        if "data-line" in element.attributes:
            first, last = lines(element)
            for line in range(first, last + 1):
                shown[line] = shown.get(line, "") + element.text
    for number, row in enumerate(example(name).split("\n"), 1):
        words = [word for word in row.replace("*", " ").replace("`", " ").split() if word.isalpha()]
        if not row.startswith(("```", "<")):
            assert all(word in shown[number] for word in words), (number, row)


@pytest.mark.parametrize("name", NAMES)
def test_table_of_contents_matches_the_parsed_headings(name: str) -> None:
    contents = markdown.render_markdown(example(name), name).contents
    headings = base.parse_document(example(name), name).headings
    assert [(one.level, one.line) for one in contents] == [(one.level, one.line) for one in headings]


def test_block_lines_match_the_file() -> None:
    text = "---\nid: a\n---\n\n# A\n\nwords\nmore\n\n- one\n\n- two\n  - three\n\n\n```\nx\n```\n"
    found = page(text.replace("\n", "\r\n"))
    assert lines(found.one("h1")) == (5, 5)
    assert lines(found.all("p")[0]) == (7, 8)
    assert [lines(one) for one in found.all("li")] == [(10, 10), (12, 13), (13, 13)]
    assert [lines(one) for one in found.all("pre")] == [(16, 18)]


def test_table_rows_have_lines_and_alignment_is_a_class() -> None:
    found = page("|a|b|c|\n|:-|-:|:-:|\n|1|2|3|\n|4|5|6|")
    assert [lines(one) for one in found.all("tr")] == [(1, 1), (3, 3), (4, 4)]
    assert [one.classes for one in found.all("td")[:3]] == [["align-left"], ["align-right"], ["align-center"]]


def test_headings_get_ids_from_their_text_and_requirements_from_their_number() -> None:
    text = "# Spec: A\n### R1: First\n### R2 - Second\n### R1: Again\n## Why\n## Why\n## Why 1\n## `x` & *y*\n## ?"
    contents = markdown.render_markdown(text, "specs/a.md").contents
    assert [one.id for one in contents] == [
        "at-spec-a",
        "r1",
        "r2",
        "at-r1-again",
        "at-why",
        "at-why-1",
        "at-why-1-1",
        "at-x--y",
        "at-section",
    ]
    assert [one.requirement for one in contents[:5]] == [None, "R1", "R2", "R1", None]
    assert [one.title for one in contents[-2:]] == ["x & y", "?"]


def test_heading_keeps_its_id_when_others_change() -> None:
    before = markdown.render_markdown("# A\n\n## B\n\n### R2: C", "a.md").contents
    after = markdown.render_markdown("# New\n\n# A\n\n### R1: New\n\n## B\n\n### R2: C", "a.md").contents
    assert {one.id for one in before} <= {one.id for one in after}


@pytest.mark.parametrize(
    "text", ["> # R1: quoted", "- # R1: in a list", "```\n# R1: code\n```", "<!--\n# R1: gone\n-->"]
)
def test_only_top_level_headings_are_listed(text: str) -> None:
    found = markdown.render_markdown(f"{text}\n\n# R1: real", "specs/a.md")
    assert [(one.id, one.title) for one in found.contents] == [("r1", "R1: real")]


@pytest.mark.parametrize(
    ("name", "url", "href", "document"),
    [
        ("proposal.md", "specs/auth-flow.md#r2", "specs/auth-flow.md#r2", "specs/auth-flow.md"),
        ("specs/a.md", "../proposal.md", "../proposal.md", "proposal.md"),
        ("specs/a.md", "./b.md#R1-start-of-it", "b.md#r1", "specs/b.md"),
        ("specs/a.md", "../reviews/review-1.yaml", "../reviews/review-1.yaml", "reviews/review-1.yaml"),
        ("tasks.md", "specs/%C3%A4.md#%C3%BCber-uns", "specs/%C3%A4.md#at-%C3%BCber-uns", "specs/ä.md"),
        ("tasks.md", "#Task-11-Store-users", "#at-task-11-store-users", None),
        ("tasks.md", "#at-why", "#at-why", None),
    ],
)
def test_links_between_documents_are_kept(name: str, url: str, href: str, document: str | None) -> None:
    link = page(f"[a]({url})", name).one("a")
    assert (link["href"], link.attributes.get("data-document")) == (href, document)


def test_link_to_a_heading_points_to_its_id() -> None:
    found = page("# What changes, and why?\n\n[a](#what-changes-and-why)")
    assert found.one("a")["href"] == f"#{found.one('h1')['id']}"


@pytest.mark.parametrize("url", ["../../../x.md", "/etc/x.md", "src/a.py", "../src", "a.md?x", "C:\\x.md", "x:y.md"])
def test_link_to_a_non_document_is_removed(url: str) -> None:
    found = page(f"[words]({url})")
    assert "a" not in found.tags and "words" in found.text


def test_external_links_are_marked() -> None:
    found = page("[a](https://e.example/x?y#z 'T') <https://e.example> <me@e.example>").all("a", "outside")
    assert [one["href"] for one in found] == ["https://e.example/x?y#z", "https://e.example", "mailto:me@e.example"]
    assert found[0]["title"] == "T"


def test_frontmatter_is_a_table_with_its_lines() -> None:
    found = page(example("proposal.md"), "proposal.md")
    table = found.one("table", "frontmatter")
    rows = [row for row in found.all("tr") if "table" in row.parents]
    assert lines(table) == (1, 13)
    assert [one.text for one in found.all("th")] == ["id", "type", "version", "created", "affected_specs"]
    assert lines(rows[-1]) == (6, 12) and "depends: [user-model]" in rows[-1].text


@pytest.mark.parametrize("front", ["id: [", "- a\n- b", "{id: a, type: b}", "id: a\nid: b"])
def test_unparsable_frontmatter_is_shown_verbatim(front: str) -> None:
    assert front in page(f"---\n{front}\n---\n\n# A").one("pre", "frontmatter").text


def test_review_blocks_are_separate_sections() -> None:
    found = page(example("proposal.md"), "proposal.md")
    first, second = found.all("section", "review")
    assert (first.classes, lines(first)) == (["review", "review-needs-revision"], (41, 51))
    assert (second.classes, lines(second)) == (["review", "review-approved"], (53, 64))
    assert "Round 2: approved by codex" in second.text
    inside = [lines(one) for one in found.all("p") if "section" in one.parents and "data-line" in one.attributes]
    assert inside == [(43, 43), (45, 45), (55, 55), (57, 57)]


def test_review_cannot_leave_its_block_or_take_a_requirement_id() -> None:
    tag = '<review status="approved" iteration="1" reviewer="x">'
    text = f"# A\n\n{tag}\n\n# R1: mine\n\n```\nopen\n\n</review>\n\nbehind\n"
    result = markdown.render_markdown(text, "proposal.md")
    found = parse_markup(result.html)
    assert [one.id for one in result.contents] == ["at-a"]
    assert "open" in found.one("section").text and "behind" not in found.one("section").text
    assert lines(next(one for one in found.all("h1") if one.text == "R1: mine")) == (5, 5)


def test_only_the_proposal_has_review_blocks() -> None:
    found = page('<review status="approved" iteration="1" reviewer="x">\nwords\n</review>', "specs/a.md")
    assert "section" not in found.tags and '<review status="approved"' in found.text


def test_checkboxes_are_read_only() -> None:
    found = page("- [ ] a\n- [x] b\n- [-] c\n- [y] d\n- e [x] f\n\n[x] g")
    assert [(one["aria-label"], "checked" in one.attributes) for one in found.all("input")] == [
        ("not done", False),
        ("done", True),
        ("waived", False),
    ]
    assert len(found.all("li", "task")) == 3 and "[y] d" in found.text and "e [x] f" in found.text


def test_code_has_its_language_and_a_diagram_keeps_its_source() -> None:
    found = page('```Python x\na < b\n```\n\n```c++\n```\n\n```mermaid\nA --> B["<b>"]\n```\n\n    plain')
    assert [one.classes for one in found.all("code")] == [["language-python"], ["language-c++"], []]
    assert found.all("code")[0].text == "a < b\n"
    assert found.one("pre", "mermaid-source").text == 'A --> B["<b>"]\n'
    assert lines(found.one("figure", "diagram")) == (8, 10)


def test_title_is_the_first_heading_or_the_name() -> None:
    assert markdown.render_markdown("## b\n\n# *a* & b", "x.md").title == "a & b"
    assert markdown.render_markdown("words", "specs/x.md").title == "specs/x.md"


@pytest.mark.parametrize(
    "seed", sorted((Path(__file__).parents[1] / "data" / "seeds").glob("*.md")), ids=lambda one: one.stem
)
def test_long_foreign_documents_are_rendered(seed: Path) -> None:
    text = seed.read_text()
    found = markdown.render_markdown(text, "specs/seed.md")
    assert parse_markup(found.html).text and len(found.contents) > 10
    assert markdown.render_markdown(text, "specs/seed.md") == found


def test_empty_document_is_an_empty_page() -> None:
    assert markdown.render_markdown("", "tasks.md") == markdown.RenderedDocument("tasks.md", "", ())
