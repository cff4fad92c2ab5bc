"""What is given back, laid down as a tree of the other tool's."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from agentd.domain.errors import Refusal
from agentd.storage import files

GIVEN = "openspec/specs"


def lay(texts: Mapping[str, str], into: Path) -> None:
    """The texts as a new tree below a folder, which appears whole or not at all."""
    target = into / GIVEN
    if os.path.lexists(target):
        raise Refusal(f"{target} is there already; nothing was written", "name another folder with --into")
    temporary = into / f".{target.name}.{os.getpid()}.tmp"
    try:
        for name, text in texts.items():
            files.write(temporary.joinpath(*name.split("/"), "spec.md"), text.encode())
        files.move(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
