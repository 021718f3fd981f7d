"""A real browser at the pages of a real daemon."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.acceptance.server.conftest import Served

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def sign_in(page: Page, url: str, token: str) -> None:
    """Sign in with a token, and wait for the first page."""
    page.goto(f"{url}/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#main").wait_for()


class Screen:
    """A browser that is signed in, and what it complained about."""

    def __init__(self, served: Served, context: BrowserContext) -> None:
        self.served = served
        self.context = context
        self.url: str = served.listening["url"]
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def sign_in(self) -> None:
        """Sign in with the owner's token."""
        sign_in(self.page, self.url, self.served.token)

    def run(self, name: str, tasks: list[dict[str, object]]) -> str:
        """Let a plan run to its end in this process, and return its id."""
        path = self.served.plan(name, tasks)
        said = self.served.run(path)
        assert said.code in (0, 4), said.out + said.err
        return self.served.newest_plan()

    def open(self, path: str) -> Page:
        """Go to a page."""
        self.page.goto(self.url + path)
        return self.page


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Chromium; without one, the test is skipped by name.

    One for each test: Playwright keeps an event loop running, which asynchronous tests in the same process cannot bear.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: `apt-get install chromium`")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield started
        started.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A project where nothing has run yet."""
    shop = Served(tmp_path)
    yield shop
    shop.clean_up()


@pytest.fixture
def screen(served: Served, browser: Browser) -> Iterator[Screen]:
    """A browser at a daemon that was just started."""
    served("projects", "add")
    served.serve()
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    yield Screen(served, context)
    context.close()
