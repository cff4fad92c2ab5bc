"""What pages have shown, so a decision made on an outdated page can be answered with what changed since.

Only the running server keeps it: texts in memory, code trees in a temporary folder of git objects.
"""

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from agentd.change import Change, cached_text, document_bytes, plan_files
from agentd.domain import AgentdError
from agentd.engine import CODE_TREE_KEY, FINDINGS_KEY, VERDICTS_KEY, current_reading, open_findings_text
from agentd.project import Project, git
from agentd.storage import files, read_only
from agentd.web import code_view
from agentd.web.code_view import FileDiff
from agentd.web.markup import word_diff

_MOST_TEXT = 64 * 1024 * 1024  # bytes of text
_MOST_CODE = 512 * 1024 * 1024  # bytes of git objects
_texts: OrderedDict[str, bytes] = OrderedDict()  # least recently shown first
_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}  # git objects, by git folder
_lock = threading.Lock()
_FILES = 100  # in a code diff; for more, the code page is better


@contextmanager
def page_request(project: Project) -> Iterator[None]:
    """Answer a request without writing to the repository or its git folder, reading state and configuration once."""
    with read_only(), git.new_objects_in(_object_folder(project.repo.common)):
        yield


def displayed_state(change: Change) -> dict[str, str]:
    """Return what a page is about to show; it is sent back with a decision."""
    with page_request(change.project):
        for path in plan_files(change.folder):
            with suppress(OSError, AgentdError):
                remember_text(document_bytes(path))
        return {**current_reading(change), **displayed_findings(change)}


def displayed_findings(change: Change) -> dict[str, str]:
    """Return the part of the displayed state that comments change."""
    return {FINDINGS_KEY: remember_text(open_findings_text(change).encode())}


def remember_text(data: bytes) -> str:
    """Keep a displayed text and return its hash."""
    digest = files.hash_bytes(data)
    with _lock:
        _texts[digest] = data
        _texts.move_to_end(digest)
        while sum(map(len, _texts.values())) > _MOST_TEXT:
            _texts.popitem(last=False)
    return digest


def displayed_text(change: Change, digest: str) -> str | None:
    """Return the text with this hash, or None if neither a page nor a judge has seen it here."""
    with _lock:
        data = _texts.get(digest)
    return cached_text(change, digest) if data is None else data.decode("utf-8", "replace")


def forget() -> None:
    """Remove the temporary folders when the server ends."""
    while _folders:
        _folders.popitem()[1].cleanup()


def _object_folder(git_folder: str) -> str:
    with _lock:
        folder = _folders.get(git_folder)
        if folder is None:
            folder = _folders[git_folder] = tempfile.TemporaryDirectory(prefix="agentd-", ignore_cleanup_errors=True)
        path = Path(folder.name)
        alternates = path / "info" / "alternates"
        if sum(file.lstat().st_size for file in path.glob("??/*")) > _MOST_CODE:
            shutil.rmtree(path, ignore_errors=True)
        if not alternates.is_file():
            alternates.parent.mkdir(parents=True, exist_ok=True)
            alternates.write_bytes(f"{git_folder}/objects\n".encode(errors="surrogateescape"))
        return folder.name


# ---- changes since then


@dataclass(frozen=True, slots=True)
class StaleItem:
    """`is_told`: the complete difference is shown, so it can be decided on; otherwise `href` leads to it."""

    name: str
    href: str
    html: Markup | None = None
    files: tuple[FileDiff, ...] = ()
    is_verdict: bool = False

    @property
    def is_told(self) -> bool:
        return bool(self.html) or (bool(self.files) and not any(one.left_out for one in self.files))


def stale_items(
    change: Change, changed: Iterable[str], shown: Mapping[str, str], now: Mapping[str, str]
) -> list[StaleItem]:
    """Return an item for each changed name that still exists; removed ones can only be named."""
    start = f"/changes/{change.id}"
    with page_request(change.project):
        return [_stale_item(change, start, name, shown.get(name, ""), now[name]) for name in changed if name in now]


def _stale_item(change: Change, start: str, name: str, old: str, new: str) -> StaleItem:
    if name in VERDICTS_KEY:
        return StaleItem(name, f"{start}/rounds", is_verdict=True)
    if name == CODE_TREE_KEY:
        return StaleItem(name, f"{start}/code", files=_stale_code(change, old, new))
    if name == FINDINGS_KEY:
        return StaleItem(name, start, html=_text_between(change, old, new))
    return StaleItem(name, f"{start}/read/{name}", html=_text_between(change, old, new))


def _text_between(change: Change, old: str, new: str) -> Markup | None:
    """Return a short diff, as the rest was already read; None if what was shown was not kept on this machine."""
    before, after = displayed_text(change, old), displayed_text(change, new)
    if before is None or after is None:
        return None
    return Markup(word_diff.elided_html(word_diff.diff_words(before, after)))  # noqa: S704 - escaped there


def _stale_code(change: Change, old: str, new: str) -> tuple[FileDiff, ...]:
    """Return the code diff, or () if git did not keep what was shown or the diff is too large."""
    try:
        found = code_view.code_difference(change, old, new)
    except AgentdError:
        return ()
    return found if len(found) <= _FILES else ()
