"""`agentd view`: the changes of this project in the browser; or the last verdict on one, to read."""

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


_FIRST = ("REVIEW.md", "CHALLENGE.md", "proposal.md", "clarifications.md")  # the latest word first
_HELP = "agentd view --help"


@dataclass(frozen=True)
class ViewRequest:
    """A server, and who is to look at it."""

    change_id: str | None
    settings: tuple[str, ...]
    host: str
    port: int
    token_file: str | None
    is_opened: bool


@click.command("view")
@change_argument(required=False)
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port; a free one without it.")
@click.option("--no-open", is_flag=True, help="Open no browser; the link is enough.")
@click.option("--host", metavar="ADDRESS", help="Serve on this address instead of 127.0.0.1; needs --token-file.")
@click.option("--token-file", metavar="FILE", help="Take the token from this file, which only you can read.")
@click.option("--export", "target", metavar="FILE", help="Write the change ID as one HTML file instead.")
@click.option("--force", is_flag=True, help="With --export: FILE may be there already.")
@click.option("--plain", is_flag=True, help="Show the last verdict on ID, or its proposal, in your pager instead.")
@click.pass_context
def command(
    ctx: click.Context,
    change_id: str | None,
    port: int | None,
    no_open: bool,
    host: str | None,
    token_file: str | None,
    target: str | None,
    force: bool,
    plain: bool,
) -> int:
    """Read, comment and decide in the browser: the change ID, or what waits for you.

    The page is served on this machine only, for who has the link, until Ctrl-C. Without a terminal `agentd view ID`
    prints the last verdict instead, unless --no-open or --port asks for the page.
    """
    is_asked = no_open or port is not None or host is not None or token_file is not None
    _check(change_id, is_asked, target, force, plain)
    if target is not None and change_id:
        return _export(change_id, Path(target), force)
    if change_id and (plain or not (is_asked or sys.stdout.isatty())):
        return _read(change_id)
    if not (is_asked or sys.stdout.isatty()):
        raise UsageError("this is no terminal, so nobody would see the page", "agentd view --no-open prints its link")
    settings = ctx.find_root().obj or ()
    return _serve(ViewRequest(change_id, settings, host or "127.0.0.1", port or 0, token_file, not no_open))


def _check(change_id: str | None, is_asked: bool, target: str | None, force: bool, plain: bool) -> None:
    if (plain or target is not None) and not change_id:
        raise UsageError(f"{'--plain' if plain else '--export'} is for one change: name it", "agentd list")
    if plain + is_asked + (target is not None) > 1:
        raise UsageError("--plain, --export and the options of the page go apart", _HELP)
    if force and target is None:
        raise UsageError("--force goes with --export", _HELP)


# ---- one change, without a server


def _read(change_id: str) -> int:
    found = find_anywhere(ChangeLocator(find_project()), check_change_id(change_id))
    try:
        show_in_pager(_latest(found), sys.stdout)
    except BrokenPipeError:
        output.quiet()  # whoever read it has seen enough
    return 0


def _latest(found: LocatedChange) -> Path:
    folder = Path(found.folder or "")
    there = readable_documents(folder)
    for name in _FIRST:
        if name in there:
            return folder / name
    if found.archived:
        raise Refusal(f"{found.id} has nothing to read", f"agentd log {found.id} tells what happened")
    raise Refusal(f"{found.id} has nothing to read yet", f"agentd plan {found.id}")


def _export(change_id: str, target: Path, force: bool) -> int:
    from agentd.web import (
        create_site,  # late: templates and all that a page needs
        export_change,
    )

    change = create_site(find_project(), csrf="").change(change_id)
    if target.exists() and not force:
        raise Refusal(f"{target} is there already", f"agentd view {change_id} --export {target} --force")
    files.write(target, export_change(change).encode())
    output.report(f"{change_id} is in {target}, as one file that needs no other.")
    return 0


# ---- the server


def _serve(wanted: ViewRequest) -> int:
    from agentd.web import AccessGuard, build_app, create_site, read_or_create_token, resolve_address, serve_app

    pages = create_site(find_project(), secrets.token_urlsafe(32), wanted.settings)
    place = f"/changes/{pages.change(wanted.change_id).id}" if wanted.change_id else ""
    address = resolve_address(wanted.host, wanted.port)
    if not address.is_loopback and not wanted.token_file:
        raise UsageError(f"{wanted.host} is for other machines too: --host needs --token-file FILE", _HELP)
    token = read_or_create_token(Path(wanted.token_file)) if wanted.token_file else secrets.token_urlsafe(32)
    ticket = secrets.token_urlsafe(32)

    def announce(address: "Address") -> None:
        _tell(address, _link(address, token, place))
        if wanted.is_opened:
            _open(_link(address, ticket, place), address.port)

    return serve_app(lambda at: AccessGuard(build_app(pages), token, at.names, pages.csrf, ticket), address, announce)


def _link(address: "Address", token: str, place: str) -> str:
    from urllib.parse import quote  # late, as above

    return f"{address.url}/enter?token={quote(token, safe='')}" + (f"&next={place}" if place else "")


def _tell(address: "Address", link: str) -> None:
    if not address.is_loopback:
        words = f"Whoever reaches {address.url} and has the token can read this project's changes and decide on them."
        output.report(f"{words}\nNothing on the way is encrypted.")
    output.stream([link])
    output.report("Open this link in a browser; Ctrl-C ends it.")


def _open(link: str, port: int) -> None:
    if reason := no_browser_reason(os.environ, sys.platform, port):
        output.report(reason)
        return

    def opened() -> None:
        if not webbrowser.open(link):
            output.report("No browser could be opened.")

    threading.Thread(target=opened, daemon=True).start()  # some stay until they are closed


def no_browser_reason(env: Mapping[str, str], platform: str, port: int) -> str:
    """Why no browser is opened here; empty if one is. BROWSER names one that can be, wherever we are."""
    if env.get("BROWSER"):
        return ""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return f"On your own machine it works while this runs there: ssh -L {port}:127.0.0.1:{port} HOST"
    if platform == "linux" and not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return "There is no display here, so no browser was opened."
    return ""
