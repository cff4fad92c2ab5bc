"""A project and a user's home in a temporary folder, for the tests of agentd.project.config."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentd.domain.errors import BadConfig
from agentd.project.config.loader import load_config
from agentd.project.config.settings import Config

EXAMPLE = Path(__file__).with_name("notes-service.toml")


class Room:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project_file = folder / "project" / "agentd" / "config.toml"
        self.user_file = self.home / ".config" / "agentd" / "config.toml"
        for file in (self.project_file, self.user_file):
            file.parent.mkdir(parents=True)

    def load(
        self,
        project: str | bytes = "",
        *,
        user: str = "",
        environ: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
    ) -> Config:
        self.project_file.write_bytes(project.encode() if isinstance(project, str) else project)
        self.user_file.write_text(user)
        return load_config(self.project_file, flags=flags, environ={"HOME": str(self.home), **(environ or {})})

    def problems(
        self,
        project: str | bytes = "",
        *,
        user: str = "",
        environ: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
    ) -> list[str]:
        with pytest.raises(BadConfig) as caught:
            self.load(project, user=user, environ=environ, flags=flags)
        assert caught.value.exit_code == 3
        return caught.value.message.split("\n")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)
