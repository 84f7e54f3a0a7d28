"""A real browser for the tests of pages: the fixture `browser_or_skip`, and `visit`.

While it runs, the thread of the tests has an event loop, so `asyncio.run` fails there.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu")
REQUIRED = os.environ.get("UNSWAYED_BROWSER") == "required"


def _missing(what):
    """Skip the test, or fail where a browser is required."""
    if REQUIRED:
        pytest.fail(f"UNSWAYED_BROWSER=required, but {what} is missing", pytrace=False)
    pytest.skip("needs playwright and Chromium")


@pytest.fixture(scope="session")
def browser_or_skip():
    """A headless Chromium, driven by Playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        _missing("playwright")
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    if binary is None:
        _missing("Chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=binary, args=OPTIONS, headless=True)
        yield browser
        browser.close()


class Visit:
    """A page, and everything that went wrong on it."""

    def __init__(self, page, allowed):
        self.page, self.troubles = page, []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss()))
        page.on(
            "console",
            lambda said: (
                self.troubles.append(said.text)
                if said.type == "error" and not (allowed and re.search(allowed, said.text))
                else None
            ),
        )


@contextmanager
def visit(browser, allowed="", **options):
    """Open an empty page in a profile of its own; nothing else may go wrong than is allowed."""
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    try:
        made = Visit(context.new_page(), allowed)
        yield made.page
        assert not made.troubles
    finally:
        context.close()
