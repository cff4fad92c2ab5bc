"""What pages have shown, so that a decision on an old page can be answered with what changed since.

It is kept by the running server only: texts in memory, trees of code in a temporary folder of git objects.
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

_MOST_TEXT = 64 * 1024 * 1024  # bytes of texts
_MOST_CODE = 512 * 1024 * 1024  # bytes of git objects
_texts: OrderedDict[str, bytes] = OrderedDict()  # the least recently shown first
_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}  # git objects, by git folder
_lock = threading.Lock()
_FILES = 100  # of a difference in code; who changed more reads it on its own page


@contextmanager
def page_request(project: Project) -> Iterator[None]:
    """Answer a request without writing to the repository or its git folder, reading state and configuration once."""
    with read_only(), git.new_objects_in(_object_folder(project.repo.common)):
        yield


def displayed_state(change: Change) -> dict[str, str]:
    """What a page is about to show, to come back with a decision."""
    with page_request(change.project):
        for path in plan_files(change.folder):
            with suppress(OSError, AgentdError):
                remember_text(document_bytes(path))
        return {**current_reading(change), **displayed_findings(change)}


def displayed_findings(change: Change) -> dict[str, str]:
    """The part of it that comments change."""
    return {FINDINGS_KEY: remember_text(open_findings_text(change).encode())}


def remember_text(data: bytes) -> str:
    """Keep a text that is shown, and return its hash."""
    digest = files.hash_bytes(data)
    with _lock:
        _texts[digest] = data
        _texts.move_to_end(digest)
        while sum(map(len, _texts.values())) > _MOST_TEXT:
            _texts.popitem(last=False)
    return digest


def displayed_text(change: Change, digest: str) -> str | None:
    """The text with this hash, or None if neither a page nor a judge has seen it here."""
    with _lock:
        data = _texts.get(digest)
    return cached_text(change, digest) if data is None else data.decode("utf-8", "replace")


def forget() -> None:
    """Remove the temporary folders; the server ends."""
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


# ---- what changed since


@dataclass(frozen=True, slots=True)
class StaleItem:
    """`is_told`: the difference is shown completely, so that it can be decided on; otherwise read it at `href`."""

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
    """Of what is there now; what has gone can only be named."""
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
    """Short: the rest was read. None where this machine has not kept what was shown."""
    before, after = displayed_text(change, old), displayed_text(change, new)
    if before is None or after is None:
        return None
    return Markup(word_diff.elided_html(word_diff.diff_words(before, after)))  # noqa: S704 - escaped there


def _stale_code(change: Change, old: str, new: str) -> tuple[FileDiff, ...]:
    """Nothing where git has not kept what was shown, or where it is too much."""
    try:
        found = code_view.code_difference(change, old, new)
    except AgentdError:
        return ()
    return found if len(found) <= _FILES else ()
