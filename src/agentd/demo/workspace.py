"""The demo's folder: the sample project, and a separate home so nothing of the user's is touched."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.domain import DEMO_PART
from agentd.project import current_directory

_PATIENCE = (2.0, 10.0, 10.0)  # seconds to wait after Ctrl-C, after terminate, after kill


@dataclass(frozen=True)
class ChildResult:
    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return (self.out + self.err).strip()


def show_command(*arguments: str, folder: Path | None = None) -> ChildResult:
    """Run an agentd command visibly, with its live view. It has no stdin, so it asks nothing."""
    child = subprocess.Popen(
        _command(arguments), stdin=subprocess.DEVNULL, cwd=folder, env={**os.environ, DEMO_PART: "1"}
    )
    try:
        return ChildResult(child.wait(), "", "")
    except BaseException:
        _end(child)
        raise


def capture_command(*arguments: str) -> ChildResult:
    """Run an agentd command and capture its output."""
    return _kept(_command(arguments))


def run_python(*arguments: str) -> ChildResult:
    """Run this Python in the project, as the person would."""
    return _kept((sys.executable, *arguments))


def _command(arguments: tuple[str, ...]) -> tuple[str, ...]:
    # -P: do not import the project's `agentd/` folder.
    return sys.executable, "-P", "-m", "agentd", *arguments


def _kept(command: tuple[str, ...]) -> ChildResult:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    return ChildResult(done.returncode, done.stdout, done.stderr)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child. Ctrl-C reaches it as well; a signal to us alone does not."""
    for ask, patience in zip((None, child.terminate, child.kill), _PATIENCE, strict=True):
        if ask:
            ask()
        try:
            child.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


# Variables that could point git or agentd to the user's own files.
_LEADING = ("GIT_", "XDG_", "AGENTD_")


@dataclass(frozen=True)
class DemoWorkspace:
    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "tally"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def git_config(self) -> Path:
        return self.home / ".gitconfig"


def demo_environment(place: DemoWorkspace, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the demo's processes. This Python runs the sample's checks, even if PATH has none."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_LEADING)}
    path = os.pathsep.join(filter(None, (os.path.dirname(sys.executable), environ.get("PATH"))))
    own = {"HOME": str(place.home), "GIT_CONFIG_GLOBAL": str(place.git_config), "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **own, "PATH": path}


@contextmanager
def inside_workspace(place: DemoWorkspace) -> Iterator[None]:
    """Run this process in the sample project, with the demo's own home."""
    before, stood = dict(os.environ), current_directory()
    for folder in (place.project, place.home):
        folder.mkdir(parents=True, exist_ok=True)
    _become(demo_environment(place, before))
    os.chdir(place.project)
    try:
        yield
    finally:
        os.chdir(stood)
        _become(before)


def _become(environ: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environ):
        del os.environ[name]
    os.environ.update(environ)
