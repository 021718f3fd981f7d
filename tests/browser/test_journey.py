"""The journey of a user who only has a browser."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.acceptance.control.greeting import PLAN, block
from tests.acceptance.control.workshop import kill
from tests.acceptance.sandbox import task
from tests.browser.conftest import Screen
from tests.waiting import eventually

from loopwright.core.rows.model import Project
from loopwright.services.dashboard.trail import MOST

pytestmark = pytest.mark.browser


def _start(screen: Screen, name: str, tasks: list[dict[str, object]]) -> str:
    """Start a plan over HTTP and return its id."""
    served = screen.served
    path = served.plan(name, tasks)
    path.rename(served.repository / path.name)
    wanted = {"project_id": served.row(Project).id, "source": path.name}
    loop = served.post("/api/loops", wanted).json()["id"]
    assert served.post(f"/api/loops/{loop}/start").status_code == 202
    return str(eventually(lambda: served.get(f"/api/loops/{loop}")["plan_id"], timeout=60))


@pytest.mark.more
@pytest.mark.capability("C109", "C110")
def test_a_question_is_seen_answered_and_verified_without_a_reload(screen: Screen) -> None:
    screen.served.play(
        {
            "good": [[{"say": "<script>alert(1)</script>\x1b[31mred"}, {"write": "good", "text": "1\n"}]],
            "hard": [[{"claim": "done"}], [{"write": "hard", "text": "1\n"}]],
        }
    )
    screen.sign_in()
    page = screen.page
    expect(page.get_by_text("Nothing runs yet")).to_be_visible()
    plan = _start(
        screen, "two", [task("good", "test -s good"), {**task("hard", "test -s hard"), "max_attempts": 1}]
    )
    # The page follows by itself: the question appears with the badge.
    badge = page.locator("#asks .badge.badge-awaiting")
    expect(badge).to_have_text("NEEDS RESPONSE", timeout=60_000)
    expect(badge).to_have_css("animation-name", "pulse")
    page.get_by_role("link", name="two").first.click()
    expect(page.get_by_role("heading", name="two", exact=True)).to_be_visible()
    expect(page.locator("#graph a")).to_have_count(2)
    page.get_by_role("button", name="retry").first.click()
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Verified"), timeout=60_000)
    expect(page.locator("#asks .badge")).to_have_count(0)
    page.get_by_role("link", name="Receipt").click()
    expect(page.get_by_text("These checks passed on exactly this tree")).to_be_visible()
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.get_by_role("link", name=re.compile("^good")).click()
    page.get_by_role("link", name="implementer").first.click()
    expect(page.locator("#transcript")).to_contain_text("<script>alert(1)</script>red")
    assert page.locator("#transcript script").count() == 0
    assert plan in page.get_by_role("navigation", name="Where you are").get_by_role("link").nth(
        1
    ).get_attribute("href")
    assert screen.complaints == []


def _add(page: Page, name: str, title: str) -> None:
    page.get_by_role("button", name="Add a task").click()
    expect(page.get_by_label("Name of the new task").last).to_be_focused()
    page.keyboard.type(name)
    page.get_by_label("Title of the new task").last.fill(title)
    page.get_by_label("Description of the new task").last.fill(title)


@pytest.mark.capability("C024", "C110", "C111", "C112")
def test_the_whole_journey_from_a_goal_to_its_receipt(screen: Screen) -> None:
    served = screen.served
    gate = served.gate("verify")
    armed = served.place / "armed"
    waits = f"if test -e {armed}; then {gate.shell}; fi"
    plan = PLAN.replace("  - grep -q hello greet.txt", f"  - {waits}\n  - grep -q hello greet.txt")
    served.play(
        {
            "plan": [[{"claim": block(plan)}]],
            "bonjour": [*[[{"claim": "done"}]] * 3, [{"write": "bonjour", "text": "bonjour\n"}]],
        }
    )
    screen.sign_in()
    page = screen.page
    page.get_by_role("link", name="Projects").click()
    # Registering it again leads to the project that is there.
    page.get_by_label("Path of a repository on this machine").fill(str(served.repository))
    page.get_by_role("button", name="Register a project").click()
    expect(page.get_by_role("heading", name="greeter")).to_be_visible()
    expect(page.locator("#plan, #dispatch, #verify")).to_have_count(0)
    page.get_by_label("Goal to inspect").fill("Say hello in French")
    page.get_by_role("button", name="Inspect a goal").click()
    page.locator("#plan").click()
    expect(page.get_by_label("Packet")).to_contain_text("Say hello in French")
    page.get_by_role("button", name="Write the plan").click()
    # The draft is shown, and changed before anything runs.
    title = page.get_by_label("Title of bonjour")
    expect(title).to_have_value("Say bonjour", timeout=90_000)
    title.fill("Say bonjour politely")
    _add(page, "salut", "Say salut")
    _add(page, "vain", "Not needed")
    page.locator("#draft fieldset").last.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Save the draft").click()
    expect(page.get_by_label("Title of salut")).to_have_value("Say salut")
    expect(page.get_by_label("Title of bonjour")).to_have_value("Say bonjour politely")
    # What is refused stays as it was typed.
    page.get_by_label("Depends on").last.fill("nothing-known")
    page.get_by_role("button", name="Save the draft").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing-known")
    expect(page.get_by_label("Depends on").last).to_have_value("nothing-known")
    page.get_by_label("Remove salut").check()
    page.get_by_role("button", name="Save the draft").click()
    expect(page.locator("#draft fieldset")).to_have_count(1)
    page.get_by_role("button", name="Dispatch", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("nothing to estimate from")
    dialog.get_by_role("button", name="Start 1 task").click()
    # It is watched live: the agent does nothing three times, and asks.
    badge = page.locator("#asks .badge.badge-awaiting")
    expect(badge).to_have_text("NEEDS RESPONSE", timeout=90_000)
    expect(badge).to_have_css("animation-name", "pulse")
    page.get_by_role("button", name="retry", exact=True).click()
    page.get_by_role("link", name=re.compile("^greeter")).first.click()
    expect(page.locator("#verify")).to_be_visible(timeout=90_000)
    armed.touch()
    page.locator("#verify").click()
    gate.until_reached()
    steps = page.locator("#gate li")
    expect(steps).to_have_count(3, timeout=30_000)
    expect(steps.last).to_contain_text("Queued")
    gate.let_go()
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Verified"), timeout=90_000)
    page.get_by_role("link", name="Tasks", exact=True).click()
    row = page.get_by_role("row").filter(has_text="Say bonjour politely")
    expect(row).to_contain_text("grep -q bonjour bonjour")
    expect(row.get_by_role("link", name=re.compile("checks passed"))).to_be_visible()
    page.get_by_role("link", name="Receipt").click()
    expect(page.get_by_text("These checks passed on exactly this tree")).to_be_visible()
    # It waits for you until you accept it.
    page.get_by_role("link", name="Home", exact=True).first.click()
    page.get_by_role("region", name="Ready to accept").get_by_role("link").click()
    page.get_by_role("button", name="Accept", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Accept the work").click()
    expect(page.locator(".next")).to_contain_text("The work is in trunk", timeout=60_000)
    assert served.git("show", "trunk:bonjour") == "bonjour\n"
    assert screen.complaints == []


def test_a_page_reconnects_after_the_daemon_restarts_and_misses_nothing(screen: Screen) -> None:
    served = screen.served
    gate = served.gate("go")
    served.play({"slow": [[gate.step, {"write": "slow", "text": "1\n"}]]})
    screen.sign_in()
    plan = _start(screen, "slow", [task("slow", "test -s slow")])
    page = screen.open(f"/plans/{plan}?tab=events")
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Running"), timeout=60_000)
    expect(page.locator(".trail li").first).to_be_visible()
    port = screen.url.rpartition(":")[2]
    kill(served.going[-1])
    gate.let_go()
    served.start("serve", "--port", port, "--json")
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Verified"), timeout=90_000)
    expect(page.locator("#connection")).to_be_hidden(timeout=30_000)
    every = [one for one in served.events() if one.plan == plan][-MOST:]
    expect(page.locator(".trail li")).to_have_count(len(every))
    shown = page.locator(".trail li").evaluate_all("all => all.map((one) => one.id)")
    assert sorted(shown) == sorted(f"event-{one.n}" for one in every)


def _tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus."""
    expect(wanted).to_be_visible(timeout=60_000)
    for _ in range(80):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}")


