"""`agentd view` as a person starts it: the link, the browser, the token file, and how it ends."""

import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.cli.view import no_browser_reason
from agentd.project.layout import find_project
from agentd.web.web_server import Address
from assertions import BROWSER, CLIS, missing
from loopback import clis
from processes import wait_until
from program import AGENTD
from raw_http import Server, open_server
from scenario import Scenario
from terminal import INTERRUPT, start_on_terminal

LINK = re.compile(r"http://127\.0\.0\.1:\d+/enter\?token=[\w-]{43,}(&next=/changes/add-oauth)?")
SOON = 20.0  # seconds for a no; without one it would serve for ever


@pytest.fixture
def born(project: Scenario) -> Scenario:
    folder = lifecycle.create_change(find_project(), "add-oauth", "Let people sign in").folder
    (folder / "proposal.md").write_text("# Change: add-oauth\n")
    return project


@contextmanager
def viewing(box: Scenario, *arguments: str) -> Iterator[Server]:
    with open_server((AGENTD, "view", *arguments), box.root, box.env) as door:
        yield door


def test_link_opens_the_inbox_or_the_given_change(born: Scenario) -> None:
    for arguments in ((), ("add-oauth",)):
        with viewing(born, "--no-open", *arguments) as door:
            assert LINK.fullmatch(door.link) and door.link.endswith("&next=/changes/add-oauth") is bool(arguments)
            key = door.enter()
            for path in ("/", "/changes/add-oauth"):
                page = door.ask(path, key)
                assert page.status == 200 and b"add-oauth" in page.body
                stranger = door.ask(path)
                assert stranger.status == 403 and b"add-oauth" not in stranger.raw
            assert door.ask("/static/style.css", key).status == 200
            assert door.ask("/static/style.css").status == 403


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_server_says_how_to_stop_it_and_exits_quietly(born: Scenario, number: signal.Signals, code: int) -> None:
    with viewing(born, "--no-open") as door:
        key = door.enter()
        assert door.ask("/", key).status == 200
        ended, err = door.stop(number)
    assert (ended, err) == (code, "Open this link in a browser; press Ctrl-C to stop.\n")


def test_server_listens_only_on_loopback(born: Scenario) -> None:
    with viewing(born, "--no-open") as door:
        listening = [
            row.split()[1]
            for name in ("tcp", "tcp6")
            for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
            if row.split()[3] == "0A" and row.split()[1].endswith(f":{door.port:04X}")
        ]
    assert listening == [f"0100007F:{door.port:04X}"]


def test_two_servers_of_one_project_can_run_side_by_side(born: Scenario) -> None:
    with viewing(born, "--no-open") as one, viewing(born, "--no-open") as two:
        keys = one.enter(), two.enter()
        both = f"Cookie: {'; '.join(key.removeprefix('Cookie: ') for key in keys)}"
        for door in (one, two):
            assert door.ask("/", both).status == 200
        assert two.ask("/", keys[0]).status == 403
        taken = born.agentd("view", "--no-open", "--port", str(one.port))
    assert (taken.code, taken.out) == (3, "")
    assert f"port {one.port} is taken" in taken.err and "without --port" in taken.err


def test_real_pages_refuse_strangers_and_forged_forms(born: Scenario) -> None:
    with viewing(born, "--no-open") as door:
        key, ours = door.enter(), f"Origin: http://{door.host}"
        csrf = re.search(rb'data-csrf="([\w-]+)"', door.ask("/", key).body)
        assert csrf
        path, form = "/changes/add-oauth/decide", "Content-Type: application/x-www-form-urlencoded"
        for body, status in ((b"csrf=x", 403), (b"", 403), (b"csrf=" + csrf[1], 400)):
            assert door.ask(path, key, ours, form, method="POST", body=body).status == status
        assert door.ask(path, key, form, method="POST", body=b"csrf=" + csrf[1]).status == 403
        evil = "Origin: http://evil.example"
        assert door.ask(path, key, evil, form, method="POST", body=b"csrf=" + csrf[1]).status == 403
        assert door.ask("/", key, host=f"evil.example:{door.port}").status == 421
        for bad in ("/%00", "/changes/%00", "/changes/%ff/read/%ff", "/changes/add-oauth/read/../../x", "/static/%00"):
            assert door.ask(bad, key).status in (400, 404), bad
        assert door.stop(signal.SIGTERM)[0] == 143


