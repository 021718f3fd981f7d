"""The pages about the whole home: costs, alerts, workers, quota, settings and tokens."""

import re

import pytest
from playwright.sync_api import expect
from tests.acceptance.sandbox import task
from tests.browser.conftest import Screen

from loopwright.core.rows.model import Project
from loopwright.testing.sample import make_sample_repository

pytestmark = pytest.mark.browser


@pytest.mark.more
def test_costs_workers_quota_and_settings_say_what_is_known(screen: Screen) -> None:
    served = screen.served
    usage = {"usage": {"input_tokens": 10, "output_tokens": 5, "cost_micros": 1_250_000}}
    served.play({"good": [[{"write": "good", "text": "1\n"}, usage]], "bad": [[{"claim": "done"}, usage]]})
    screen.sign_in()
    page = screen.page
    page.get_by_role("link", name="Costs").click()
    expect(page.get_by_role("heading", name="Nothing was spent")).to_be_visible()
    path = served.plan(
        "two", [task("good", "test -s good"), {**task("bad", "test -s bad"), "max_attempts": 1}]
    )
    path.rename(served.repository / path.name)
    wanted = {"project_id": served.row(Project).id, "source": path.name}
    loop = served.post("/api/loops", wanted).json()["id"]
    assert served.post(f"/api/loops/{loop}/start").status_code == 202
    # The page follows by itself.
    total = page.locator(".fact").first
    expect(total).to_contain_text("$2.50", timeout=60_000)
    expect(page.locator("#by-day .day title").last).to_have_text(re.compile(r"\$2\.50, 2 runs$"))
    expect(page.get_by_role("table", name="By agent")).to_contain_text("scripted")
    expect(page.get_by_role("table", name="By role")).to_contain_text("implementer")
    page.get_by_role("link", name="7 days").click()
    expect(page).to_have_url(re.compile(r"\?days=7$"))
    expect(page.locator("#by-day .day")).to_have_count(7)

    page.get_by_role("link", name="Alerts").click()
    failed = page.locator(".alert").filter(has_text="Error: bad:")
    expect(failed).to_be_visible(timeout=60_000)
    failed.get_by_role("button", name="Acknowledge").click()
    expect(failed).to_have_count(0)
    page.get_by_role("link", name=re.compile("^Acknowledged")).click()
    expect(failed).to_contain_text("acknowledged by token:owner")
    page.get_by_role("link", name=re.compile("^Warnings")).click()
    expect(page.locator(".alert")).to_have_count(1)
    expect(page.locator(".alert")).to_contain_text("Answer it.")
    page.get_by_role("link", name="Workers").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("Alive")
    page.get_by_role("link", name="Quota").click()
    expect(page.get_by_role("article")).to_contain_text("The agent reports no limits.")
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("Find a setting").fill("max_cost_per_day")
    expect(page.locator("#settings tbody tr:visible")).to_have_count(1)
    page.get_by_role("link", name=re.compile("^Changed")).click()
    expect(page.locator("#settings tbody tr").first).not_to_contain_text("default")
    assert screen.complaints == []


def test_a_token_for_two_projects_is_shown_once_and_ends_when_it_is_revoked(screen: Screen) -> None:
    other = screen.served.place / "other"
    other.mkdir()
    make_sample_repository(other)
    assert screen.served("projects", "add", cwd=other).code == 0
    screen.sign_in()
    page = screen.open("/tokens")
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Scope").select_option("operate")
    page.get_by_role("checkbox", name="greeter").check()
    page.get_by_role("checkbox", name="other").check()
    page.get_by_role("button", name="Create a token").click()
    made = page.locator("#made-token").inner_text()
    with screen.served.client(made) as client:
        assert len(client.get("/api/projects").json()["projects"]) == 2
        page.get_by_label("Name").fill("ci")
        page.get_by_role("button", name="Create a token").click()
        expect(page.get_by_role("alert")).to_contain_text("There is already a token named 'ci'")
        page = screen.open("/tokens")
        expect(page.get_by_role("row", name=re.compile("^ci operate greeter, other"))).to_be_visible()
        assert made not in page.content()
        page.on("dialog", lambda asked: asked.accept())
        page.get_by_role("row", name=re.compile("^ci")).get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("row", name=re.compile("^ci"))).to_contain_text("revoked")
        assert client.get("/api/projects").status_code == 401
    assert screen.complaints == []
