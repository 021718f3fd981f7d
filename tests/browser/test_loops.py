"""Loops in the browser: made, started, paused, reprioritised and deleted."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.acceptance.sandbox import task
from tests.browser.conftest import Screen

pytestmark = pytest.mark.browser

TEMPLATE = """\
description: Write one file
parameters:
  file: {pattern: "[a-z]+", description: the name of the file}
plan:
  title: Write {{file}}
  tasks:
    - {id: "{{file}}", title: "Write {{file}}", acceptance: "test -s {{file}}"}
"""


def _source(screen: Screen, name: str, *tasks: dict[str, object]) -> None:
    path: Path = screen.served.plan(name, list(tasks))
    path.rename(screen.served.repository / path.name)


@pytest.mark.capability("C109")
def test_a_loop_is_made_started_paused_and_deleted_in_the_browser(screen: Screen) -> None:
    served = screen.served
    gate = served.gate("go")
    served.play({"slow": [[gate.step, {"write": "slow", "text": "1\n"}]]})
    _source(screen, "plan", task("slow", "test -s slow"))
    screen.sign_in()
    page = screen.page
    page.get_by_role("link", name="Loops").click()
    expect(page.get_by_role("heading", name="No loop yet")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="New loop").last.click()
    # Work that lies in the project is offered; what does not exist is refused beside the field.
    expect(page.get_by_role("radio")).to_be_checked()
    page.get_by_label("Another file or folder").fill("missing.yaml")
    page.get_by_role("button", name="Create", exact=True).last.click()
    expect(page.get_by_role("alert")).to_contain_text("The project has no missing.yaml")
    expect(page.get_by_label("Another file or folder")).to_have_value("missing.yaml")
    page.get_by_role("button", name="Create and start").first.click()
    status = page.locator(".page-head .status")
    expect(status).to_have_text(re.compile("Running"), timeout=30_000)
    expect(page.locator("#health")).to_contain_text("by process")
    expect(page.locator("#health").get_by_role("link", name="slow")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Pause").click()
    expect(status).to_have_text(re.compile("Paused"), timeout=30_000)
    expect(page.locator("#health")).to_contain_text("the loop is paused")
    gate.let_go()
    page.get_by_role("button", name="Resume").click()
    expect(status).to_have_text(re.compile("Done"), timeout=60_000)
    # Before the loop is gone: its page may ask for it once more while the next one loads.
    assert screen.complaints == []
    page.on("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No loop yet")).to_be_visible()


@pytest.mark.more
def test_loops_change_their_priority_by_keys_and_by_dragging(screen: Screen) -> None:
    for name in ("one", "two"):
        _source(screen, name, task(name, f"test -s {name}"))
        served = screen.served
        project = served.get("/api/projects")["projects"][0]["projectId"]
        made = served.post("/api/loops", {"project_id": project, "source": f"{name}.yaml", "name": name})
        assert made.status_code == 201, made.text
    screen.sign_in()
    page = screen.open("/loops")
    rows = page.locator("tr[draggable]")
    expect(rows).to_have_text([re.compile("one"), re.compile("two")])
    field = page.get_by_label("Priority of two")
    field.press("ArrowDown")
    expect(rows).to_have_text([re.compile("two"), re.compile("one")])
    expect(page.get_by_label("Priority of two")).to_have_value("4")
    page.get_by_label("Priority of one").locator("xpath=ancestor::tr").drag_to(rows.first)
    expect(page.get_by_label("Priority of one")).to_have_value("4")
    expect(rows).to_have_text([re.compile("one"), re.compile("two")])
    # What is chosen is in the address.
    page.get_by_role("link", name="Not started").click()
    expect(page).to_have_url(re.compile(r"/loops\?status=idle$"))
    expect(rows).to_have_count(2)
    page.get_by_role("link", name=re.compile("^Failed")).click()
    expect(page.get_by_role("heading", name="No loop is like this")).to_be_visible()
    assert screen.complaints == []


@pytest.mark.more
def test_wrong_values_of_a_template_are_named_beside_their_fields(screen: Screen) -> None:
    served = screen.served
    project = served.get("/api/projects")["projects"][0]["projectId"]
    made = served.ask("PUT", f"/api/projects/{project}/templates/write-file", json={"text": TEMPLATE})
    assert made.status_code == 200, made.text
    screen.sign_in()
    page = screen.open("/loops/new?way=template")
    field = page.get_by_label("file the name of the file")
    field.fill("Not a name")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("Not a name")
    expect(page.locator(f"[id='{field.get_attribute('aria-describedby')}']")).to_contain_text(
        "expected a text that matches [a-z]+"
    )
    field.fill("hello")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="No plan yet")).to_be_visible()
    assert screen.complaints == []


@pytest.mark.more
def test_a_loop_whose_work_nothing_would_check_says_what_to_do(screen: Screen) -> None:
    repository = screen.served.repository
    (repository / "TODO.md").write_text("# To do\n\n- Write a greeting\n")
    screen.sign_in()
    page = screen.open("/loops/new")
    expect(page.locator("label.option")).to_contain_text("To-do list, 1 of 1 open")
    page.get_by_role("button", name="Create and start").first.click()
    head, told = page.locator(".page-head"), page.locator("#not-started")
    expect(told).to_contain_text("Run loopwright init", timeout=30_000)
    expect(head).to_contain_text("Could not start")
    expect(head).to_contain_text("no tasks yet")
    expect(head).to_contain_text("To-do list")
    expect(page.get_by_role("button", name="Start", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Loops").first.click()
    expect(page.locator("tr[draggable]")).to_contain_text("Could not start")
    page.get_by_role("link", name="Home", exact=True).first.click()
    page.get_by_role("link", name=re.compile("could not start")).click()
    # It does what the sentence says, and starts again.
    (repository / "loopwright.toml").write_text("allow_unverified = true\n")
    told.get_by_role("button", name="Start again").click()
    expect(told).to_have_count(0)
    expect(page.get_by_role("heading", name="Current plan")).to_be_visible(timeout=60_000)
    assert screen.complaints == []
