"""What happens meanwhile, told to the open pages: a document was written, a run took a step, a question waits."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from watchfiles import awatch

from agentd.project import Project, git

_PULSE = 15  # seconds between two signs of life of a stream on which nothing happens
_SOONEST, _LATEST = 0.1, 30.0  # seconds until the files are looked at again where that failed; longer each time
_BEHIND = 200  # happenings that a page may not have taken yet; it looks at everything anew anyway
_ROOM = {"journal": "run", "inbox": "run", "outcomes": "run"}  # folders of the local room, and what they tell


@dataclass(frozen=True, slots=True)
class LiveChange:
    """`what`: the documents of the change that were written; none: its run took a step."""

    change: str
    what: tuple[str, ...] = ()

    def line(self) -> str:
        return f"event: {'changed' if self.what else 'run'}\ndata: {json.dumps([self.change, *self.what])}\n\n"


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """Whether the files are watched; what happened while they were not, nobody was told."""

    is_deaf: bool
    change: str = ""

    def line(self) -> str:
        return f"event: {'deaf' if self.is_deaf else 'hearing'}\ndata: {{}}\n\n"


class FileWatcher:
    """One look at the files for all pages."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._listening: set[asyncio.Queue[LiveChange | WatchStatus]] = set()
        self._is_deaf = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def listen(self, change: str) -> AsyncIterator[str]:
        """Of one change, or of all; a line at once, so that the page knows that it is heard."""
        queue: asyncio.Queue[LiveChange | WatchStatus] = asyncio.Queue(_BEHIND)
        self._listening.add(queue)
        try:
            yield ": here\n\n"
            if self._is_deaf:
                yield WatchStatus(True).line()
            while True:
                try:
                    moved = await asyncio.wait_for(queue.get(), _PULSE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if "" in (change, moved.change) or change == moved.change:
                    yield moved.line()
        finally:
            self._listening.discard(queue)

    async def _run(self) -> None:
        """For as long as there are pages: whatever goes wrong is tried again, and told if it lasts."""
        pause = _SOONEST
        while True:
            try:
                async with contextlib.aclosing(self._look()) as looks:
                    async for found in looks:
                        pause = _SOONEST
                        self._hear(is_deaf=False)
                        self._tell(found)
            except Exception:  # a limit of the system, a git that fails: all of it may pass
                self._hear(is_deaf=pause > _SOONEST)  # once is no more than a tree that went away just now
                pause = min(2 * pause, _LATEST)
            await asyncio.sleep(pause)

    async def _look(self) -> AsyncGenerator[set[str]]:
        """What was written, or nothing as a sign that it is watched; until there is another work tree."""
        trees = await asyncio.to_thread(self._trees)
        stop = asyncio.Event()
        async for found in awatch(
            *self._paths(trees), stop_event=stop, debounce=300, step=50, rust_timeout=2000, yield_on_timeout=True
        ):
            yield {path for _, path in found}
            if await asyncio.to_thread(self._trees) != trees:
                stop.set()

    def _hear(self, is_deaf: bool) -> None:
        if is_deaf is not self._is_deaf:
            self._is_deaf = is_deaf
            self._put(WatchStatus(is_deaf))

    def _trees(self) -> list[str]:
        return [tree.path for tree in git.worktrees(self._project.repo)]

    def _paths(self, trees: Iterable[str]) -> list[Path]:
        rooms = [Path(self._project.local_state_path(name)) for name in _ROOM]
        for room in rooms:
            room.mkdir(parents=True, exist_ok=True)
        changes = [self._project.changes_in(tree).parent for tree in trees]
        return [*rooms, *(path for path in changes if path.is_dir())]

    def _tell(self, paths: Iterable[str]) -> None:
        documents: dict[str, set[str]] = {}
        for path in paths:
            for change, name in self._meant(path):
                documents.setdefault(change, set()).update({name} - {""})
        for change, names in documents.items():
            self._put(LiveChange(change, tuple(sorted(names))))

    def _put(self, one: LiveChange | WatchStatus) -> None:
        for queue in self._listening:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait(one)

    def _meant(self, path: str) -> Iterable[tuple[str, str]]:
        """The change that a path belongs to, and its document there; an empty name is the run's doing."""
        parts = Path(os.path.relpath(path, self._project.local_state_path())).parts
        if parts[0] in _ROOM and len(parts) > 1:
            yield parts[1].removesuffix(".jsonl").removesuffix(".json"), ""
            return
        parts = Path(path).parts
        for number in range(len(parts) - 3, 0, -1):
            if parts[number : number + 2] == ("agentd", "changes"):
                name = "/".join(parts[number + 3 :])
                if not parts[-1].startswith("."):
                    yield parts[number + 2], name
                return


def live_routes(watch: FileWatcher) -> list[Route]:
    async def events(request: Request) -> StreamingResponse:
        stream = watch.listen(request.query_params.get("change", ""))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return [Route("/events", events)]
