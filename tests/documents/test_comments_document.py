"""comments.yaml: what is written is read back to the letter, what is not known stays, what is wrong is told by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents import comments
from agentd.documents.anchors import Anchor
from agentd.documents.comments import Comment, CommentEntry, CommentSeverity, CommentState
from agentd.domain.errors import StateError
from agentd.domain.terms import Severity

TEXT = """- id: K1
  document: specs/auth-flow.md
  anchor:
    quote: 10 minutes
    before: 'It lasts '
    after: .
    heading:
      - 'R1: Begin'
    line: 13
    column: 6
    colour: red
  severity: blocker
  state: open
  made: sha256:1
  finding: null
  thread:
    - by: person:ann
      at: 2026-01-19T10:30:00Z
      text: Too long.
      mood: bad
    - by: person:bob
      at: 2026-01-19T10:31:00Z
      text: |-
        No.

        It is not.
  starred: true
- id: K3
  document: tasks.md
  anchor:
    quote: x
    before: ''
    after: ''
    heading: []
    line: 1
    column: 1
  severity: note
  state: resolved
  made: sha256:2
  finding: P2
  resolved_by: person:ann
  thread:
    - by: person:ann
      at: 2026-01-19T10:30:00Z
      text: ''
"""


def test_every_key_round_trips() -> None:
    first, second = comments.parse_comments(TEXT)
    assert (first.id, first.number, first.document, first.severity) == (
        "K1",
        1,
        "specs/auth-flow.md",
        CommentSeverity.BLOCKER,
    )
    assert first.anchor == Anchor(first.document, "10 minutes", "It lasts ", ".", ("R1: Begin",), 13, 6)
    assert first.words == "Too long.\n\nbob: No.\n\nIt is not."
    assert (first.extra, first.anchor_extra, first.thread[0].extra) == (
        {"starred": True},
        {"colour": "red"},
        {"mood": "bad"},
    )
    assert (second.state, second.finding, second.resolved_by, second.words) == (
        CommentState.RESOLVED,
        "P2",
        "person:ann",
        "",
    )
    assert comments.render_comments((first, second)) == TEXT


def test_severities_match_those_of_findings() -> None:
    assert [one.severity for one in CommentSeverity] == [Severity.HIGH, Severity.MEDIUM, Severity.LOW]


@pytest.mark.parametrize("text", ["", "\n", "[]\n", "# nothing yet\n"])
def test_empty_file_has_no_comments(text: str) -> None:
    assert comments.parse_comments(text) == ()
    assert comments.parse_comments(comments.render_comments(())) == ()


def test_duplicate_id_from_a_merge_gets_a_new_number() -> None:
    first, other = comments.parse_comments(TEXT)
    merged = TEXT + TEXT.replace("Too long.", "Too short.")
    found = comments.parse_comments(merged)
    assert [one.id for one in found] == ["K1", "K3", "K4"], "the same twice is one"
    assert found[:2] == (first, other) and found[2].thread[0].text == "Too short."
    assert comments.parse_comments(merged + TEXT.replace("Too long.", "Too short.")) == found
    assert comments.parse_comments(comments.render_comments(found)) == found, "the next write keeps it so"


WRONG = {
    "no list": ("id: K1\n", "line 1: expected a list of comments, each starting with `- id: K1`"),
    "no yaml": (TEXT + "- [\n", "line 46: "),
    "no mapping": (TEXT + "- K4\n", "line 46 must be a mapping"),
    "a severity": (
        TEXT.replace("note", "huge"),
        "line 28: severity is 'huge', which is not one of blocker, should, note",
    ),
    "an id": (TEXT.replace("K3", "C3"), "line 28: invalid id 'C3'; ids look like K1"),
    "the last id twice": (
        TEXT.replace("K3", "K999999999").replace("K1", "K999999999"),
        "comment id K999999999 is used twice and no free id is left",
    ),
    "no anchor": ("- id: K1\n  document: x\n", "line 1: K1 has no anchor"),
    "no thread": (TEXT.split("  thread")[0], "line 1: the thread of K1 is empty"),
    "a time": (TEXT.replace("line: 13", "line: soon"), "line 1: anchor: line must be a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_comment_is_reported_with_its_line(name: str) -> None:
    text, words = WRONG[name]
    with pytest.raises(StateError) as error:
        comments.parse_comments(text)
    assert error.value.message.startswith((f"comments.yaml {words}", f"comments.yaml: {words}"))


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ["- a\n- b", "a: b", " a\r\n\tb ", "null", "10", "no", "👩‍💻\u2028x", "---\n", "\n\n x\n", "#", "\ufeffa", "\x85"]
)
ENTRIES = st.builds(CommentEntry, by=st.just("person:ann"), at=st.just("2026-01-19T10:30:00Z"), text=WORDS)
ANCHORS = st.builds(
    Anchor,
    document=st.just("tasks.md"),
    quote=WORDS,
    before=WORDS,
    after=WORDS,
    heading=st.lists(WORDS, max_size=3).map(tuple),
    line=st.integers(1, 9999),
    column=st.integers(1, 9999),
)
COMMENTS = st.builds(
    Comment,
    id=st.just("K1"),
    anchor=ANCHORS,
    severity=st.sampled_from(CommentSeverity),
    state=st.sampled_from(CommentState),
    made=st.just("sha256:1"),
    thread=st.lists(ENTRIES, min_size=1, max_size=3).map(tuple),
)


@given(COMMENTS)
def test_any_text_round_trips(comment: Comment) -> None:
    assert comments.parse_comments(comments.render_comments([comment])) == (comment,)
