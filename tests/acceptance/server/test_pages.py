"""Pages over HTTP: signing in, what a browser is told, and forms that only our own pages may send."""

import re

import httpx
import pytest
from tests.acceptance.server.conftest import Served

from loopwright.server.guard import COOKIE


def _browser(served: Served, **headers: str) -> httpx.Client:
    return httpx.Client(
        base_url=served.listening["url"], headers={"Accept": "text/html", **headers}, timeout=60
    )


def _sign_in(served: Served, browser: httpx.Client, next: str = "/") -> httpx.Response:
    return browser.post(
        "/login", data={"token": served.token, "next": next}, headers={"Origin": served.listening["url"]}
    )


def test_a_browser_without_a_cookie_is_sent_to_the_form_and_back(served_once: Served) -> None:
    with _browser(served_once) as browser:
        sent = browser.get("/plans/plan_x?tab=time")
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=/plans/plan_x%3Ftab%3Dtime")
        assert browser.get("/login").status_code == 200
        wrong = browser.post("/login", data={"token": "lw_wrong"})
        assert (wrong.status_code, COOKIE in wrong.cookies) == (200, False)
        done = _sign_in(served_once, browser, "/board")
        assert (done.status_code, done.headers["location"]) == (303, "/board")
        kept = done.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=lax" in kept
        shown = browser.get("/board")
        assert shown.status_code == 200
        policy = shown.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("target", ["//evil.example/x", "https://evil.example", "/\\evil.example"])
def test_signing_in_never_leads_to_another_site(served_once: Served, target: str) -> None:
    with _browser(served_once) as browser:
        assert _sign_in(served_once, browser, target).headers["location"] == "/"


def test_a_form_of_another_site_changes_nothing(served_once: Served) -> None:
    with _browser(served_once) as browser:
        _sign_in(served_once, browser)
        foreign = browser.post("/logout", headers={"Origin": "https://evil.example"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "origin_wrong")
        unnamed = browser.post("/questions/ask_x", data={"answer": "yes"})
        assert unnamed.status_code == 401
        ours = browser.post(
            "/questions/ask_x", data={"answer": "yes"}, headers={"Origin": served_once.listening["url"]}
        )
        assert "there is no question ask_x" in ours.text


def test_a_link_signs_in_once(served_once: Served) -> None:
    link = str(served_once("open", "/board", "--json").document["url"])
    assert served_once.token not in link
    with _browser(served_once) as browser:
        first = browser.get(link)
        assert (first.status_code, first.headers["location"]) == (303, "/board")
        assert browser.get("/board").status_code == 200
    with _browser(served_once) as another:
        assert another.get(link).status_code == 200
        assert another.get("/board").status_code == 303


def test_files_of_the_pages_need_no_token_and_lead_nowhere_else(served_once: Served) -> None:
    with _browser(served_once) as browser:
        assert browser.get("/static/htmx.min.js").headers["content-type"].startswith("text/javascript")
        [sheet] = re.findall(r'rel="stylesheet" href="([^"]+)"', browser.get("/login").text)
        together = browser.get(sheet)
        assert all(
            browser.get(f"/static/{one}.css").text in together.text for one in ("app", "lists", "reading")
        )
        assert "immutable" in together.headers["cache-control"]
        assert browser.get("/static/..%2Frender.py").status_code == 404
        assert browser.get("/static/nothing.css").status_code == 404


def test_an_unknown_page_is_a_page_and_an_unknown_endpoint_is_a_problem(served_once: Served) -> None:
    with _browser(served_once) as browser:
        _sign_in(served_once, browser)
        for path in ("/nothing", "/plans/plan_x", "/runs/run_x", "/projects/proj_x"):
            missing = browser.get(path)
            assert (missing.status_code, missing.headers["content-type"].partition(";")[0]) == (
                404,
                "text/html",
            )
        assert browser.get("/api/plans/plan_x").headers["content-type"] == "application/problem+json"
