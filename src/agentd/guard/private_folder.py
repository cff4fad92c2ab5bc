"""The guard's own place in the local room, which an agent can delete or replace like any other folder."""

import os
import stat
from pathlib import Path


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """None: there is no such folder."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def clear_folder(top: Path, folder: Path) -> None:
    """An empty folder. What stands in its place, or in the way to it, is moved aside."""
    clear_path(top, folder)
    if os.path.lexists(folder):
        _aside(folder)
    folder.mkdir(parents=True)


def clear_path(top: Path, folder: Path) -> None:
    """No link, nor anything else that is no folder, is left on the way from `top`."""
    while in_the_way := find_obstacle(top, folder):
        _aside(in_the_way)


def find_obstacle(top: Path, folder: Path) -> Path | None:
    """The first thing on the way from `top` that is no folder."""
    ways = [folder, *folder.parents]
    below = reversed(ways[: ways.index(top)] if top in ways else [])
    return next((one for one in below if os.path.lexists(one) and folder_identity(one) is None), None)


def _aside(path: Path) -> None:
    os.rename(path, path.with_name(f"{path.name}.{os.urandom(4).hex()}"))
