"""Live updates for open pages: a document was written, a run made progress, a question waits for an answer."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from pathlib import Path

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.routing import Route
from watchfiles import awatch

from agentd.project import Project, git

_HEARTBEAT = 15  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0  # seconds before watching is tried again; doubled each time
_QUEUE_SIZE = 200  # events; a page that falls further behind misses some, and reloads everything anyway
_RUN_FOLDERS = ("journal", "inbox", "outcomes")  # in the local state; written when a run makes progress


class FileWatcher:
    """Watches the files of a project once for all pages."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._queues: set[asyncio.Queue[tuple[str, ServerSentEvent]]] = set()
        self._is_watching = True

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def listen(self, change: str) -> AsyncIterator[ServerSentEvent]:
        """Yield the events of one change, or of all for an empty id. The first item says that the stream is open."""
        queue: asyncio.Queue[tuple[str, ServerSentEvent]] = asyncio.Queue(_QUEUE_SIZE)
        self._queues.add(queue)
        try:
            yield ServerSentEvent(comment="open")
            if not self._is_watching:
                yield _watch_event(False)
            while True:
                about, event = await queue.get()
                if "" in (change, about) or change == about:
                    yield event
        finally:
            self._queues.discard(queue)

    async def _run(self) -> None:
        """Watch until cancelled. After a failure, try again, and notify the pages if it fails twice in a row."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with contextlib.aclosing(self._changed_paths()) as batches:
                    async for paths in batches:
                        pause = _FIRST_PAUSE
                        self._set_watching(True)
                        self._send_changes(paths)
            except Exception:  # a system limit, a failing git: may be temporary
                self._set_watching(pause == _FIRST_PAUSE)  # a single failure is often a worktree that was just removed
                pause = min(2 * pause, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _changed_paths(self) -> AsyncGenerator[set[str]]:
        """Yield the written paths, or an empty set as a heartbeat. End when the list of worktrees changes."""
        trees = await asyncio.to_thread(self._trees)
        stop = asyncio.Event()
        async for found in awatch(
            *self._watched_folders(trees),
            stop_event=stop,
            debounce=300,
            step=50,
            rust_timeout=2000,
            yield_on_timeout=True,
        ):
            yield {path for _, path in found}
            if await asyncio.to_thread(self._trees) != trees:
                stop.set()

    def _set_watching(self, is_watching: bool) -> None:
        if is_watching is not self._is_watching:
            self._is_watching = is_watching
            self._send("", _watch_event(is_watching))

    def _trees(self) -> list[str]:
        return [tree.path for tree in git.worktrees(self._project.repo)]

    def _watched_folders(self, trees: Iterable[str]) -> list[Path]:
        local = [Path(self._project.local_state_path(name)) for name in _RUN_FOLDERS]
        for folder in local:
            folder.mkdir(parents=True, exist_ok=True)
        changes = [self._project.changes_in(tree).parent for tree in trees]
        return [*local, *(path for path in changes if path.is_dir())]

    def _send_changes(self, paths: Iterable[str]) -> None:
        documents: dict[str, set[str]] = {}
        for path in paths:
            for change, name in self._parse_path(path):
                documents.setdefault(change, set()).update({name} - {""})
        for change, names in documents.items():
            event = "changed" if names else "run"
            self._send(change, ServerSentEvent(json.dumps([change, *sorted(names)]), event=event))

    def _send(self, change: str, event: ServerSentEvent) -> None:
        for queue in self._queues:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait((change, event))

    def _parse_path(self, path: str) -> Iterable[tuple[str, str]]:
        """Yield the change a path belongs to and its document; the name is empty for files a run writes."""
        parts = Path(os.path.relpath(path, self._project.local_state_path())).parts
        if parts[0] in _RUN_FOLDERS and len(parts) > 1:
            yield parts[1].removesuffix(".jsonl").removesuffix(".json"), ""
            return
        parts = Path(path).parts
        for number in range(len(parts) - 3, 0, -1):
            if parts[number : number + 2] == ("agentd", "changes"):
                name = "/".join(parts[number + 3 :])
                if not parts[-1].startswith("."):
                    yield parts[number + 2], name
                return


def _watch_event(is_watching: bool) -> ServerSentEvent:
    """Return the event that says whether files are watched; changes made while they are not are lost."""
    return ServerSentEvent("{}", event="watched" if is_watching else "unwatched")


def live_routes(watcher: FileWatcher) -> list[Route]:
    async def events(request: Request) -> EventSourceResponse:
        return EventSourceResponse(watcher.listen(request.query_params.get("change", "")), ping=_HEARTBEAT)

    return [Route("/events", events)]
