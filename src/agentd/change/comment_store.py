"""People's comments in a change's folder. They have their own lock, so they can be edited while a run is active.

During an agent call, the authoritative copy lives in local state. The guard compares it with the file in the folder to
tell people's edits from the agent's.
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

LENGTH = 20_000  # characters per entry


class CommentChanged(Refusal):
    """Raised when an entry was edited concurrently; `text` is its current text."""

    def __init__(self, comment_id: str, text: str) -> None:
        super().__init__(
            f"{comment_id} was edited by someone else in the meantime", "load its current text and edit that"
        )
        self.text = text


def read_comments(change: Change) -> tuple[Comment, ...]:
    """Return the comments as stored; see `current_comments` for their current state."""
    return _parse(change, _read_bytes(change))


def current_comments(change: Change) -> tuple[Comment, ...]:
    """Return the comments with their state updated from the findings they became."""
    comments = read_comments(change)
    return resolve_comments(comments, _findings(change)) if any(comment.finding for comment in comments) else comments


def comment_anchor(
    change: Change, document: str, quote: str, before: str = "", after: str = "", line: int = 1
) -> Anchor:
    """Return the anchor for the text that a reader selected in a document."""
    if document not in readable_documents(change.folder):
        known = ", ".join(readable_documents(change.folder)) or "none yet"
        raise UsageError(f"{change.id} has no document {document}", f"you can comment on: {known}")
    text = decode_text(files.read(change.folder / document), document)
    anchor = anchor_selection(document, text, quote, before, after, line)
    if anchor is None:
        raise Refusal(f"{document} does not contain the selected text", "reload the document and select the text again")
    return anchor


def add_comment(
    change: Change, anchor: Anchor, text: str, by: str, severity: CommentSeverity = CommentSeverity.SHOULD
) -> Comment:
    """Start a new thread; its text may still be empty."""
    digest = document_hash(change.folder / anchor.document)
    entry = _new_entry(text, by)

    def append(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        last = max((comment.number for comment in old), default=0)
        number = 1 + max(last, _last_number(change))
        files.write(_counter_path(change), str(number).encode())
        return (*old, Comment(f"K{number}", anchor, severity, CommentState.OPEN, digest, (entry,)))

    return _update(change, append)[-1]


def reply_to_comment(change: Change, comment_id: str, text: str, by: str) -> Comment:
    entry = _new_entry(text, by)
    return _update_one(change, comment_id, lambda old: replace(old, thread=(*old.thread, entry)))


def edit_comment(change: Change, comment_id: str, number: int, text: str, by: str, was: str | None = None) -> Comment:
    """Replace the text of an entry of a thread, counted from 0. People can edit only their own entries.

    `was` is the text that the editor started from, or None if unknown.
    """
    entry = _new_entry(text, by)

    def edit(old: Comment) -> Comment:
        if not 0 <= number < len(old.thread):
            raise Refusal(f"{old.id} has no entry {number}", f"it has {len(old.thread)}, counted from 0")
        if old.thread[number].by != by:
            raise Refusal(f"this entry of {old.id} was written by {old.thread[number].by}", "reply to it instead")
        now = old.thread[number].text
        if _normalize(now) == _normalize(text):
            return old if now == text else old.with_text(number, text, entry.at)
        if was is not None and _normalize(was) != _normalize(now):
            raise CommentChanged(old.id, now)
        if not text.strip():
            raise UsageError(f"{old.id} would be empty", "resolve it, or remove it if nobody has replied")
        return old.with_text(number, text, entry.at)

    return _update_one(change, comment_id, edit)


def resolve_comment(change: Change, comment_id: str, by: str) -> Comment:
    """Resolve a comment. The next command that picks up edits withdraws the finding it became."""
    _check_person(by)
    return _update_one(change, comment_id, lambda old: replace(old, state=CommentState.RESOLVED, resolved_by=by))


def reopen_comment(change: Change, comment_id: str, by: str) -> Comment:
    """Reopen a comment. A closed finding stays closed: the comment will become a new finding."""
    _check_person(by)
    closed = {finding.id for finding in _findings(change) if not finding.state.is_open}

    def reopen(old: Comment) -> Comment:
        finding = None if old.finding in closed else old.finding
        return replace(old, state=CommentState.OPEN, resolved_by=None, finding=finding)

    return _update_one(change, comment_id, reopen)


def set_comment_severity(change: Change, comment_id: str, severity: CommentSeverity, by: str) -> Comment:
    """Set the severity of a comment that is not a finding yet."""
    _check_person(by)

    def regrade(old: Comment) -> Comment:
        if old.finding and old.severity is not severity:
            raise Refusal(f"{old.id} is now finding {old.finding}", "change the severity of the finding instead")
        return replace(old, severity=severity)

    return _update_one(change, comment_id, regrade)


def remove_comment(change: Change, comment_id: str, by: str) -> None:
    """Remove one's own comment that has no replies and is not a finding yet."""
    _check_person(by)

    def remove(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        comment = _find(change, old, comment_id)
        if [entry.by for entry in comment.thread] != [by]:
            raise Refusal(f"{comment_id} has replies or was written by someone else", "resolve it instead")
        if comment.finding:
            raise Refusal(f"{comment_id} is now finding {comment.finding}", "resolve it instead")
        return tuple(other for other in old if other.id != comment_id)

    _update(change, remove)


def link_findings(change: Change, findings: Mapping[str, str]) -> None:
    """Record which finding each comment becomes, by comment id."""
    _update(change, lambda old: tuple(replace(each, finding=findings.get(each.id, each.finding)) for each in old))


# ---- during an agent call


def freeze_comments(change: Change) -> None:
    """Keep a copy of the comments at the start of an agent call; only agentd writes to it."""
    path = change.folder / COMMENTS_FILE
    with comments_lock(change):
        if is_regular_file(path) or not os.path.lexists(path):
            files.write(_frozen_path(change), _read_bytes(change), mode=0o600)
        else:
            unfreeze_comments(change)  # a link: the guard treats it like any other file


def unfreeze_comments(change: Change) -> None:
    with contextlib.suppress(OSError):  # missing, or a folder in its place
        _frozen_path(change).unlink()


def frozen_comments(change: Change) -> Path | None:
    """Return the authoritative copy (an empty file: no comments), or None if no call is in progress."""
    path = _frozen_path(change)
    return path if is_regular_file(path) else None


@contextlib.contextmanager
def comments_lock(change: Change) -> Iterator[None]:
    """Hold the lock for writing a change's comments."""
    with write_lock(Path(change.project.local_state_path("locks", f"{change.id}.comments"))):
        yield


# ---- reading and writing


def _update_one(change: Change, comment_id: str, step: Callable[[Comment], Comment]) -> Comment:
    def update(old: tuple[Comment, ...]) -> tuple[Comment, ...]:
        _find(change, old, comment_id)
        return tuple(step(comment) if comment.id == comment_id else comment for comment in old)

    return _find(change, _update(change, update), comment_id)


def _find(change: Change, comments: Sequence[Comment], comment_id: str) -> Comment:
    for comment in comments:
        if comment.id == comment_id:
            return comment
    known = ", ".join(comment.id for comment in comments) or "none"
    raise Refusal(f"{change.id} has no comment {comment_id}", f"comments of this change: {known}")


def _update(change: Change, step: Callable[[tuple[Comment, ...]], tuple[Comment, ...]]) -> tuple[Comment, ...]:
    """Read, change and write under the lock. The frozen copy is written first, so the guard can restore from it."""
    with comments_lock(change):
        if not (change.folder / STATE_FILE).is_file():
            raise ChangeNotFound(f"{change.id} is no longer in {change.folder}")
        files.remove_leftovers(change.folder / COMMENTS_FILE)
        base = _authoritative_bytes(change)
        old = _parse(change, base)
        new = step(old)
        if new == old and base == _read_bytes(change):
            return new
        data = _encode(new)
        if frozen := frozen_comments(change):
            files.write(frozen, data, mode=0o600)
        files.write(change.folder / COMMENTS_FILE, data)
    return new


def _authoritative_bytes(change: Change) -> bytes:
    """Return the content to base an update on: during a call, never what the agent may have written."""
    current, frozen = _read_bytes(change), frozen_comments(change)
    if frozen is None or not change.active_run():
        return current
    data = files.read(frozen)
    if current != data:
        kept = Path(change.project.local_state_path("kept", change.id, clock.new_run_id(), COMMENTS_FILE))
        files.write(kept, current, mode=0o600)
        message = f"{COMMENTS_FILE} was changed during an agent call and has been restored; the changed version: {kept}"
        change.journal().append(events.WarningIssued(code="put-back", message=message))
    return data


def _read_bytes(change: Change) -> bytes:
    """Return the content of the comments file, empty if there is none."""
    path = change.folder / COMMENTS_FILE
    if not os.path.lexists(path):
        return b""
    if not is_regular_file(path):
        raise StateError(f"{path} is not a regular file", f"git log -p -- {path}")
    return files.read(path)


def _parse(change: Change, data: bytes) -> tuple[Comment, ...]:
    path = change.folder / COMMENTS_FILE
    hint = f"fix it by hand, or restore an earlier version: git log -p -- {path}"
    try:
        return parse_comments(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StateError(f"{COMMENTS_FILE} line {line}: not valid UTF-8 ({path})", hint) from None
    except StateError as error:
        raise StateError(f"{error.message} ({path})", hint) from None


def _encode(new: Sequence[Comment]) -> bytes:
    """Render the comments, and check that they can be read back."""
    text = render_comments(new)
    try:
        data = text.encode()
        is_same = parse_comments(text) == tuple(new)
    except (UnicodeError, StateError):
        is_same = False
    if not is_same:
        raise UsageError(f"this cannot be stored in {COMMENTS_FILE}", "remove everything that is not plain text")
    return data


def _new_entry(text: str, by: str) -> CommentEntry:
    _check_person(by)
    if len(text) > LENGTH:
        raise UsageError(f"a comment can have at most {LENGTH} characters, not {len(text)}", "put it in a document")
    return CommentEntry(by, clock.now(), text)


def _check_person(by: str) -> None:
    if not by.startswith("person:") or not by.removeprefix("person:").strip():
        raise UsageError(f"only a person can comment, not {by!r:.60}", "give the author as person:<name>")


def _findings(change: Change) -> tuple[Finding, ...]:
    """Return all findings of the change, including those not in a record yet."""
    return (*current_findings(change.records()), *change.read().findings)


def _normalize(text: str) -> str:
    """Undo what a browser does to text: CRLF line ends and surrounding whitespace."""
    return text.replace("\r\n", "\n").strip()


def _frozen_path(change: Change) -> Path:
    return Path(change.project.local_state_path("comments", f"{change.id}.yaml"))


def _counter_path(change: Change) -> Path:
    """Return the file with the last number used, so that the number of a deleted comment is not reused."""
    return Path(change.project.local_state_path("comments", f"{change.id}.last"))


def _last_number(change: Change) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(_counter_path(change).read_bytes())
    return 0
