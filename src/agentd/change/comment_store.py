"""Comments of people in a change's folder, also while a run is active: under a lock of their own.

While an agent's call is under way the version that counts lies in the local room, beside the one in the folder: it
tells the guard what people wrote meanwhile, and what an agent did.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentd.change.folder import STATE_FILE, Change, document_hash, is_regular_file, readable_documents
from agentd.documents import (
    COMMENTS_FILE,
    Anchor,
    Comment,
    CommentEntry,
    CommentSeverity,
    CommentState,
    Finding,
    anchor_selection,
    current_findings,
    decode_text,
    parse_comments,
    render_comments,
    resolve_comments,
)
from agentd.domain import ChangeNotFound, Refusal, StateError, UsageError, clock, events
from agentd.storage import files, write_lock

LENGTH = 20_000  # characters of one entry


class CommentChanged(Refusal):
    """`text` is what the entry says now."""

    def __init__(self, comment_id: str, text: str) -> None:
        super().__init__(f"{comment_id} was edited elsewhere meanwhile", "take over what it says now, then edit that")
        self.text = text


def read_comments(change: Change) -> tuple[Comment, ...]:
    """As they are written; `seen` says how they stand."""
    return _parsed(change, _bytes(change))


def current_comments(change: Change) -> tuple[Comment, ...]:
    """As they are to be shown: by their own findings, and no others."""
    found = read_comments(change)
    return resolve_comments(found, _findings(change)) if any(one.finding for one in found) else found


def comment_anchor(
    change: Change, document: str, quote: str, before: str = "", after: str = "", line: int = 1
) -> Anchor:
    """The place of what a reader has selected in a document."""
    if document not in readable_documents(change.folder):
        known = ", ".join(readable_documents(change.folder)) or "none yet"
        raise UsageError(f"{change.id} has no document {document}", f"these can be commented: {known}")
    text = decode_text(files.read(change.folder / document), document)
    anchor = anchor_selection(document, text, quote, before, after, line)
    if anchor is None:
        raise Refusal(f"the text that was selected is not in {document}", "read the document again, then select")
    return anchor


def add_comment(
    change: Change, anchor: Anchor, text: str, by: str, severity: CommentSeverity = CommentSeverity.SHOULD
) -> Comment:
    """A new thread; its text may still be empty."""
    made = document_hash(change.folder / anchor.document)
    entry = _entry(text, by)

    def with_new(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        last = max((one.number for one in old), default=0)
        number = 1 + max(last, _last(change))
        files.write(_counter(change), str(number).encode())
        return (*old, Comment(f"K{number}", anchor, severity, CommentState.OPEN, made, (entry,)))

    return _changed(change, with_new)[-1]


def reply_to_comment(change: Change, comment_id: str, text: str, by: str) -> Comment:
    entry = _entry(text, by)
    return _with(change, comment_id, lambda old: replace(old, thread=(*old.thread, entry)))


def edit_comment(change: Change, comment_id: str, number: int, text: str, by: str, was: str | None = None) -> Comment:
    """Other words for the number-th entry of a thread, from 0; people change their own only.

    `was`: the words that they had before them; None where nobody says.
    """
    entry = _entry(text, by)

    def edited(old: Comment) -> Comment:
        if not 0 <= number < len(old.thread):
            raise Refusal(f"{old.id} has no entry {number}", f"it has {len(old.thread)}, counted from 0")
        if old.thread[number].by != by:
            raise Refusal(f"these words of {old.id} are those of {old.thread[number].by}", "reply to them")
        now = old.thread[number].text
        if _plain(now) == _plain(text):
            return old if now == text else old.with_text(number, text, entry.at)
        if was is not None and _plain(was) != _plain(now):
            raise CommentChanged(old.id, now)
        if not text.strip():
            raise UsageError(f"{old.id} would have no words", "resolve it, or remove it while it is yours alone")
        return old.with_text(number, text, entry.at)

    return _with(change, comment_id, edited)


def resolve_comment(change: Change, comment_id: str, by: str) -> Comment:
    """A finding that it became is withdrawn by the next command that takes up edits."""
    _check_person(by)
    return _with(change, comment_id, lambda old: replace(old, state=CommentState.RESOLVED, resolved_by=by))


def reopen_comment(change: Change, comment_id: str, by: str) -> Comment:
    """A finding that is settled stays so: the comment becomes a new one."""
    _check_person(by)
    is_settled = _settled(change)

    def opened(old: Comment) -> Comment:
        finding = None if old.finding in is_settled else old.finding
        return replace(old, state=CommentState.OPEN, resolved_by=None, finding=finding)

    return _with(change, comment_id, opened)


def set_comment_severity(change: Change, comment_id: str, severity: CommentSeverity, by: str) -> Comment:
    """How much it asks for, until it is a finding."""
    _check_person(by)

    def weighed(old: Comment) -> Comment:
        if old.finding and old.severity is not severity:
            raise Refusal(f"{old.id} is the finding {old.finding} now", "regrade that where the verdict stands")
        return replace(old, severity=severity)

    return _with(change, comment_id, weighed)


def remove_comment(change: Change, comment_id: str, by: str) -> None:
    """A draft that is given up: one's own words, to which nobody said a word, and no finding yet."""
    _check_person(by)

    def without(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        one = _chosen(change, old, comment_id)
        if [entry.by for entry in one.thread] != [by]:
            raise Refusal(f"{comment_id} holds words of others, or more than one", "resolve it instead")
        if one.finding:
            raise Refusal(f"{comment_id} is the finding {one.finding} now", "resolve it instead")
        return tuple(other for other in old if other.id != comment_id)

    _changed(change, without)


def link_findings(change: Change, findings: Mapping[str, str]) -> None:
    """Say of comments which finding each becomes."""
    _changed(change, lambda old: tuple(replace(one, finding=findings.get(one.id, one.finding)) for one in old))


# ---- while an agent's call is under way


def freeze_comments(change: Change) -> None:
    """A call begins: what is in the folder counts, and what is written by us from now on."""
    path = change.folder / COMMENTS_FILE
    with comments_lock(change):
        if is_regular_file(path) or not os.path.lexists(path):
            files.write(_copy(change), _bytes(change), mode=0o600)
        else:
            unfreeze_comments(change)  # a link: it is guarded like any other


def unfreeze_comments(change: Change) -> None:
    with contextlib.suppress(OSError):  # not there, or a folder in its place: neither counts
        _copy(change).unlink()


def frozen_comments(change: Change) -> Path | None:
    """The version that counts, empty if there is to be none; None: no call is under way."""
    return _copy(change) if is_regular_file(_copy(change)) else None


@contextlib.contextmanager
def comments_lock(change: Change) -> Iterator[None]:
    """Nobody else writes comments of the change."""
    with write_lock(Path(change.project.in_room("locks", f"{change.id}.comments"))):
        yield


# ---- reading and writing


def _with(change: Change, comment_id: str, step: Callable[[Comment], Comment]) -> Comment:
    def all_with(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        _chosen(change, old, comment_id)
        return tuple(step(one) if one.id == comment_id else one for one in old)

    return _chosen(change, _changed(change, all_with), comment_id)


def _chosen(change: Change, found: Sequence[Comment], comment_id: str) -> Comment:
    for one in found:
        if one.id == comment_id:
            return one
    known = ", ".join(one.id for one in found) or "none"
    raise Refusal(f"{change.id} has no comment {comment_id}", f"there are: {known}")


def _changed(change: Change, step: Callable[[tuple[Comment, ...]], tuple[Comment, ...]]) -> tuple[Comment, ...]:
    """Read, change and write as one. What counts is written first: killed in between, the guard puts it there."""
    with comments_lock(change):
        if not (change.folder / STATE_FILE).is_file():
            raise ChangeNotFound(f"{change.id} is no longer in {change.folder}")
        files.remove_leftovers(change.folder / COMMENTS_FILE)
        base = _base(change)
        old = _parsed(change, base)
        new = step(old)
        if new == old and base == _bytes(change):
            return new
        data = _as_bytes(new)
        if frozen_comments(change):
            files.write(_copy(change), data, mode=0o600)
        files.write(change.folder / COMMENTS_FILE, data)
    return new


def _base(change: Change) -> bytes:
    """What a new version is made from: during a call not what its agent may have written."""
    found, copy = _bytes(change), frozen_comments(change)
    if copy is None or not change.active_run():
        return found
    counts = files.read(copy)
    if found != counts:
        _tell_apart(change, found)
    return counts


def _tell_apart(change: Change, found: bytes) -> None:
    kept = Path(change.project.in_room("kept", change.id, clock.new_run_id(), COMMENTS_FILE))
    files.write(kept, found, mode=0o600)
    words = f"{COMMENTS_FILE} was changed during an agent's call, and put back; a copy: {kept}"
    change.journal().append(events.WarningIssued(code="put-back", message=words))


def _bytes(change: Change) -> bytes:
    """Empty: there is none."""
    path = change.folder / COMMENTS_FILE
    if not os.path.lexists(path):
        return b""
    if not is_regular_file(path):
        raise StateError(f"{path} is a link, or no file at all", f"git log -p -- {path}")
    return files.read(path)


def _parsed(change: Change, data: bytes) -> tuple[Comment, ...]:
    path = change.folder / COMMENTS_FILE
    hint = f"mend it by hand, or take an older one: git log -p -- {path}"
    try:
        return parse_comments(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StateError(f"{COMMENTS_FILE} line {line}: this is not UTF-8 text ({path})", hint) from None
    except StateError as error:
        raise StateError(f"{error.message} ({path})", hint) from None


def _as_bytes(new: Sequence[Comment]) -> bytes:
    """Read back before it may replace what is there."""
    text = render_comments(new)
    try:
        data = text.encode()
        is_same = parse_comments(text) == tuple(new)
    except (UnicodeError, StateError):
        is_same = False
    if not is_same:
        raise UsageError(f"this cannot be kept in {COMMENTS_FILE}", "leave out what is no plain text")
    return data


def _entry(text: str, by: str) -> CommentEntry:
    _check_person(by)
    if len(text) > LENGTH:
        raise UsageError(f"a comment has at most {LENGTH} characters, not {len(text)}", "say it in a document")
    return CommentEntry(by, clock.now(), text)


def _check_person(by: str) -> None:
    if not by.startswith("person:") or not by.removeprefix("person:").strip():
        raise UsageError(f"only a person comments, not {by!r:.60}", "say who as person:<name>")


def _settled(change: Change) -> set[str]:
    """The findings that are closed, by the last word on each."""
    return {one.id for one in _findings(change) if not one.state.is_open}


def _findings(change: Change) -> tuple[Finding, ...]:
    """All of the change, those that wait for a record among them."""
    return (*current_findings(change.records()), *change.read().findings)


def _plain(text: str) -> str:
    """As a browser tells it: other ends of lines, and nothing around."""
    return text.replace("\r\n", "\n").strip()


def _copy(change: Change) -> Path:
    return Path(change.project.in_room("comments", f"{change.id}.yaml"))


def _counter(change: Change) -> Path:
    """The last number that was given: one that was taken out by hand is not given again."""
    return Path(change.project.in_room("comments", f"{change.id}.last"))


def _last(change: Change) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(_counter(change).read_bytes())
    return 0
