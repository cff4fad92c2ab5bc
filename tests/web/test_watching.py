"""What happens on disk reaches the pages, also after the files could not be watched for a while."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from agentd.change import lifecycle
from agentd.project.layout import find_project
from agentd.web.live_updates import FileWatcher
from program import PATIENCE
from scenario import Scenario

OPEN, UNWATCHED, WATCHED = ": open", "event: unwatched\r\ndata: {}", "event: watched\r\ndata: {}"


async def listen(watch: FileWatcher, change: str) -> AsyncIterator[str]:
    """What goes over the wire, without the empty lines."""
    async for event in watch.listen(change):
        yield event.encode().decode().strip()


async def until(lines: AsyncIterator[str], wanted: str) -> None:
    async with asyncio.timeout(PATIENCE):
        async for line in lines:
            if line == wanted:
                return


def written(change: str) -> str:
    return f'event: changed\r\ndata: ["{change}", "proposal.md"]'


async def is_told(watch: FileWatcher, folder: Path) -> bool:
    """A document is written again and again until the page hears of it."""
    lines = listen(watch, folder.name)
    hears = asyncio.create_task(until(lines, written(folder.name)))
    number = 0
    while not hears.done():
        number += 1
        (folder / "proposal.md").write_text(f"version {number}\n")
        await asyncio.wait([hears], timeout=1)
    await hears
    return True


def test_failed_watch_is_reported_and_resumes(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "drafted", "A plan")
    room = Path(find_project().local_state_path("inbox"))

    async def play() -> None:
        watch = FileWatcher(find_project())
        early = listen(watch, "")
        assert await anext(early) == OPEN
        room.parent.mkdir(parents=True, exist_ok=True)
        room.write_text("no folder\n")
        async with watch.running():
            await until(early, UNWATCHED)
            late = listen(watch, "drafted")
            assert [await anext(late) for _ in range(2)] == [OPEN, UNWATCHED], "a page that comes later knows too"
            room.unlink()
            await until(late, WATCHED)
            assert await is_told(watch, change.folder)

    asyncio.run(play())


def test_watch_that_fails_after_a_new_worktree_resumes(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "drafted", "A plan")
    room = Path(find_project().local_state_path("inbox"))

    async def play() -> None:
        watch = FileWatcher(find_project())
        lines = listen(watch, "")
        await anext(lines)
        async with watch.running():
            assert await is_told(watch, change.folder)
            room.rmdir()
            room.write_text("no folder\n")
            project.git("worktree", "add", "-q", "-b", "other", str(project.root.parent / "other"))
            await until(lines, UNWATCHED)
            room.unlink()
            await until(lines, WATCHED)
            assert await is_told(watch, change.folder)

    asyncio.run(play())


def test_page_of_one_change_gets_no_events_of_another(project: Scenario) -> None:
    one, other = (lifecycle.create_change(find_project(), name, "A plan") for name in ("drafted", "another"))

    async def play() -> list[str]:
        watch = FileWatcher(find_project())
        own, every = listen(watch, "drafted"), listen(watch, "")
        assert [await anext(lines) for lines in (own, every)] == [OPEN] * 2
        async with watch.running():
            assert await is_told(watch, other.folder) and await is_told(watch, one.folder)
            await until(every, written("another"))  # a page of all has it
            heard = []
            while written("drafted") not in heard:
                heard.append(await asyncio.wait_for(anext(own), PATIENCE))
        return heard

    assert "another" not in "".join(asyncio.run(play()))
