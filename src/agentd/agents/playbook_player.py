"""The scripted agent's process: play an entry of a playbook and write JSON lines to stdout.

Started as `python -P -m agentd.agents.playbook_player '{"playbook": …, "step": …}'` with the prompt on stdin. Tools are
called through the real MCP server, which starts with the first tool call. Imports little, to start quickly.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, NoReturn

from agentd.agents import playbook
from agentd.agents.failures import FailureCause
from agentd.agents.playbook import (
    DeleteAction,
    EditAction,
    ExpectAction,
    FaultAction,
    PlaybookTurn,
    SayAction,
    SpendAction,
    ToolAction,
    WaitAction,
    WriteAction,
)
from agentd.domain import AgentdError

_PROTOCOL = "2025-06-18"
_CLOSE_SECS = 60.0  # generous, for a loaded machine; a server ends when its stdin is closed
_GARBAGE = b"Segmentation fault (not really)\n{half a line\n\xff\xfe\x00\n[1, 2]\nnull\n"


class PlaybookMismatch(AgentdError):
    """The run does not match what the playbook expects."""


def main(arguments: list[str]) -> int:
    call = json.loads(arguments[0])
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    if session := call["resume"] or call["session"]:
        _emit("session", id=session)
    player = PlaybookPlayer(tuple(call["server"]), prompt)
    try:
        turn = PlaybookTurn(call["step"], call["round"], call["number"], call["attempt"])
        code = player.play(_read(call["playbook"]).find(turn))
    except AgentdError as error:
        _emit("end", cause=FailureCause.CRASHED, message=error.message, wait=None)
        code = 1
    finally:
        player.close()
    return code


def _read(path: str) -> playbook.Playbook:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise playbook.InvalidPlaybook(f"cannot read the playbook {path}: {error}") from error
    return playbook.parse_playbook(text, os.path.basename(path))


class PlaybookPlayer:
    """Play actions in the working directory."""

    def __init__(self, argv: tuple[str, ...], prompt: str) -> None:
        self._argv = argv
        self._prompt = prompt
        self._server: McpClient | None = None
        self._parts = 0

    def play(self, actions: Iterable[playbook.Action]) -> int:
        """Play the actions and return the exit code."""
        for action in actions:
            match action:
                case SayAction(text):
                    _emit("text", text=text)
                case ToolAction():
                    self._call(action)
                case WriteAction() | EditAction() | DeleteAction():
                    _emit("tool", text=_change_file(action), ok=True)
                case SpendAction():
                    self._spend(action)
                case WaitAction(seconds):
                    time.sleep(seconds)
                case ExpectAction(text):
                    if text not in self._prompt:
                        raise PlaybookMismatch(f"the prompt does not contain the expected text: {text}")
                case FaultAction():
                    return _fail(action)
        _emit("end", cause=None, message="", wait=None)
        return 0

    def close(self) -> None:
        if self._server:
            self._server.close()

    def _call(self, call: ToolAction) -> None:
        if self._server is None:
            self._server = McpClient(self._argv)
            self._server.greet()
        _emit("tool", text=call.tool, ok=None)
        refused, answer = self._server.call(call.tool, dict(call.arguments))
        first = answer.strip().partition("\n")[0]
        _emit("tool", text=f"{call.tool}: {first}" if refused else call.tool, ok=not refused)
        if refused and not call.refused:
            raise PlaybookMismatch(f"{call.tool} was refused: {first}")
        if call.refused and not refused:
            raise PlaybookMismatch(f"{call.tool} should have been refused, but the server accepted it: {first}")

    def _spend(self, spend: SpendAction) -> None:
        self._parts += 1
        tokens = {"in": spend.tokens_in, "out": spend.tokens_out, "cached": spend.tokens_cached}
        _emit("usage", part=str(self._parts), cost=spend.cost, model=spend.model, **tokens)


def _change_file(action: WriteAction | EditAction | DeleteAction) -> str:
    """Change a file in the working directory and return a description."""
    path = action.path
    try:
        match action:
            case WriteAction(text=text):
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                _write_text(path, text)
                return f"write {path}"
            case EditAction(old=old, new=new):
                with open(path, encoding="utf-8", newline="") as file:
                    text = file.read()
                if (count := text.count(old)) != 1:
                    raise PlaybookMismatch(f"edit {path}: the old text occurs {count} times, not once")
                _write_text(path, text.replace(old, new))
                return f"edit {path}"
            case DeleteAction():
                os.unlink(path)
                return f"delete {path}"
    except (OSError, UnicodeError) as error:
        raise PlaybookMismatch(f"{type(action).__name__.removesuffix('Action').lower()} {path}: {error}") from error


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _fail(fault: FaultAction) -> int:
    match fault.kind:
        case "crash":
            os.write(2, f"{fault.message or 'crashed as the playbook asks'}\n".encode())
            return fault.code
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            _hang()
        case "garbage":
            sys.stdout.buffer.write(_GARBAGE)
            sys.stdout.buffer.flush()
            return 0
        case "silent-end":
            return 0
    cause = FailureCause(fault.kind)
    _emit("end", cause=cause, message=fault.message or playbook.REPORTED[cause], wait=fault.wait)
    return 1


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


class McpClient:
    """A client for the MCP server of this call, run as a child process."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        import subprocess  # deferred: most entries need no server

        try:
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise PlaybookMismatch(f"the MCP server could not be started: {error}") from error
        self._number = 0

    def greet(self) -> None:
        about = {"name": "agentd-player", "version": "1"}
        answer = self._request("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about})
        if "error" in answer:
            raise PlaybookMismatch(f"the MCP server refused to start: {_error_message(answer)}")
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        """Return whether the call was refused, and the server's answer."""
        answer = self._request("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return True, _error_message(answer)
        result = answer["result"]
        texts = [part.get("text", "") for part in result.get("content", [])]
        return bool(result.get("isError")), "\n".join(texts)

    def tools(self) -> list[str]:
        answer = self._request("tools/list", {})
        if "error" in answer:
            raise PlaybookMismatch(f"the MCP server could not list its tools: {_error_message(answer)}")
        return [tool["name"] for tool in answer["result"]["tools"]]

    def close(self) -> None:
        """Close the server's stdin, which ends it. If it does not end, kill it."""
        import subprocess  # deferred: see above

        try:
            self._process.communicate(timeout=_CLOSE_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        assert self._process.stdout
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                raise PlaybookMismatch(f"the MCP server wrote invalid JSON: {line[:200]!r}") from None
            if message.get("id") == self._number and "method" not in message:
                return dict(message)
        raise self._ended()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self) -> PlaybookMismatch:
        return PlaybookMismatch(f"the MCP server ended with exit code {self._process.wait()}")


def _error_message(answer: dict[str, Any]) -> str:
    return str(answer["error"].get("message", "error"))


def _emit(kind: str, **data: Any) -> None:
    sys.stdout.buffer.write(json.dumps({"type": kind, **data}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
