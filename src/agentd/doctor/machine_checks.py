"""What agentd stands on: Python, git, and the user's own folder, where trust is kept."""

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentd import __version__
from agentd.agents import find_program
from agentd.doctor import program_probe
from agentd.doctor.report import MACHINE_SECTION, DoctorRow, DoctorState
from agentd.project import git, user_config_file

_OLDEST_GIT = (2, 30)


def machine_rows(environ: Mapping[str, str]) -> Iterator[DoctorRow]:
    yield DoctorRow(
        MACHINE_SECTION,
        "agentd",
        DoctorState.OK,
        f"{__version__}, with Python {platform.python_version()} ({sys.executable})",
    )
    yield _git(environ)
    yield _home(environ)


def _git(environ: Mapping[str, str]) -> DoctorRow:
    program = find_program("git", environ.get("PATH", ""))
    if program is None:
        return DoctorRow(MACHINE_SECTION, "git", DoctorState.PROBLEM, "it is in no folder of PATH", "install git")
    answer = program_probe.probe_program((program, "--version"), env=git.environment(), cwd=Path("/"))
    version = re.search(r"(\d+)\.(\d+)[\w.]*", answer.out)
    if answer.failure or not version:
        words = answer.failure or f"its version cannot be read: {answer.out[:100]}"
        return DoctorRow(MACHINE_SECTION, "git", DoctorState.PROBLEM, f"{program}: {words}", "install git anew")
    if (int(version[1]), int(version[2])) < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        return DoctorRow(
            MACHINE_SECTION, "git", DoctorState.NOTE, f"{version[0]} is old", f"update it to {oldest} or newer"
        )
    return DoctorRow(MACHINE_SECTION, "git", DoctorState.OK, f"{version[0]} ({program})")


def _home(environ: Mapping[str, str]) -> DoctorRow:
    file = user_config_file(environ)
    if file is None:
        return DoctorRow(
            MACHINE_SECTION,
            "home",
            DoctorState.PROBLEM,
            "this process has no home folder",
            "set HOME (or XDG_CONFIG_HOME)",
        )
    return writable_row(MACHINE_SECTION, "home", file.parent)


def writable_row(about: str, name: str, *folders: Path) -> DoctorRow:
    """The first one is named; each must be one where files can be made. Nothing is written to find out."""
    for folder in folders:
        if why := _obstacle(folder):
            return DoctorRow(about, name, DoctorState.PROBLEM, why, "mend that, or agentd cannot write there")
    return DoctorRow(about, name, DoctorState.OK, f"{folders[0]} can be written")


def _obstacle(folder: Path) -> str | None:
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    try:
        if not there.is_dir():
            return f"{there} is no folder"
        if not os.access(there, os.W_OK | os.X_OK):
            return f"you may not write in {there}"
        return None if os.statvfs(there).f_bavail else f"no space is left where {there} is"
    except OSError as error:
        return f"{there}: {error.strerror}"
