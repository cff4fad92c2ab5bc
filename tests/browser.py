"""A person before the viewer: a real browser on a real `agentd view`, which may ask nobody but that server.

All that a page complains about is kept, and fails the test unless the test expected it.
"""

import asyncio
import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

from assertions import BROWSER, missing
from processes import wait_until
from program import AGENTD, PATIENCE
from raw_http import Server, open_server
from scenario import Scenario

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
NO_ICON = r"favicon\.ico"  # the page behind the link names none
MERMAID_STYLES = r"appl\w+ (an )?inline style"  # of a drawing that is not in the page: it gets its styles by script
expect.set_options(timeout=1000 * PATIENCE)


@dataclass(frozen=True)
class _Engine:
    browser: Browser
    loop: asyncio.AbstractEventLoop


@cache
def _engine() -> _Engine:
    """One for all tests of a process."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing(f"no browser is here ({', '.join(PROGRAMS)}): make browser", BROWSER)
    driver = sync_playwright().start()
    env: dict[str, str | float | bool] = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "LANG": "C.UTF-8"}
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = driver.chromium.launch(executable_path=program, args=[*ARGUMENTS, *as_root, NOWHERE], env=env)
    found = _Engine(browser, asyncio.get_running_loop())

    def end() -> None:
        asyncio._set_running_loop(found.loop)
        browser.close()
        driver.stop()

    atexit.register(end)
    return found


@contextmanager
def engine() -> Iterator[Browser]:
    """The driver's loop counts as running for ever: other tests of this process start their own."""
    before = asyncio._get_running_loop()
    found = _engine()
    asyncio._set_running_loop(found.loop)
    try:
        yield found.browser
    finally:
        asyncio._set_running_loop(before)


@dataclass
class Watched:
    """What pages of a context did; `origin` is the only place that they may ask."""

    origin: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def listen(self, context: BrowserContext) -> None:
        context.on("request", self._asked)
        context.on("console", self._said)
        context.on("weberror", lambda failed: self.errors.append(str(failed.error)))
        context.on("dialog", self._dialog)

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.text} ({message.location['url']})")

    def _dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def check(self, *expected: str) -> None:
        """Nothing was asked of others, no dialog came up, and no complaint but the expected ones."""
        others = [url for url in self.requests if not url.startswith((self.origin, "data:"))]
        known = re.compile("|".join([NO_ICON, *expected]), re.IGNORECASE)
        left = [one for one in self.errors if not known.search(one)]
        assert not (others or self.dialogs or left), f"asked: {others}\ndialogs: {self.dialogs}\nsaid: {left}"


@dataclass
class Tab:
    """A page that came in by the link."""

    door: Server
    page: Page
    watched: Watched

    def go(self, path: str) -> Page:
        """With all its scripts at work."""
        answer = self.page.goto(f"http://{self.door.host}{path}")
        assert answer and answer.status == 200, (path, answer and answer.status)
        return self.page

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)


@contextmanager
def served(box: Scenario, *arguments: str) -> Iterator[Server]:
    with open_server((AGENTD, "view", "--no-open", *arguments), box.root, box.env) as door:
        yield door


@contextmanager
def entered(door: Server, *expected: str, **options: Any) -> Iterator[Tab]:
    """A browser of its own, with nothing that another one knows; `expected` are complaints that are all right."""
    with engine() as browser:
        context = browser.new_context(**options)
        context.set_default_timeout(1000 * PATIENCE)
        watched = Watched(f"http://{door.host}/")
        watched.listen(context)
        tab = Tab(door, context.new_page(), watched)
        try:
            tab.page.goto(door.link)
            tab.page.wait_for_url(lambda url: "/enter" not in url)
            yield tab
            watched.check(*expected)
        finally:
            context.close()


@contextmanager
def visiting(box: Scenario, *expected: str, **options: Any) -> Iterator[Tab]:
    """The usual: a server, and one who looks at it."""
    with served(box) as door, entered(door, *expected, **options) as tab:
        yield tab


def select(tab: Tab, words: str) -> None:
    """With the mouse, from the first letter to the last, in the text that is read."""
    spots = tab.page.evaluate(
        """words => {
          const walk = document.createTreeWalker(document.querySelector('.paper'), NodeFilter.SHOW_TEXT);
          for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            const at = node.data.indexOf(words);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + words.length);
            node.parentElement.scrollIntoView({block: 'center', behavior: 'instant'});
            const rects = [...range.getClientRects()];
            const [first, last] = [rects[0], rects[rects.length - 1]];
            return [first.left + 0.5, first.top + first.height / 2, last.right - 0.5, last.top + last.height / 2];
          }
        }""",
        words,
    )
    assert spots, f"not in the text: {words}"
    mouse = tab.page.mouse
    mouse.move(spots[0], spots[1])
    mouse.down()
    mouse.move(spots[2], spots[3], steps=5)
    mouse.up()


def focused(tab: Tab) -> str:
    """What the keyboard is at, and that this can be seen."""
    name, outline, width = tab.run(
        """() => {
          const here = document.activeElement, style = getComputedStyle(here);
          const name = here.tagName.toLowerCase() + (here.name ? `[${here.name}]` : '');
          return [name, style.outlineStyle, style.outlineWidth];
        }"""
    )
    assert name == "body" or (outline, width) != ("none", "0px"), f"{name} has the focus, and nobody sees it"
    return str(name)


def wait_for_focus(tab: Tab, name: str) -> None:
    wait_until(lambda: focused(tab) == name, f"the focus is at {name}")


def is_as_wide_as_its_window(tab: Tab) -> bool:
    return bool(tab.run("document.documentElement.scrollWidth <= innerWidth"))
