"""The stdio server among noise: only protocol lines on stdout, an answer after every kind of garbage, a clean end."""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hostile_session import Answer as Said
from hostile_session import check_answer, make_project, snapshot

from agentd.engine.tools.tool import Stage
from mcp_session import staged
from program import AGENTD, PATIENCE, Program
from scenario import Scenario

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "noise", "version": "1"},
}


@dataclass
class Raw:
    """A server spoken to line by line; every line it writes must be JSON-RPC."""

    process: "subprocess.Popen[bytes]"
    number: int = 0

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        return dict(message)

    def request(self, method: str, params: Any) -> dict[str, Any]:
        """Its answer; errors for garbage that was sent before may come first."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        while True:
            answer = self.line()
            if answer.get("id") == self.number:
                return answer
            refused = answer.get("result", {}).get("isError")
            assert "error" in answer or refused or "method" in answer, answer

    def call(self, tool: str, arguments: Any) -> Said:
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        said = Said(answer["result"]["content"][0]["text"], answer["result"].get("isError", False))
        check_answer(said)
        return said

    def is_alive(self) -> None:
        assert self.call("read_file", {"path": "README.md"}).text == "notes\n"


@contextlib.contextmanager
def speaking(box: Scenario, arguments: list[str], early: Path | None = None) -> Iterator[Raw]:
    env = {**box.env, **({"PYTHONPATH": str(early)} if early else {})}
    with Program(
        [AGENTD, *arguments],
        cwd=box.root,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        raw = Raw(process)
        try:
            raw.request("initialize", INITIALIZE)
            raw.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            yield raw
        finally:
            process.kill()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    """One server for all kinds of garbage: each must leave it able to answer the next."""
    room = tmp_path_factory.mktemp("stdio")
    with speaking(make_project(room / "room"), ["mcp"]) as raw:
        yield raw


GARBAGE = {
    "words": b"hello\n",
    "blank lines": b"\n\n  \n\r\n",
    "half a JSON": b'{"jsonrpc": "2.0", "id": 900, "meth\n',
    "a list": b"[]\n",
    "a batch": b'[{"jsonrpc": "2.0", "id": 901, "method": "ping"}]\n',
    "a number": b"7\n",
    "null": b"null\n",
    "an empty object": b"{}\n",
    "no UTF-8": b'{"jsonrpc": "2.0", "id": 902, "method": "\xff\xfe\xc3"}\n',
    "bytes of all kinds": bytes(byte for byte in range(256) if byte != 10) + b"\n",
    "half a character": b'{"jsonrpc": "2.0", "id": 903, "method": "tools/call", "params": {"name": "\\ud800"}}\n',
    "NULs": b"\0" * 1000 + b"\n",
    "another version": b'{"jsonrpc": "1.0", "id": 904, "method": "ping"}\n',
    "no such method": b'{"jsonrpc": "2.0", "id": 905, "method": "shell", "params": {}}\n',
    "arguments that are a list": (
        b'{"jsonrpc": "2.0", "id": 906, "method": "tools/call", "params": {"name": "read_file", "arguments": []}}\n'
    ),
    "an answer nobody asked for": b'{"jsonrpc": "2.0", "id": 907, "result": {}}\n',
    "a notice of no kind": b'{"jsonrpc": "2.0", "method": "notifications/nothing"}\n',
    "a cancelled stranger": b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}\n',
    "a second initialize": b'{"jsonrpc": "2.0", "id": 908, "method": "initialize", "params": {}}\n',
    "an id that is an object": b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}\n',
    "numbers out of bounds": b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}\n',
    "10,000 brackets": b"[" * 10_000 + b"\n",
    "a nest 10,000 deep": (
        b'{"jsonrpc": "2.0", "id": 909, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": '
        + b"[" * 10_000
        + b"]" * 10_000
        + b"}}}\n"
    ),
    "a nest 150 deep": (
        b'{"jsonrpc": "2.0", "id": 910, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": '
        + b'{"a":' * 150
        + b"1"
        + b"}" * 150
        + b"}}}\n"
    ),
    "a number of 100,000 digits": (
        b'{"jsonrpc": "2.0", "id": 911, "method": "tools/call", "params": {"name": "read_file", "arguments": '
        b'{"path": "README.md", "limit": ' + b"9" * 100_000 + b"}}}\n"
    ),
    "a line of 50 MB": b"x" * 50_000_000 + b"\n",
    "a call of 50 MB": (
        b'{"jsonrpc": "2.0", "id": 912, "method": "tools/call", "params": {"name": "read_file", "arguments": '
        b'{"path": "' + b"x" * 50_000_000 + b'"}}}\n'
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_server_answers_the_next_call_after_malformed_input(raw: Raw, name: str) -> None:
    raw.write(GARBAGE[name])
    raw.is_alive()


@pytest.mark.parametrize("arguments", [[], "x", 7, True], ids=str)
def test_arguments_that_are_not_an_object_are_an_error(raw: Raw, arguments: Any) -> None:
    answer = raw.request("tools/call", {"name": "read_file", "arguments": arguments})
    assert "error" in answer or answer["result"]["isError"]
    assert "Traceback" not in json.dumps(answer)
    raw.is_alive()


# ---- stdout is for the protocol

NOISE = """
import importlib.abc, importlib.util, sys

