"""A real browser for the tests of pages: the fixture `browser_or_skip`, and `visit`.

While it runs, the thread of the tests has an event loop, so `asyncio.run` fails there.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu")
REQUIRED = os.environ.get("UNSWAYED_BROWSER") == "required"


class _Shared:
    """One browser for all modules of a worker: each that imports the fixture has its own copy."""

    users = 0
    browser = None
    stack = ExitStack()


def _missing(what):
    """Skip the test, or fail where a browser is required."""
    if REQUIRED:
        pytest.fail(f"UNSWAYED_BROWSER=required, but {what} is missing", pytrace=False)
    pytest.skip("needs playwright and Chromium")


def _launch():
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        _missing("playwright")
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    if binary is None:
        _missing("Chromium")
    started = _Shared.stack.enter_context(sync_playwright())
    browser = started.chromium.launch(executable_path=binary, args=OPTIONS, headless=True)
    _Shared.stack.callback(browser.close)
    return browser


@contextmanager
def shared_browser():
    """Launch the browser if nobody has, and close it after its last user."""
    if _Shared.browser is None:
        _Shared.browser = _launch()
    _Shared.users += 1
    try:
        yield _Shared.browser
    finally:
        _Shared.users -= 1
        if not _Shared.users:
            _Shared.browser = None
            _Shared.stack.close()


@pytest.fixture(scope="session")
def browser_or_skip():
    """A headless Chromium, driven by Playwright."""
    with shared_browser() as browser:
        yield browser


class Visit:
    """A page, and everything that went wrong on it."""

    def __init__(self, page):
        self.page, self.troubles = page, []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss()))
        page.on(
            "console",
            lambda said: self.troubles.append(said.text) if said.type == "error" else None,
        )


@contextmanager
def visit(browser, **options):
    """Open an empty page in a profile of its own; nothing may go wrong on it."""
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    try:
        made = Visit(context.new_page())
        yield made.page
        assert not made.troubles
    finally:
        context.close()