def _go(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.more
def test_a_plan_is_started_answered_and_accepted_by_keys_alone(screen: Screen) -> None:
    served = screen.served
    served.play({"hard": [[{"claim": "done"}], [{"write": "hard", "text": "1\n"}]]})
    path = served.plan("plan", [{**task("hard", "test -s hard"), "max_attempts": 1}])
    path.rename(served.repository / path.name)
    page = screen.page
    page.goto(screen.url)
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.insert_text(served.token)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing runs yet")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_role("main").get_by_role("link", name="New loop"))
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_role("button", name="Create and start").first)
    page.keyboard.press("Enter")
    # The badge leads to the question.
    expect(page.locator("#asks .badge")).to_be_visible(timeout=60_000)
    _go(page, "g", "q")
    _tab_to(page, page.get_by_role("button", name="retry", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No open questions")).to_be_visible()
    _go(page, "g", "h")
    _tab_to(page, page.get_by_role("region", name="Ready to accept").get_by_role("link"))
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_role("button", name="Accept", exact=True))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("Enter")
    _tab_to(page, dialog.get_by_role("button", name="Accept the work"))
    page.keyboard.press("Enter")
    expect(page.locator(".next")).to_contain_text("The work is in trunk", timeout=60_000)
    assert screen.complaints == []
