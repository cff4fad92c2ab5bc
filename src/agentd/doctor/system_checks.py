"""Check the machine, the repository and the project: programs, write access, trust, checks and active runs."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd import __version__
from agentd.agents import (
    CLIS,
    VENDOR_OF,
    CannotStart,
    ProcessEnding,
    ProcessLimits,
    ProcessOutcome,
    Stream,
    find_program,
    run_process,
)
from agentd.doctor.report import MACHINE_SECTION, PROJECT_SECTION, DoctorRow, DoctorState, problem_row
from agentd.domain import AgentdError, Role
from agentd.project import Config, Project, TrustStatus, git, trust_states, user_config_file
from agentd.storage import active_run, interrupted_run

SECONDS = 60.0  # generous, as a CLI starts slowly on a busy machine
_OUTPUT = 1024 * 1024


@dataclass(frozen=True)
class ProbeResult:
    """The output of a program; `failure` is empty if it succeeded."""

    out: str
    errors: str
    failure: str


def probe_program(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> ProbeResult:
    """Run a program with empty input and a time limit; no process of it is left when this returns."""
    heard: dict[Stream, list[str]] = {"out": [], "err": []}

    def hear(stream: Stream, line: bytes, left_out: int) -> None:
        heard[stream].append(line.decode("utf-8", "replace"))

    bounds = ProcessLimits(wall_secs=SECONDS, idle_secs=SECONDS, output_bytes=_OUTPUT)
    try:
        outcome = run_process(argv, env=env, cwd=cwd, stdin=b"", bounds=bounds, on_line=hear)
    except CannotStart as error:
        return ProbeResult("", "", str(error))
    out, errors = ("\n".join(lines) for lines in heard.values())
    return ProbeResult(out, errors, _failure(outcome, heard["err"] or heard["out"]))


def _failure(outcome: ProcessOutcome, said: Sequence[str]) -> str:
    match outcome.ending, outcome.exit_code:
        case ProcessEnding.EXITED, 0:
            return ""
        case ProcessEnding.EXITED, code:
            last = next((line.strip() for line in reversed(said) if line.strip()), "")
            return f"it ended with exit code {code}: {last[:300]}" if last else f"it ended with exit code {code}"
        case ProcessEnding.OUTPUT, _:
            return "it printed without end"
        case _:
            return f"it did not answer within {SECONDS:g} s"


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
    answer = probe_program((program, "--version"), env=git.environment(), cwd=Path("/"))
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
    """Check that files can be created in each folder, without writing any; the row names the first one."""
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


_NAMED = 5
_OF_SHELLS = "|&;<>()$`*?[#~{!\n"
_BUILT_IN = ("cd", "test", "[", "export", "exec", "set", "true", "false", ".", "eval", "if", "for", "while")


def repository_row(repo: git.Repository, environ: Mapping[str, str]) -> DoctorRow:
    """Check the repository as git sees it: git refuses one that belongs to another user."""
    program = find_program("git", environ.get("PATH", ""))
    if program is None:
        return DoctorRow(
            PROJECT_SECTION,
            "repository",
            DoctorState.NOTE,
            f"{repo.top}; git could not be asked about it",
            "install git",
        )
    asking = (program, "-C", repo.top, "rev-parse", "--is-inside-work-tree")
    answer = probe_program(asking, env=git.environment(), cwd=Path("/"))
    if "dubious ownership" in answer.errors:
        fix = f"if you trust it: git config --global --add safe.directory {shlex.quote(repo.top)}"
        return DoctorRow(
            PROJECT_SECTION, "repository", DoctorState.PROBLEM, f"git refuses {repo.top}: another user owns it", fix
        )
    if answer.failure:
        return DoctorRow(
            PROJECT_SECTION, "repository", DoctorState.PROBLEM, answer.failure, f"git -C {shlex.quote(repo.top)} status"
        )
    if answer.out.strip() != "true":
        return DoctorRow(
            PROJECT_SECTION,
            "repository",
            DoctorState.PROBLEM,
            f"{repo.top} is bare by its own settings",
            "git worktree add",
        )
    return DoctorRow(PROJECT_SECTION, "repository", DoctorState.OK, repo.top)


def folder_rows(project: Project) -> Iterator[DoctorRow]:
    changes = project.changes_in(project.tree)
    yield writable_row(PROJECT_SECTION, "work tree", project.root, changes)
    yield writable_row(
        PROJECT_SECTION, "local room", Path(project.local_state_path()), Path(project.local_state_path("locks"))
    )


def settings_rows(project: Project, config: Config, environ: Mapping[str, str]) -> Iterator[DoctorRow]:
    yield _trust(project, config, environ)
    yield _checks(config, project, environ)
    yield from _judges(config)


def _trust(project: Project, config: Config, environ: Mapping[str, str]) -> DoctorRow:
    try:
        found = trust_states(project, config, environ)
    except AgentdError as error:
        return problem_row(PROJECT_SECTION, "trust", error)
    left = [one.item.key for one in found if one.status is not TrustStatus.TRUSTED]
    if left:
        return DoctorRow(
            PROJECT_SECTION, "trust", DoctorState.PROBLEM, f"you have not trusted {_some(left)}", "agentd trust"
        )
    return DoctorRow(
        PROJECT_SECTION, "trust", DoctorState.OK, "all of it is trusted" if found else "nothing here needs it"
    )


def _checks(config: Config, project: Project, environ: Mapping[str, str]) -> DoctorRow:
    if not config.checks:
        fix = "add one under [[checks]] in agentd/config.toml"
        return DoctorRow(PROJECT_SECTION, "checks", DoctorState.NOTE, "none, so nothing proves the code", fix)
    missing = [(check, word) for check in config.checks if (word := _missing(check.command, project, environ))]
    if missing:
        words = "; ".join(f"{check.name} needs {word}, which is not here" for check, word in missing)
        is_required = any(check.required for check, _ in missing)
        fix = "install it, or mend [[checks]] in agentd/config.toml"
        return DoctorRow(
            PROJECT_SECTION, "checks", DoctorState.PROBLEM if is_required else DoctorState.NOTE, words, fix
        )
    return DoctorRow(PROJECT_SECTION, "checks", DoctorState.OK, _some([check.name for check in config.checks]))


def _missing(command: str, project: Project, environ: Mapping[str, str]) -> str | None:
    """Return the program of a simple command if it is missing; a command that needs a shell is not checked."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    word = next((one for one in words if "=" not in one), "")
    if not word or set(command) & set(_OF_SHELLS) or word in _BUILT_IN:
        return None
    found = os.access(project.root / word, os.X_OK) if "/" in word else find_program(word, environ.get("PATH", ""))
    return None if found else word


