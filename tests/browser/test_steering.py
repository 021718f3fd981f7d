"""The buttons with which you steer tasks, and the rows that they change."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.acceptance.sandbox import task
from tests.browser.conftest import Screen
from tests.waiting import eventually

from loopwright.core.rows.model import Role, Run

pytestmark = [pytest.mark.browser, pytest.mark.more]

HANG = {"hang": 90}
TASKS = ("back", "vain", "mine", "slow")


def _at_work(screen: Screen, plan: str, key: str) -> Page:
    """Open the page of a task when its agent works."""
    screen.served.until_started(key)
    page = screen.open(f"/plans/{plan}/tasks/{key}")
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Working"), timeout=30_000)
    return page


def test_tasks_are_skipped_taken_over_interrupted_and_rolled_back(screen: Screen) -> None:
    served = screen.served
    served.play(
        {
            "back": [[{"write": "back", "text": "1\n"}], [{"write": "back", "text": "2\n"}]],
            "vain": [[HANG]],
            "mine": [[HANG]],
            "slow": [[HANG], [{"write": "slow", "text": "1\n"}]],
        }
    )
    tasks = [task(key, f"test -s {key}") for key in TASKS]
    # One agent at a time: each click makes room for the next task.
    assert served.run(served.plan("four", tasks), "--detach", "--parallel", "1").code == 0
    plan = served.newest_plan()
    screen.sign_in()
    screen.page.on("dialog", lambda asked: asked.accept())

    page = _at_work(screen, plan, "vain")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator(".page-head .status")).to_have_text(re.compile("Cancelled"), timeout=60_000)
    assert served.task("vain").status == "CANCELLED"

    page = _at_work(screen, plan, "mine")
    page.get_by_role("button", name="Take over").click()
    expect(page.get_by_role("button", name="Hand back")).to_be_visible(timeout=60_000)
    assert served.task("mine").taken_by

    page = _at_work(screen, plan, "slow")
    (run,) = (one for one in served.rows(Run, role=Role.IMPLEMENTER) if one.task_id == served.task("slow").id)
    screen.open(f"/runs/{run.id}")
    page.locator("#interrupt").click()
    page.get_by_label(re.compile("What should the agent know")).fill("be quick")
    page.get_by_role("button", name="Interrupt the agent").click()
    eventually(lambda: served.task("slow").status == "COMPLETE", timeout=90)
    assert [one.note for one in served.attempts("slow")] == ["", "be quick"]

    page = screen.open(f"/plans/{plan}/tasks/back")
    page.get_by_role("button", name="Roll back").click()
    expect(page.locator(".attempt")).to_have_count(2, timeout=60_000)
    (event,) = served.events("plan_rolled_back")
    assert [one["task"] for one in event.payload["took_out"]] == [served.task("back").id]
    assert [one.n for one in served.attempts("back")] == [1, 2]
    assert screen.complaints == []