def test_server_exits_immediately_with_an_open_event_stream(born: Scenario) -> None:
    with viewing(born, "--no-open") as door:
        key = door.enter()
        with socket.create_connection(("127.0.0.1", door.port)) as line:
            line.sendall(f"GET /events HTTP/1.1\r\nHost: {door.host}\r\n{key}\r\n\r\n".encode())
            assert line.recv(100).startswith(b"HTTP/1.1 200 ")
            assert door.stop(signal.SIGINT) == (130, "Open this link in a browser; press Ctrl-C to stop.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nothing",), 1, "agentd list"),
        (("Not-An-Id",), 2, "invalid change id"),
        (("--host", "0.0.0.0", "--token-file", "t"), 2, "every address"),
        (("--host", "::", "--token-file", "t"), 2, "every address"),
        (("--host", "no such host"), 2, "there is no address"),
        (("--host", "192.0.2.1"), 2, "--token-file"),
        (("--host", "192.0.2.1", "--token-file", "t"), 3, "no address of this machine"),
        (("--port", "65536"), 2, "65536"),
        (("--plain",), 2, "needs a change ID"),
        (("--export", "x.html"), 2, "needs a change ID"),
        (("add-oauth", "--plain", "--export", "x.html"), 2, "cannot be combined"),
        (("add-oauth", "--plain", "--port", "0"), 2, "cannot be combined"),
        (("--force",), 2, "--export"),
    ],
)
def test_invalid_arguments_are_refused_with_a_hint(
    born: Scenario, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = born.agentd("view", *arguments, *(["--no-open"] if "--plain" not in arguments and code != 2 else []))
    assert (ran.code, ran.out) == (code, "") and words in ran.err


# ---- without a terminal, and with one


def test_view_without_a_terminal_prints_the_document_or_says_how_to_serve(born: Scenario) -> None:
    assert born.agentd("view", "add-oauth").out == "# Change: add-oauth\n"
    ran = born.agentd("view")
    assert (ran.code, ran.out) == (2, "") and "agentd view --no-open" in ran.err


def test_browser_is_opened_with_a_one_time_link(born: Scenario, tmp_path: Path) -> None:
    """What a program is started with can be seen by everybody on a machine."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > "{tmp_path}/part" && mv "{tmp_path}/part" "{tmp_path}/link"; sleep 60\n'
    )
    browser.chmod(0o755)
    argv = [sys.executable, "-c", f"import os; os.chdir({str(born.root)!r}); os.execv({AGENTD!r}, ['agentd', 'view'])"]
    person = start_on_terminal(argv, {**born.env, "BROWSER": str(browser)}, width=200)
    person.sees("press Ctrl-C to stop.")
    printed = LINK.search(person.display.text)
    assert printed
    door = Server(None, printed[0])  # type: ignore[arg-type]
    door.enter()
    wait_until((tmp_path / "link").exists, "the browser")
    link = (tmp_path / "link").read_text().strip()
    assert LINK.fullmatch(link) and link != printed[0]
    door.enter(link)
    assert door.ask(link.split(door.host)[1]).status == 403
    door.enter()
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert "Error" not in person.display.text


@pytest.mark.parametrize(
    ("env", "platform", "words"),
    [
        ({}, "linux", "No display"),
        ({"DISPLAY": ":0"}, "linux", ""),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ""),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a b"}, "linux", "ssh -L 8123:127.0.0.1:8123"),
        ({"SSH_TTY": "/dev/pts/1"}, "darwin", "ssh -L 8123:127.0.0.1:8123"),
        ({}, "darwin", ""),
        ({"BROWSER": "/usr/bin/mine", "SSH_CONNECTION": "a b"}, "linux", ""),
    ],
)
def test_reason_why_no_browser_can_be_opened_is_given(env: dict[str, str], platform: str, words: str) -> None:
    said = no_browser_reason(env, platform, 8123)
    assert words in said and bool(said) is bool(words)


# ---- the token file, and other addresses


def test_token_file_is_created_privately_and_reused(born: Scenario, tmp_path: Path) -> None:
    file = tmp_path / "token"
    links = []
    for _ in range(2):
        with viewing(born, "--no-open", "--token-file", str(file)) as door:
            links.append(door.link.partition("token=")[2])
            door.enter()
    assert links == [file.read_text().strip()] * 2 and len(links[0]) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_custom_token_is_used(born: Scenario, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a+b/c==" + "x" * 30 + "\n")
    file.chmod(0o600)
    with viewing(born, "--no-open", "--token-file", str(file)) as door:
        assert "token=a%2Bb%2Fc%3D%3Dxxx" in door.link
        door.enter()


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("x" * 40, 0o640, "others can read"),
        ("x" * 40, 0o604, "others can read"),
        ("x" * 40, 0o602, "others can read"),
        ("x" * 31, 0o600, "holds no token"),
        ("", 0o600, "holds no token"),
        ("x" * 600, 0o600, "holds no token"),
        ("x" * 40 + "\ny", 0o600, "holds no token"),
        ("x" * 40 + "\0", 0o600, "holds no token"),
        ("ä" * 40, 0o600, "holds no token"),
    ],
)
def test_weak_or_readable_token_is_refused(born: Scenario, tmp_path: Path, text: str, mode: int, words: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    ran = born.agentd("view", "--no-open", "--token-file", str(file), timeout=SOON)
    assert (ran.code, ran.out) == (3, "") and words in ran.err and f"rm {file}" in ran.err
    assert file.read_text() == text and "xxxx" not in ran.err


def test_token_path_that_is_not_a_file_is_refused(born: Scenario, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("pipe", "", "missing/token"):
        ran = born.agentd("view", "--no-open", "--token-file", str(tmp_path / name), timeout=SOON)
        assert (ran.code, ran.out) == (3, ""), name


def own_address() -> str:
    """The one from which this machine would send; nothing is sent. Without a network, one of a world of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
            return str(line.getsockname()[0])
        except OSError:
            if not clis.isolate():
                missing("this machine has no address but the loopback", CLIS, BROWSER)
            return clis.BESIDE


def test_other_address_warns_and_accepts_only_its_own_host_name(born: Scenario, tmp_path: Path) -> None:
    number = own_address()
    with viewing(born, "--no-open", "--host", number, "--token-file", str(tmp_path / "token")) as door:
        assert door.link.startswith(f"http://{number}:")
        assert door.ask("/", door.enter()).status == 200
        assert door.ask(host=f"127.0.0.1:{door.port}").status == 421
        err = door.stop(signal.SIGTERM)[1]
    assert "can read this project's changes and decide" in err and "encrypted" in err


@pytest.mark.parametrize(
    ("host", "number", "port", "names"),
    [
        ("127.0.0.1", "127.0.0.1", 81, ["127.0.0.1:81", "localhost:81"]),
        ("localhost", "127.0.0.1", 81, ["localhost:81", "127.0.0.1:81"]),
        ("::1", "::1", 81, ["[::1]:81", "localhost:81"]),
        ("box.lan", "192.0.2.1", 81, ["box.lan:81", "192.0.2.1:81"]),
        ("192.0.2.1", "192.0.2.1", 80, ["192.0.2.1:80", "192.0.2.1"]),
        ("2001:db8::1", "2001:db8::1", 81, ["[2001:db8::1]:81"]),
    ],
)
def test_host_names_match_what_a_browser_sends(host: str, number: str, port: int, names: list[str]) -> None:
    address = Address(host, number, port)
    assert list(address.names) == names and address.url == f"http://{names[0]}"


# ---- one file


def test_export_overwrites_an_existing_file_only_when_forced(born: Scenario, tmp_path: Path) -> None:
    target = tmp_path / "change.html"
    ran = born.agentd("view", "add-oauth", "--export", str(target))
    assert (ran.code, ran.out) == (0, "") and str(target) in ran.err
    first = target.read_text()
    assert "add-oauth" in first and "<html" in first
    target.write_text("mine")
    ran = born.agentd("view", "add-oauth", "--export", str(target))
    assert (ran.code, ran.out, target.read_text()) == (1, "", "mine")
    assert f"agentd view add-oauth --export {target} --force" in ran.err
    assert born.agentd("view", "add-oauth", "--export", str(target), "--force").code == 0
    assert "add-oauth" in target.read_text()


def test_help_names_every_option(born: Scenario) -> None:
    said = born.agentd("view", "--help").out
    for option in ("--port", "--no-open", "--host", "--token-file", "--export", "--force", "--plain"):
        assert option in said
