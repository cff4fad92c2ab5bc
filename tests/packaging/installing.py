"""agentd as people get it: built once for all tests, and installed by each installer into a home of its own.

The build and one download ask the index that pip knows on this machine. The installers have what was downloaded, and
no other source.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loopback import clis
from program import environment

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "vendoring", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore")
VENDOR = "src/agentd/web/static/vendor"
LEFT_OVER = (  # what use, a killed fetch and others' habits leave in a tree
    "src/agentd/__pycache__/left.cpython-311.pyc",
    f"{VENDOR}/.htmx.min.js.4711",
    f"{VENDOR}/mermaid.min.js.map",
)
_BIN = Path(sys.executable).parent
_TO_INSTALL = ("pip", "hatchling>=1.27", "editables~=0.3")  # what pipx and builds want besides what agentd needs


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name, filled by who asks first, also where several processes share the tests."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"packaging-{name}"
    done = folder.with_suffix(".done")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def tree(factory: pytest.TempPathFactory) -> Path:
    """A copy to build from, so that the real one stays as it is, with git's ignore rules and things left over."""

    def copy(folder: Path) -> None:
        for name in SOURCES:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        for name in LEFT_OVER:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()

    return once(factory, "tree", copy)


def wheel(factory: pytest.TempPathFactory) -> Path:
    source = tree(factory)
    built = once(factory, "built", lambda folder: _pip("wheel", str(source), "--no-deps", "--wheel-dir", str(folder)))
    return next(built.glob("agentd-*.whl"))


def sdist(factory: pytest.TempPathFactory) -> Path:
    source, env = tree(factory), offline(factory)
    build = (program("uv"), "build", "--quiet", "--sdist", "--out-dir")
    packed = once(factory, "packed", lambda folder: _run(*build, str(folder), str(source), env=env))
    return next(packed.glob("agentd-*.tar.gz"))


def wheel_of_sdist(factory: pytest.TempPathFactory) -> Path:
    source, env = sdist(factory), offline(factory)
    build = (program("uv"), "build", "--quiet", "--wheel", "--out-dir")
    built = once(factory, "rebuilt", lambda folder: _run(*build, str(folder), str(source), env=env))
    return next(built.glob("agentd-*.whl"))


def by_pip(factory: pytest.TempPathFactory) -> Path:
    """The program, in a virtual environment."""
    file, env = wheel(factory), offline(factory)

    def install(home: Path) -> None:
        _run(sys.executable, "-m", "venv", str(home / "venv"), env=env)
        own = {**env, "HOME": str(home)}
        _run(str(home / "venv" / "bin" / "pip"), "install", "--quiet", str(file), env=own)

    return once(factory, "by-pip", install) / "venv" / "bin" / "agentd"


def by_pipx(factory: pytest.TempPathFactory) -> Path:
    """Beside uv, pipx would leave the work to it."""
    file, env = wheel(factory), {**offline(factory), "PIPX_DEFAULT_BACKEND": "pip"}
    argv = (program("pipx"), "install", "--quiet", str(file))
    home = once(factory, "by-pipx", lambda home: _run(*argv, env={**env, "HOME": str(home)}))
    return home / ".local" / "bin" / "agentd"


def by_uv(factory: pytest.TempPathFactory) -> Path:
    file, env = wheel(factory), offline(factory)
    argv = (program("uv"), "tool", "install", "--quiet", str(file))
    home = once(factory, "by-uv", lambda home: _run(*argv, env={**env, "HOME": str(home)}))
    return home / ".local" / "bin" / "agentd"


INSTALLERS = {"pip": by_pip, "pipx": by_pipx, "uv": by_uv}


def program(name: str) -> str:
    path = _BIN / name
    assert path.is_file(), f"{name} is missing beside {sys.executable}: make .venv/.ready"
    return str(path)


def offline(factory: pytest.TempPathFactory) -> dict[str, str]:
    """Nothing of the caller's, and the downloaded files as the only index."""
    file = wheel(factory)
    argv = ("download", "--dest")
    wheels = once(factory, "wheels", lambda folder: _pip(*argv, str(folder), str(file), *_TO_INSTALL))
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    uv = {"UV_NO_CONFIG": "1", "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels)}
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    home = once(factory, "home", lambda folder: None)
    return {**environment(home), **pip, **uv, **python}


def _pip(*arguments: str) -> None:
    """As it is set up on this machine."""
    with clis.outside():
        _run(sys.executable, "-m", "pip", arguments[0], "--quiet", *arguments[1:], env=dict(os.environ))


def _run(*argv: str, env: dict[str, str]) -> None:
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
