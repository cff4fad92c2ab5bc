"""The commands in the project's files: written, brought up to date, and left alone where a person has edited them."""

from collections.abc import Collection
from pathlib import Path

from agentd.domain.errors import Refusal, SetupError
from agentd.project import git
from agentd.skills import seal
from agentd.skills.clis import CLIS, WORKFLOWS, Cli
from agentd.skills.rendering import render
from agentd.storage import files

WRITTEN, REFRESHED, KEPT = "written", "refreshed", "kept"
OURS = (WRITTEN, REFRESHED, KEPT)  # as agentd has it
_EDITED, _FOREIGN, _NOT_WRITTEN = "kept: edited", "kept: not agentd's", "not written"


def wanted(root: Path, installed: Collection[str]) -> tuple[Cli, ...]:
    """Claude Code always; another if its program is here or the project has a folder of it."""
    return tuple(
        cli
        for cli in CLIS
        if cli.name in ("claude", *installed) or any((root / folder).is_dir() for folder in cli.folders)
    )


def lay_down(repo: git.Repository, root: Path, clis: Collection[Cli]) -> dict[str, str]:
    """What became of each file, by its path from the repository's top."""
    texts = {root / cli.path(workflow): render(cli, workflow) for cli in clis for workflow in WORKFLOWS}
    return {path.relative_to(repo.top).as_posix(): _lay(root, path, text) for path, text in texts.items()}


def _lay(root: Path, path: Path, text: str) -> str:
    """One that cannot be written is told; it is no reason for set-up to fail."""
    try:
        _check_real(root, path)
        word = _word(files.read(path) if path.exists() else None, text)
        if word in (WRITTEN, REFRESHED):
            files.write(path, text.encode())
        return word
    except (Refusal, SetupError) as error:
        return f"{_NOT_WRITTEN}: {error.message}"
    except OSError as error:
        return f"{_NOT_WRITTEN}: {error.strerror or error}"


def _word(data: bytes | None, text: str) -> str:
    if data is None:
        return WRITTEN
    there = data.decode("utf-8", "replace").replace("\r\n", "\n")  # git may have checked it out that way
    if not seal.is_ours(there):
        return _FOREIGN
    if seal.is_edited(there):
        return _EDITED
    return KEPT if there == text else REFRESHED


def _check_real(root: Path, path: Path) -> None:
    """A link may lead out of the project, so agentd writes through none."""
    steps = [path, *path.parents]
    for one in reversed(steps[: steps.index(root)]):
        if one.is_symlink():
            raise Refusal(f"{one.relative_to(root)} is a symbolic link, and agentd does not write through one")
        if one.exists() and one.is_dir() is (one == path):
            raise Refusal(f"{one.relative_to(root)} is not a {'file' if one == path else 'folder'}")
