"""The pages without a mouse: a palette, single keys, and everything in reach of Tab."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import sign_in
from tests.contracts.store import rows
from tests.integration.server.api import Api, serving

from loopwright.core.rows.model import Loop, Plan
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LoopState, PlanState

pytestmark = pytest.mark.browser


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """A served home with two plans and a task."""
    with serving(tmp_path / "home") as made:
        project = rows.project(name="greeter")
        loop = rows.loop(project, state=LoopState.PAUSED)
        running = rows.plan(loop, title="Say hello", status=PlanState.RUNNING)
        older = rows.plan(loop, title="Older work", status=PlanState.VERIFIED)
        found = (project, loop, running, older, rows.task(running, key="hello", title="Write the greeting"))

        def insert(tx: object) -> None:
            for row in found:
                tx.insert(row)  # type: ignore[attr-defined]
            tx.update(Loop, loop.id, plan_id=running.id)  # type: ignore[attr-defined]

        made.write(insert)
        yield made


@pytest.fixture
def page(api: Api, browser: Browser) -> Page:
    """A page of a browser that is signed in."""
    made = browser.new_page(viewport={"width": 1280, "height": 860})
    sign_in(made, api.url, api.token)
    made.wait_for_load_state()  # keys work from then on
    return made


def test_the_keyboard_leads_everywhere(api: Api, page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keys")).to_be_hidden()
    # A task by its name.
    page.keyboard.press("Control+k")
    page.keyboard.type("write greet")
    chosen = page.locator("#palette [aria-selected=true]")
    expect(chosen).to_contain_text("hello: Write the greeting")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Write the greeting")).to_be_visible()
    # Pages by their letters, items with j, views with brackets.
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("link", name="Say hello")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Say hello")).to_be_focused()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=re.compile("Older work"))).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Say hello")).to_be_visible()
    page.keyboard.press("]")
    page.wait_for_url(re.compile("tab=time"))
    # What this page can do is in the palette too; letters in its field are text.
    page.keyboard.press("/")
    page.keyboard.type("canc")
    expect(chosen).to_contain_text("Cancel")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    # The field of the closed palette may still have the focus: this is a key nevertheless, and the choice is kept.
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{api.url}/board")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_question_is_answered_without_a_mouse(api: Api, page: Page) -> None:
    plan = api.at.home.store.read_sync(lambda tx: tx.find(Plan, title="Say hello"))[0]
    question = Question(
        id=rows.new_id(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id="",
        run_id="",
        kind="choice",
        key="k",
        text="Hello or hi?",
        options=("hello", "hi"),
        created_at=rows.AT,
    )
    api.write(lambda tx: tx.insert(question))
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_text("Hello or hi?")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="The plan")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="hi", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No open questions")).to_be_visible()
    answered = api.at.home.store.read_sync(lambda tx: tx.get(Question, question.id))
    assert answered is not None
    assert answered.answer == "hi"
