"""What people read for long: transcripts of any size, and changes with comments that go back to the agent."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.acceptance.sandbox import task
from tests.browser.conftest import Screen
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Role, Run
from loopwright.keeper import places

pytestmark = pytest.mark.browser

WRONG = "def double(n):\n    return n + n if n else 1\n"
RIGHT = "def double(n):\n    return 2 * n\n"


def test_a_comment_on_a_line_goes_back_to_the_agent(screen: Screen) -> None:
    served = screen.served
    served.play(
        {
            "double": [
                [{"write": "double.py", "text": WRONG}],
                [{"expect_prompt": "double.py:2"}, {"write": "double.py", "text": RIGHT}],
            ]
        }
    )
    plan = screen.run("numbers", [task("double", "test -s double.py")])
    screen.sign_in()
    page = screen.open(f"/plans/{plan}/tasks/double")
    # A refusal stays through live updates until it is closed.
    page.get_by_role("button", name="Send back to an agent").click()
    refusal = page.get_by_role("alert")
    expect(refusal).to_contain_text("Nothing is said about what is wrong")
    with page.expect_response(lambda reply: "/tasks/" in reply.url):
        page.evaluate("document.getElementById('live').dispatchEvent(new Event('changed'))")
    expect(refusal).to_be_visible()
    refusal.get_by_role("button", name="Close").click()
    expect(refusal).to_have_count(0)
    line = page.get_by_role("button", name="Comment on line 1")
    line.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("Zero is an ordinary number.")
    # Something happens elsewhere: the page loads itself again, and what was typed stays.
    with page.expect_response(lambda reply: "/tasks/" in reply.url):
        page.evaluate("document.getElementById('live').dispatchEvent(new Event('changed'))")
    expect(page.get_by_label("Comment on double.py:2")).to_have_value("Zero is an ordinary number.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#review-count")).to_have_text("with 1 comment")
    page.reload()
    expect(page.locator(".draft")).to_contain_text("Zero is an ordinary number.")
    note = page.get_by_label(re.compile("What should the agent do differently"))
    note.fill("Please use a product.")
    # What cannot be sent stays, with the reason; and so it does when you are signed out.
    page.context.set_offline(True)
    page.get_by_role("button", name="Send back to an agent").click()
    expect(page.get_by_role("alert")).to_contain_text("The daemon does not answer")
    page.context.set_offline(False)
    screen.complaints.clear()
    cookies = page.context.cookies()
    page.context.clear_cookies()
    page.get_by_role("button", name="Send back to an agent").click()
    expect(page.get_by_role("alert")).to_contain_text("You are signed out")
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    screen.complaints.clear()
    expect(note).to_have_value("Please use a product.")
    expect(page.locator(".draft")).to_contain_text("Zero is an ordinary number.")
    page.get_by_role("button", name="Send back to an agent").click()
    expect(page.locator("#attempt-2, .attempt").nth(1)).to_contain_text("Landed", timeout=60_000)
    expect(page.get_by_text("Zero is an ordinary number.")).to_be_visible()
    expect(page.locator(".draft")).to_have_count(0)
    second = eventually(lambda: [one for one in served.rows(Attempt) if one.n == 2])[0]
    assert "double.py:2\n> return n + n if n else 1\nZero is an ordinary number." in second.evidence
    assert "Please use a product." in second.evidence
    page.get_by_role("link", name="Attempt 1").click()
    expect(page.locator("table.code")).to_contain_text("return n + n if n else 1")
    expect(page.locator(".line-no")).to_have_count(0)
    assert screen.complaints == []


@pytest.mark.more
def test_a_transcript_of_200_mb_opens_at_once_and_the_tab_stays_small(screen: Screen) -> None:
    served = screen.served
    served.play({"big": [[{"write": "big", "text": "1\n"}]]})
    plan = screen.run("big", [task("big", "test -s big")])
    run = served.row(Run, plan_id=plan, role=Role.IMPLEMENTER)
    size = _grow(served.home / "runs" / run.id, 200)
    screen.sign_in()
    page = screen.open(f"/runs/{run.id}")
    box = page.locator("#transcript")
    expect(box).to_contain_text("line 1999999 ")
    end = page.locator(".piece").last
    assert end.get_attribute("data-end") == str(size)
    before = _elements(page)
    earlier = page.get_by_role("button", name="Show earlier output")
    for _ in range(30):
        shown = page.locator(".piece").first.get_attribute("data-begin")
        earlier.click()
        expect(page.locator(".piece").first).not_to_have_attribute("data-begin", shown or "")
    assert _elements(page) < before + 20_000
    assert page.locator(".piece").count() <= 14
    expect(page.get_by_role("button", name="Show later output")).to_be_visible()
    # A search goes through all of it, and leads there.
    page.get_by_label("Search in the transcript").fill("line 1234 x")
    page.keyboard.press("Enter")
    page.locator("#hits a").first.click()
    expect(page.locator(".piece").first).to_contain_text("line 1234 x")
    assert page.locator(".piece").first.get_attribute("data-begin") != "0"
    assert screen.complaints == []


def _elements(page: Page) -> int:
    return int(page.evaluate("document.getElementsByTagName('*').length"))


def _grow(directory: Path, megabytes: int) -> int:
    """Add to the recording of a run, and return its size."""
    [segment] = (directory / places.OUTPUT).iterdir()
    lines = megabytes * 10_000
    with segment.open("ab") as file:
        for begin in range(0, lines, 10_000):
            made = (
                f'o {{"event":"text","text":"line {n} {"x" * 64}"}}\n' for n in range(begin, begin + 10_000)
            )
            file.write("".join(made).encode())
        return file.tell()
