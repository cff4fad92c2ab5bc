"""The folder in which the demo happens: the sample project, and a home so that nothing of the user's is touched."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.project import current_directory

# What would lead git or agentd to something of the user's.
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
    """For all that the demo runs. The checks of the sample are run by this Python, also where PATH has none."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_LEADING)}
    path = os.pathsep.join(filter(None, (os.path.dirname(sys.executable), environ.get("PATH"))))
    own = {"HOME": str(place.home), "GIT_CONFIG_GLOBAL": str(place.git_config), "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **own, "PATH": path}


@contextmanager
def inside_workspace(place: DemoWorkspace) -> Iterator[None]:
    """This process stands in the sample project, at home in the demo's own home."""
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
