"""The real program in a real repository, apart from the developer's own home and settings."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from program import AGENTD, CrashPoint, Program

EXAMPLE = Path(__file__).parent / "data" / "example"
PATIENCE = 300.0  # seconds that a command may take before something is wrong with it


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's but the way to programs."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
    }


@dataclass
class Box:
    """A git repository in a temporary folder, with its own home."""

    root: Path
    home: Path
    program: tuple[str, ...] = (AGENTD,)
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.env = environment(self.home)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = dev\n\temail = dev@example.invalid\n[init]\n\tdefaultBranch = main\n"
        )
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q")

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = self.run("git", *arguments, cwd=cwd)
        assert done.code == 0, f"git {arguments}: {done.err}"
        return done.out.strip()

    def agentd(
        self,
        *arguments: str,
        cwd: Path | None = None,
        timeout: float = PATIENCE,
        crash: CrashPoint | None = None,
        **env: str,
    ) -> Ran:
        return self.run(*self.program, *arguments, cwd=cwd, timeout=timeout, crash=crash, **env)

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        timeout: float = PATIENCE,
        crash: CrashPoint | None = None,
        **env: str,
    ) -> Ran:
        """Any program, without a terminal. One that does not end fails the test with what it printed so far."""
        pipe = subprocess.PIPE
        with Program(
            argv,
            cwd=cwd or self.root,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            crash=crash,
        ) as program:
            try:
                out, err = program.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                program.kill()
                printed = "\n".join(("", *program.communicate()))
                words = f"{shlex.join(argv)} has not ended after {timeout:g} s; it printed so far:{printed}"
                raise AssertionError(words) from None
        return Ran(program.returncode, out, err)

    def python(self, code: str, *arguments: str, cwd: Path | None = None) -> Ran:
        """A process of its own that uses the package."""
        return self.run(sys.executable, "-c", code, *arguments, cwd=cwd)

    def write(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str = "work", cwd: Path | None = None) -> str:
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-qm", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)
