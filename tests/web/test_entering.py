"""A real browser at the viewer's door: from the terminal, from another site's link, and from another page's script."""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from small_site import SECRET, TOKEN

from assertions import BROWSER, is_required
from program import PATIENCE
from raw_http import Server, open_server

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(not CHROMIUM and not is_required(BROWSER), reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with contextlib.closing(browser.new_context()) as context:
        context.set_default_timeout(1000 * PATIENCE)
        yield context.new_page()


@pytest.fixture
def door() -> Iterator[Server]:
    with open_server() as door:
        yield door


@contextlib.contextmanager
def another_site(text: str) -> Iterator[str]:
    """A page under another name of this machine, which is another site for a browser."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_browser_opened_with_the_link_reaches_the_page(door: Server, page: Page) -> None:
    page.goto(f"http://{door.host}/enter?token={TOKEN}&next=/")
    page.get_by_text(SECRET).wait_for()
    assert page.url == f"http://{door.host}/"
    page.reload()
    page.get_by_text(SECRET).wait_for()


def test_link_on_another_site_reaches_the_page(door: Server, page: Page) -> None:
    """Where a redirect would have lost the strict cookie."""
    with another_site(f'<a href="http://{door.host}/enter?token={TOKEN}&amp;next=/">open</a>') as site:
        page.goto(site)
        page.get_by_text("open").click()
        page.get_by_text(SECRET).wait_for()


def test_page_of_another_site_cannot_read_the_viewer(door: Server, page: Page) -> None:
    page.goto(f"http://{door.host}/enter?token={TOKEN}&next=/")
    page.get_by_text(SECRET).wait_for()
    with another_site(f'<a href="http://{door.host}/">in</a><iframe src="http://{door.host}/"></iframe>') as site:
        page.goto(site)
        for where in (site, site.replace("localhost", "127.0.0.1")):  # the second is the same site, on another port
            page.goto(where)
            for mode in ("cors", "no-cors"):
                got = page.evaluate(
                    "([url, mode]) => fetch(url, {mode, credentials: 'include'}).then(a => a.text(), () => 'refused')",
                    [f"http://{door.host}/", mode],
                )
                assert got in ("refused", "")
            assert not any(SECRET in frame.content() for frame in page.frames)
        page.goto(site)
        page.get_by_text("in", exact=True).click()
        page.get_by_text("This page is closed").or_(page.get_by_text("Another page asked")).wait_for()


def test_entry_link_cannot_redirect_outside(door: Server, page: Page) -> None:
    for place in ("//evil.invalid/", "/\\evil.invalid/", "/%09/evil.invalid/"):
        page.goto(f"http://{door.host}/enter?token={TOKEN}&next={place}")
        assert page.url.startswith(f"http://{door.host}/")
