"""The server of `agentd view`: listen on one address, log only errors, stop immediately when asked."""

import errno
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import uvicorn
from starlette.types import ASGIApp

from agentd.domain import SetupError, UsageError

HOST = "127.0.0.1"
PATIENCE = 1  # seconds for pending responses when the server stops


@dataclass(frozen=True)
class Address:
    """Where the server listens: the host as given, and its numeric address."""

    host: str
    number: str
    port: int = 0

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.number).is_loopback

    @property
    def names(self) -> tuple[str, ...]:
        """Every host name a browser may use for it."""
        hosts = dict.fromkeys((self.host, self.number, *(["localhost"] if self.number in (HOST, "::1") else [])))
        names = [f"[{host}]" if ":" in host else host for host in hosts]
        bare = names if self.port == 80 else []  # browsers leave out port 80
        return (*(f"{name}:{self.port}" for name in names), *bare)

    @property
    def url(self) -> str:
        return f"http://{self.names[0]}"


def resolve_address(host: str, port: int) -> Address:
    """Resolve the host once, so the address that is checked is the one that is listened on."""
    try:
        number = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        raise UsageError(f"there is no address {host}", "agentd view serves on 127.0.0.1 without --host") from None
    if ipaddress.ip_address(number).is_unspecified:
        words = f"{host} is every address of this machine; the viewer answers to one name only"
        raise UsageError(words, "give --host the address or name that people will type")
    return Address(host, number, port)


def serve_app(app_of: Callable[[Address], ASGIApp], address: Address, announce: Callable[[Address], None]) -> int:
    """Serve until a signal, and return the exit code. Call `announce` as soon as a browser can connect."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)  # uvicorn handles them while it runs, and raises them again afterwards
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    with _bound(address) as listening:
        address = Address(address.host, address.number, listening.getsockname()[1])
        config = uvicorn.Config(
            app_of(address),
            http="h11",
            ws="none",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=PATIENCE,
        )
        _log_errors()
        announce(address)
        try:
            _Server(config).run(sockets=[listening])
        except SystemExit as ended:
            return _left(int(ended.code or 0))
    return 1  # it never started


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        logging.disable(logging.ERROR)  # requests cut off from now on are not errors
        super().handle_exit(sig, frame)


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.number else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.number, address.port))
        listening.listen(128)  # from now on, browsers wait instead of being refused
    except OSError as error:
        listening.close()
        raise _no_socket(address, error) from None
    return listening


def _no_socket(address: Address, error: OSError) -> SetupError:
    if error.errno == errno.EADDRINUSE:
        return SetupError(f"port {address.port} is taken", "agentd view takes a free one without --port")
    if error.errno == errno.EADDRNOTAVAIL:
        return SetupError(f"{address.host} is no address of this machine", "give --host one that is")
    return SetupError(f"cannot listen on port {address.port}: {error.strerror}", "give --port another one")


def _stop(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _left(code: int) -> int:
    """Return the code, or exit hard if a thread is still working; safe because every write is atomic."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(0.2)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    return code


class _Harmless(logging.Formatter):
    """Replaces unprintable characters: a message can quote a document, and a terminal would interpret them."""

    def format(self, record: logging.LogRecord) -> str:
        return "".join(char if char.isprintable() or char == "\n" else "�" for char in super().format(record))


def _log_errors() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Harmless("agentd view: %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler])
