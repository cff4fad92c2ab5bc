"""The tools of a run in JSON-RPC lines, without the SDK, whose import is most of a short call.

For tests that start agents by the dozen, and compare what they come to with what comes of agentd's own server.
Started as that one is: `quick_server.py --change ID --stage STAGE --token TOKEN`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from agentd.project import find_project
from agentd.tools.binding import Binding, bind
from agentd.tools.call import call
from agentd.tools.refusal import Refused
from agentd.tools.table import Stage


def stand_in(folder: Path) -> Path:
    """This Python as a program of its own, which starts the quick server where agentd's is asked for."""
    program = folder / "python"
    if not program.exists():
        real = f'exec "{sys.executable}"'
        quick = f'"-P -m agentd mcp "*) shift 4; {real} -P "{__file__}" "$@";;'
        made = folder / f"python-{os.getpid()}"
        made.write_text(f'#!/bin/sh\ncase "$*" in {quick} esac\n{real} "$@"\n')
        made.chmod(0o755)
        made.rename(program)  # whole, should two begin at once
    return program


def serve(binding: Binding) -> None:
    """Until stdin closes."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = _answer(binding, message["params"]) if message["method"] == "tools/call" else {}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def _answer(binding: Binding, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        text, is_error = call(binding, asked["name"], asked["arguments"]), False
    except Refused as refusal:
        text, is_error = str(refusal), True
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


if __name__ == "__main__":
    _, change_id, _, stage, _, token = sys.argv[1:]
    serve(bind(find_project(), change_id, Stage(stage), token))