class Noisy(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    '''Puts a loud function in front of the tool, in whatever process loads it.'''
    def find_spec(self, name, path, target=None):
        if name != "agentd.engine.tools.reading_tools":
            return None
        sys.meta_path.remove(self)
        self.real = importlib.util.find_spec(name)
        spec = importlib.util.spec_from_loader(name, self, origin=self.real.origin)
        return spec
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        import dataclasses, os, subprocess
        module.__file__ = self.real.origin
        self.real.loader.exec_module(module)
        quiet = module.read_file
        def read_file(binding, arguments):
            print("a tool prints")
            sys.stdout.write("and writes\\n"); sys.stdout.flush()
            sys.__stdout__.write("to both\\n"); sys.__stdout__.flush()
            os.write(1, b"to the descriptor\\n")
            subprocess.run(["sh", "-c", "echo a child writes; cat"], check=False)
            return quiet(binding, arguments)
        read_file.__module__ = module.__name__
        from agentd.engine.tools.tool import DECLARED
        DECLARED[:] = [dataclasses.replace(tool, run=read_file) if tool.run is quiet else tool for tool in DECLARED]

sys.meta_path.insert(0, Noisy())
"""


def test_stdout_carries_only_the_protocol_even_if_a_tool_prints(tmp_path: Path) -> None:
    """The tool prints, writes to descriptor 1, and starts a child that writes there and reads stdin."""
    box = make_project(tmp_path / "room")
    early = tmp_path / "early"
    early.mkdir()
    (early / "sitecustomize.py").write_text(NOISE)
    with speaking(box, ["mcp"], early) as raw:
        for _ in range(3):
            raw.is_alive()
        raw.process.stdin.close()  # type: ignore[union-attr]
        assert raw.process.stdout and raw.process.stdout.read() == b""
        assert raw.process.wait(timeout=PATIENCE) == 0


def test_output_of_the_noisy_tool_goes_to_stderr(tmp_path: Path) -> None:
    """Or the test before would prove nothing: what it says arrives on stderr."""
    box = make_project(tmp_path / "room")
    early = tmp_path / "early"
    early.mkdir()
    (early / "sitecustomize.py").write_text(NOISE)
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": "README.md"}},
        },
    ]
    server = Program(
        [AGENTD, "mcp"],
        cwd=box.root,
        env={**box.env, "PYTHONPATH": str(early)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin and server.stdout and server.stderr
    with server:
        server.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline())["id"] for _ in range(2)]
        server.stdin.close()
        heard = server.stderr.read()
    assert answers == [1, 2]
    for words in ("a tool prints", "and writes", "to both", "to the descriptor", "a child writes"):
        assert words in heard


# ---- the end


def test_server_exits_when_stdin_closes(tmp_path: Path) -> None:
    box = make_project(tmp_path / "room")
    with speaking(box, ["mcp"]) as raw:
        before = snapshot(box.root)
        raw.process.stdin.close()  # type: ignore[union-attr]
        assert raw.process.wait(timeout=PATIENCE) == 0
        assert snapshot(box.root) == before


def test_closing_stdin_in_the_middle_of_a_line_ends_the_server(tmp_path: Path) -> None:
    with speaking(make_project(tmp_path / "room"), ["mcp"]) as raw:
        raw.write(b'{"jsonrpc": "2.0", "id": 9, "met')
        raw.process.stdin.close()  # type: ignore[union-attr]
        assert raw.process.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_exits_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with speaking(make_project(tmp_path / "room"), ["mcp"]) as raw:
        raw.process.send_signal(number)
        assert raw.process.wait(timeout=PATIENCE) != 0


def test_server_exits_quietly_when_its_reader_goes_away(project: Scenario) -> None:
    """The agent was killed: its ends of both pipes close, and a write finds nobody."""
    with staged(project, Stage.PLAN) as on, speaking(project, on.arguments) as raw:
        assert raw.process.stdout
        raw.process.stdout.close()
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}}
        raw.write(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            raw.process.stdin.close()  # type: ignore[union-attr]
        assert raw.process.wait(timeout=PATIENCE) == 0, "that is an end, and no bug"


def test_child_processes_do_not_inherit_protocol_descriptors(tmp_path: Path) -> None:
    """git and friends inherit stderr for stdout, and nothing to read."""
    box = make_project(tmp_path / "room")
    with speaking(box, ["mcp"]) as raw:
        links = {name: os.readlink(f"/proc/{raw.process.pid}/fd/{name}") for name in ("0", "1", "2")}
        assert links["0"] == "/dev/null" and links["1"] == links["2"]
        assert re.fullmatch(r"/dev/null|pipe:.*", links["1"])
