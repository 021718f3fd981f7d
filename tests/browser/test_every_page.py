"""What holds on every page: nothing that others wrote is run or hidden, and nothing is cut off."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.conftest import sign_in
from tests.browser.hostile import furnish
from tests.integration.server.api import Api, serving

pytestmark = pytest.mark.browser

SIZES: Final = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 860}}
_ID: Final = re.compile(r"(plan|task|run|proj|loop|ask|tok|acct|worker)_[0-9a-f-]+|[0-9]+")
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ALL: Final = 60
_SOME: Final = 24


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, dict[str, str]]]:
    """A served home in which every text is hostile, and its pages."""
    place = tmp_path_factory.mktemp("hostile")
    with serving(place / "home") as api:
        yield api, furnish(api, place)


def visit(page: Page, api: Api, known: dict[str, str], most: int = _ALL) -> Iterator[str]:
    """Open the known pages and every kind of page that they link to, signed in as the owner."""
    sign_in(page, api.url, api.token)
    waiting = ["/", *known.values()]
    kinds = {_ID.sub("*", path) for path in ["/", *(p for n, p in known.items() if "DRAFT" not in n)][:1]}
    seen = set(waiting)
    opened = 0
    while waiting and opened < most:
        path = waiting.pop(0)
        page.goto(api.url + path)
        opened += 1
        yield path
        links = page.eval_on_selector_all("a[href^='/']", "all => all.map((one) => one.getAttribute('href'))")
        for link in links:
            link = link.partition("#")[0]
            if (
                not link.startswith(("/api/", "/static/"))
                and link not in seen
                and _ID.sub("*", link) not in kinds
            ):
                kinds.add(_ID.sub("*", link))
                seen.add(link)
                waiting.append(link)


def clipped(page: Page) -> list[str]:
    """Return what is wider than the page, unless it is inside of something that scrolls by itself."""
    found: list[str] = page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= wide) return [];
          const inside = (one) => {
            for (let up = one.parentElement; up; up = up.parentElement)
              if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX)) return true;
            return false;
          };
          const all = [...document.querySelectorAll('body *')]
            .filter((one) => one.getBoundingClientRect().right > wide + 1 && !inside(one));
          return ['the page scrolls sideways', ...all.slice(0, 5).map((one) => one.outerHTML.slice(0, 120))];
        }"""
    )
    return found


@pytest.mark.parametrize("most", [_SOME, pytest.param(_ALL, marks=pytest.mark.more)])
def test_hostile_text_is_shown_as_it_is_on_every_page_and_nothing_is_wider_than_a_phone(
    browser: Browser, hostile: tuple[Api, dict[str, str]], most: int
) -> None:
    api, known = hostile
    context = browser.new_context(viewport=SIZES["phone"])  # type: ignore[arg-type]
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("response", lambda reply: complaints.append(reply.url) if reply.status >= 400 else None)
    page.on("dialog", lambda asked: complaints.append(f"dialog: {asked.message}"))
    problems: dict[str, Any] = {}
    seen = 0
    for path in visit(page, api, known, most):
        text = page.locator("body").inner_text()
        seen += "<script>" in text
        wrong = {
            "complaints": list(complaints),
            "title": "" if page.title() != "pwned" else page.title(),
            "scripts": page.locator("script:not([src^='/static/'])").count(),
            "images": page.locator("img, b:has(script)").count(),
            "hidden": sorted(set(_HIDDEN.findall(text))),
            "wide": clipped(page),
        }
        complaints.clear()
        if any(wrong.values()):
            problems[path] = {name: value for name, value in wrong.items() if value}
    context.close()
    assert not problems, "\n".join(f"{path}: {wrong}" for path, wrong in problems.items())
    assert seen > most / 4


AXE: Final = Path(__file__).resolve().parents[2] / ".axe" / "axe_playwright_python" / "axe.min.js"


@pytest.mark.more
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed: `sh scripts/setup.sh axe` installs it")
def test_axe_finds_nothing_serious_on_any_page(
    browser: Browser, hostile: tuple[Api, dict[str, str]], size: str, scheme: Any
) -> None:
    source = AXE.read_text(encoding="utf-8")
    api, known = hostile
    context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    problems: dict[str, Any] = {}
    for path in visit(page, api, known):
        page.evaluate(source)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        wrong = [f"{one['id']}: {one['nodes'][0]['html'][:160]} ({len(one['nodes'])})" for one in serious]
        if wrong or clipped(page):
            problems[path] = [*wrong, *clipped(page)]
    context.close()
    assert not problems, "\n".join(f"{path}: {wrong}" for path, wrong in problems.items())
