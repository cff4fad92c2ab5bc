"""agentd as a process of its own that dies of -9 at a chosen write: just before the file gets or loses its name there,
or just after. At write 0 it never does. Its agents' server is the quick one."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentd.cli import app
from quick_server import stand_in


def main(moment: str, dies_at: int, below: str, arguments: list[str]) -> int:
    """Only what happens below that folder is counted."""
    seen = 0
    sys.executable = str(stand_in(Path(os.environ["HOME"])))

    def mortal(change: Callable[..., None], named: int) -> Callable[..., None]:
        def changed(*given: Any, **more: Any) -> None:
            nonlocal seen
            seen += str(given[named]).startswith(below)
            is_it = seen == dies_at and str(given[named]).startswith(below)
            if is_it and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            change(*given, **more)
            if is_it:
                os.kill(os.getpid(), signal.SIGKILL)

        return changed

    os.replace = mortal(os.replace, 1)
    os.unlink = mortal(os.unlink, 0)
    sys.argv = ["agentd", *arguments]
    return app.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
