"""What `init` lays down in a repository. A file that is there is never touched unless asked to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd import clock, files, git
from agentd.config import Check, render_template
from agentd.terms import Role

GITIGNORE = """\
# written for each run, for the agents alone
/changes/*/GEMINI.md
/changes/*/AGENTS.md
# left by a process that was killed while it wrote
.*.tmp
"""
FOLDERS = ("specs", "changes", "archive")


@dataclass(frozen=True)
class Outcome:
    """The files by their path from the repository's top: written, kept, or replaced (with a copy kept)."""

    files: Mapping[str, str]
    copy: Path | None = None

    @property
    def changed(self) -> bool:
        return any(word != "kept" for word in self.files.values())


def lay_down(
    repo: git.Repo, root: Path, roles: Mapping[Role, str], checks: Sequence[Check], replace_config: bool
) -> Outcome:
    home = root / "agentd"
    config = render_template(root.name, roles, checks)
    wanted = {home / "config.toml": config, home / ".gitignore": GITIGNORE}
    wanted.update({home / name / ".gitkeep": "" for name in FOLDERS if not _has_files(home / name)})
    outcome: dict[str, str] = {}
    copy = None
    for path, text in wanted.items():
        name = path.relative_to(repo.top).as_posix()
        if not path.exists():
            outcome[name] = "written"
        elif path.name == "config.toml" and replace_config and path.read_bytes() != text.encode():
            copy = Path(repo.common, "agentd", "replaced", f"config-{clock.run_id()}.toml")
            files.write(copy, files.read(path))
            outcome[name] = "replaced"
        else:
            outcome[name] = "kept"
            continue
        files.write(path, text.encode())
    return Outcome(outcome, copy)


def uncommitted(repo: git.Repo, root: Path) -> bool:
    """There is something in agentd/ that git does not have yet."""
    return bool(git.run(repo.top, "status", "--porcelain", "--", str(root / "agentd")))


def commit(repo: git.Repo, root: Path) -> str:
    """Commit agentd/ and nothing else; what is staged besides stays staged."""
    home = str(root / "agentd")
    git.run(repo.top, "add", "--", home)
    git.run(repo.top, "commit", "--quiet", "--message", "Set up agentd", "--only", "--", home)
    return git.head_commit(repo.top) or ""


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