def _judges(config: Config) -> Iterator[DoctorRow]:
    for judge, maker in VENDOR_OF.items():
        vendor = _vendor(config, judge)
        if vendor == _vendor(config, maker):
            words = f"{judge} and {maker} are both of {vendor}, so the judge only has a fresh session"
            fix = f'put an agent of another vendor there: {judge} = "…" under [roles]'
            yield DoctorRow(PROJECT_SECTION, "judges", DoctorState.NOTE, words, fix)


def _vendor(config: Config, role: Role) -> str:
    agent = config.agent_for(role)
    return CLIS[agent.kind].vendor if agent.kind in CLIS else agent.name


def run_rows(project: Project) -> Iterator[DoctorRow]:
    """Report active and interrupted runs. A lock without a process blocks nothing, as the kernel releases it."""
    rows = [row for path in _run_locks(project) if (row := _run(path))]
    yield from rows or [DoctorRow(PROJECT_SECTION, "runs", DoctorState.OK, "none is under way")]


def _run_locks(project: Project) -> list[Path]:
    try:
        return sorted(Path(project.local_state_path("locks")).glob("*.run"))
    except OSError:
        return []


def _run(path: Path) -> DoctorRow | None:
    change = path.stem
    try:
        if holder := active_run(path):
            words = f"{change} is being worked on by {holder}"
            return DoctorRow(PROJECT_SECTION, "runs", DoctorState.NOTE, words, f"wait for it, or agentd stop {change}")
        if dead := interrupted_run(path):
            return DoctorRow(
                PROJECT_SECTION,
                "runs",
                DoctorState.NOTE,
                f"the last run of {change} was cut off",
                f"to continue: {dead.command}",
            )
    except (OSError, AgentdError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return DoctorRow(
            PROJECT_SECTION,
            "runs",
            DoctorState.PROBLEM,
            f"{os.path.relpath(path)}: {why}",
            "mend that, or nothing can run",
        )
    return None


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
