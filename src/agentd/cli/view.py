"""`agentd view`: show changes in the browser, or the latest verdict on one in the terminal."""

import os
import secrets
import sys
import threading
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentd.change import ChangeLocator, LocatedChange, check_change_id, readable_documents
from agentd.cli import output
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.cli.terminal_person import show_in_pager
from agentd.domain import Refusal, UsageError
from agentd.project import find_project
from agentd.storage import files

if TYPE_CHECKING:
    from agentd.web import Address

COMMANDS = {"view": (120, "Read, comment and decide in the browser.")}


_DOCUMENTS = ("REVIEW.md", "CHALLENGE.md", "proposal.md", "clarifications.md")  # most recent first
_HELP = "agentd view --help"


@dataclass(frozen=True)
class ViewRequest:
    """How to serve the viewer, and what to open."""

    change_id: str | None
    settings: tuple[str, ...]
    host: str
    port: int
    token_file: str | None
    is_opened: bool


@click.command("view")
@change_argument(required=False)
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port. Default: a free one.")
@click.option("--no-open", is_flag=True, help="Do not open a browser; only print the link.")
@click.option("--host", metavar="ADDRESS", help="Serve on this address instead of 127.0.0.1; requires --token-file.")
@click.option("--token-file", metavar="FILE", help="Read the token from this file, which must be readable only by you.")
@click.option("--export", "export_file", metavar="FILE", help="Write the change ID to a single HTML file instead.")
@click.option("--force", is_flag=True, help="With --export: overwrite FILE if it exists.")
@click.option("--plain", is_flag=True, help="Show the latest verdict on ID, or its proposal, in your pager instead.")
@click.pass_context
def command(
    ctx: click.Context,
    change_id: str | None,
    port: int | None,
    no_open: bool,
    host: str | None,
    token_file: str | None,
    export_file: str | None,
    force: bool,
    plain: bool,
) -> int:
    """Read, comment and decide in the browser: on the change ID, or on everything that is waiting for you.

    The page is served on this machine only, to anyone who has the link, until Ctrl-C. Without a terminal,
    `agentd view ID` prints the latest verdict instead, unless you pass --no-open or --port.
    """
    is_page_wanted = no_open or port is not None or host is not None or token_file is not None
    _check(change_id, is_page_wanted, export_file, force, plain)
    if export_file is not None and change_id:
        return _export(change_id, Path(export_file), force)
    if change_id and (plain or not (is_page_wanted or sys.stdout.isatty())):
        return _read(change_id)
    if not (is_page_wanted or sys.stdout.isatty()):
        raise UsageError("not running in a terminal, so no page was opened", "agentd view --no-open prints its link")
    settings = ctx.find_root().obj or ()
    return _serve(ViewRequest(change_id, settings, host or "127.0.0.1", port or 0, token_file, not no_open))


def _check(change_id: str | None, is_page_wanted: bool, export_file: str | None, force: bool, plain: bool) -> None:
    if (plain or export_file is not None) and not change_id:
        raise UsageError(f"{'--plain' if plain else '--export'} needs a change ID", "agentd list")
    if plain + is_page_wanted + (export_file is not None) > 1:
        raise UsageError("--plain and --export cannot be combined with each other or with page options", _HELP)
    if force and export_file is None:
        raise UsageError("--force requires --export", _HELP)


# ---- one change, without a server


def _read(change_id: str) -> int:
    located = find_anywhere(ChangeLocator(find_project()), check_change_id(change_id))
    try:
        show_in_pager(_latest_document(located), sys.stdout)
    except BrokenPipeError:
        output.quiet()  # the reader closed the pipe
    return 0


def _latest_document(located: LocatedChange) -> Path:
    folder = Path(located.folder or "")
    documents = readable_documents(folder)
    for name in _DOCUMENTS:
        if name in documents:
            return folder / name
    if located.archived:
        raise Refusal(f"{located.id} has no documents", f"agentd log {located.id} shows what happened")
    raise Refusal(f"{located.id} has no documents yet", f"agentd plan {located.id}")


def _export(change_id: str, export_file: Path, force: bool) -> int:
    from agentd.web import (
        create_site,  # deferred: loads the templates
        export_change,
    )

    change = create_site(find_project(), csrf="").change(change_id)
    if export_file.exists() and not force:
        raise Refusal(f"{export_file} already exists", f"agentd view {change_id} --export {export_file} --force")
    files.write(export_file, export_change(change).encode())
    output.report(f"Exported {change_id} to {export_file}, a self-contained HTML file.")
    return 0


# ---- the server


def _serve(request: ViewRequest) -> int:
    from agentd.web import AccessGuard, build_app, create_site, read_or_create_token, resolve_address, serve_app

    site = create_site(find_project(), secrets.token_urlsafe(32), request.settings)
    path = f"/changes/{site.change(request.change_id).id}" if request.change_id else ""
    address = resolve_address(request.host, request.port)
    if not address.is_loopback and not request.token_file:
        raise UsageError(f"{request.host} is reachable from other machines: --host requires --token-file FILE", _HELP)
    token = read_or_create_token(Path(request.token_file)) if request.token_file else secrets.token_urlsafe(32)
    ticket = secrets.token_urlsafe(32)

    def announce(address: "Address") -> None:
        _print_link(address, _link(address, token, path))
        if request.is_opened:
            _open(_link(address, ticket, path), address.port)

    return serve_app(lambda at: AccessGuard(build_app(site), token, at.names, site.csrf, ticket), address, announce)


def _link(address: "Address", token: str, path: str) -> str:
    from urllib.parse import quote  # deferred, as above

    return f"{address.url}/enter?token={quote(token, safe='')}" + (f"&next={path}" if path else "")


def _print_link(address: "Address", link: str) -> None:
    if not address.is_loopback:
        warning = (
            f"Anyone who can reach {address.url} and has the token can read this project's changes and decide on them."
        )
        output.report(f"{warning}\nThe connection is not encrypted.")
    output.stream([link])
    output.report("Open this link in a browser; press Ctrl-C to stop.")


def _open(link: str, port: int) -> None:
    if reason := no_browser_reason(os.environ, sys.platform, port):
        output.report(reason)
        return

    def open_link() -> None:
        if not webbrowser.open(link):
            output.report("No browser could be opened.")

    threading.Thread(target=open_link, daemon=True).start()  # some browsers block until they are closed


def no_browser_reason(env: Mapping[str, str], platform: str, port: int) -> str:
    """Return why no browser is opened, or an empty string. $BROWSER always allows opening one."""
    if env.get("BROWSER"):
        return ""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return f"To use the link on your own machine, forward the port: ssh -L {port}:127.0.0.1:{port} HOST"
    if platform == "linux" and not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return "No display found, so no browser was opened."
    return ""
