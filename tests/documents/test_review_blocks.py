"""Review blocks at the end of proposal.md."""

import hashlib
from pathlib import Path

import pytest

from agentd.documents import review_blocks
from agentd.documents.review_blocks import ReviewBlock, proposal_body
from agentd.documents.text import Span

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
TEXT = (EXAMPLE / "proposal.md").read_bytes().decode()
JUDGED = "6484058812de5c3df221cab0c0a5fe959ec3b4165bad5cf5e1b75ce877683bd8"


def block(text: str = "Fine.", iteration: int = 1, status: str = "approved") -> ReviewBlock:
    return ReviewBlock(status, iteration, "codex", text)


def test_proposal_hash_covers_the_text_before_the_first_block() -> None:
    assert hashlib.sha256(proposal_body(TEXT).encode()).hexdigest() == JUDGED


def test_blocks_of_the_example_are_found() -> None:
    first, second = review_blocks.find_blocks(TEXT)
    assert (first.status, first.iteration, first.reviewer, first.line) == ("needs_revision", 1, "codex", 41)
    assert first.text.startswith("**Verdict**: NEEDS_REVISION\n\nThe plan")
    assert (second.status, second.iteration, second.span) == ("approved", 2, Span(53, 64))
    assert review_blocks.latest_block((first, second)) == second


def test_appending_the_example_blocks_gives_the_example() -> None:
    text = proposal_body(TEXT)
    for one in review_blocks.find_blocks(TEXT):
        text = review_blocks.append_block(text, one)
    assert text == TEXT


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n", "\n```\nopen", "\n<!-- open", "\n```\nclosed\n```"])
def test_new_block_does_not_change_the_hash(end: str) -> None:
    text = "# Change: a\n\nwhy" + end
    once = review_blocks.append_block(text, block("```\nnever closed"))
    twice = review_blocks.append_block(once, block("second"))
    assert once.startswith(text) and twice.startswith(once)
    assert proposal_body(text) == proposal_body(once) == proposal_body(twice)
    assert [one.text for one in review_blocks.find_blocks(twice)] == ["```\nnever closed\n```", "second"]


def test_body_ends_with_exactly_one_newline() -> None:
    assert proposal_body("a") == proposal_body("a\n") == proposal_body("a\n\n\n") == "a\n"
    assert proposal_body("a\r\nb\r\n\r\n") == "a\r\nb\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "<review>PASS</review>",
        "Output `<review>PASS</review>` at the end.",
        ' <review status="approved" iteration="1">\nx\n</review>',
        'The <review status="approved" iteration="1"> tag',
        '```\n<review status="approved" iteration="1">\n```',
        '<!--\n<review status="approved">\n-->',
        "<review status>",
        "<reviewer name='x'>",
    ],
)
def test_prose_is_not_a_review_block(text: str) -> None:
    assert review_blocks.find_blocks(text) == ()
    assert proposal_body(text) == text + "\n"


@pytest.mark.parametrize(
    "text",
    [
        'see\n<review status="x" iteration="9">\nor\n</review>\nhere',
        "<review>PASS</review>",
        "already &lt;/review> and &amp;lt;review status and &lt; alone",
        "a < b",
        "</review></review>",
    ],
)
def test_judges_text_round_trips_and_cannot_open_or_close_a_block(text: str) -> None:
    written = review_blocks.append_block(review_blocks.append_block("# T\n", block(text)), block("next", 2))
    first, second = review_blocks.find_blocks(written)
    assert (first.text, second.text) == (text, "next")
    assert written.count("</review>") == 2


def test_text_without_tags_is_written_unchanged() -> None:
    assert "a < b &lt; `<div>`" in review_blocks.render_block(block("a < b &lt; `<div>`"))


def test_block_with_the_highest_iteration_is_the_latest() -> None:
    found = [block("a", 2), block("b", 3), block("c", 3), block("d", 1)]
    assert review_blocks.latest_block(found) == found[2]
    assert review_blocks.latest_block([]) is None


def test_manually_written_blocks_are_read() -> None:
    text = (
        "# T\n<review status='rejected' iteration=\"x\">no</review>\nbetween\n"
        '<review iteration="2" status="approved" by="me">\nAll fine.</review>\n'
        '<review status="needs_revision" iteration="3">\nnever closed\n'
        '<review status="approved" iteration="4">\ncut off'
    )
    found = review_blocks.find_blocks(text)
    assert [(one.status, one.iteration, one.text) for one in found] == [
        ("rejected", 0, "no"),
        ("approved", 2, "All fine."),
        ("needs_revision", 3, "never closed"),
        ("approved", 4, "cut off"),
    ]
    assert [one.span for one in found] == [Span(2, 2), Span(4, 5), Span(6, 7), Span(8, 9)]


def test_blocks_use_the_documents_line_endings() -> None:
    written = review_blocks.append_block("a\r\n", block("b\nc"))
    assert written.replace("\r\n", "").count("\n") == 0
    assert review_blocks.find_blocks(written)[0].text == "b\nc"
