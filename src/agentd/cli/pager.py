"""A document for reading: in the pager on a terminal, as it is elsewhere."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TextIO

from agentd.cli import table


def show(path: Path, stream: TextIO) -> None:
    """On that stream, until the person has seen enough of it."""
    pager = shlex.split(os.environ.get("PAGER") or "less")
    if stream.isatty() and pager and shutil.which(pager[0]):
        subprocess.run([*pager, str(path)], stdout=stream.fileno(), check=False)
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]:
        stream.write(f"{table.harmless(line)}\n")
    stream.flush()
