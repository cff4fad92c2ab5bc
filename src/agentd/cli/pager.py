"""Show a document in the pager on a terminal, and as it is elsewhere."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TextIO

from agentd.cli import text_table


def show_in_pager(path: Path, stream: TextIO) -> None:
    """On that stream, until the person has seen enough of it."""
    try:
        pager = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:
        pager = []  # a quote is not closed
    if stream.isatty() and pager and shutil.which(pager[0]) and path.is_file():
        subprocess.run([*pager, str(path)], stdout=stream.fileno(), check=False)
        return
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else f"{path.name} is gone.\n"
    for line in text.removesuffix("\n").split("\n"):
        stream.write(f"{text_table.strip_control(line)}\n")
    stream.flush()
