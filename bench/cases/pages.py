"""The dashboard: how long pages take with many rows, when a browser paints them, and what memory it keeps."""

import contextlib
import http.client
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from bench.cases.api import AT, ServedHome, served_home
from bench.measure import Measurement, Setting, Target
from loopwright.adapters.machine.host import new_id
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Attempt, Loop, Plan, Role, Run, Task
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, RunState, TaskState

CASE: Final = "pages"
PLAN_MS, LIST_MS, PAINT_MS, LIVE_MS, GROWTH_MB = 150, 100, 300, 1_000, 5.0
TASKS: Final = 200
_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--enable-precise-memory-info",
]
_HEAP: Final = "performance.memory.usedJSHeapSize / 1048576"
_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def case(setting: Setting) -> Iterator[Measurement]:
    """Fill a home, ask its daemon for pages, and let a browser look at one while much happens."""
    runs = setting.pick(10_000, 1_000)
    with served_home(setting) as served:
        plan = _fill(served, runs)
        with_all = f"{runs:,} finished runs, {served.sizes[1]:,} plans"
        pages = {
            f"the page of a plan of {TASKS} tasks, as a graph": (f"/plans/{plan}", PLAN_MS),
            f"the same as a table ({runs:,} runs)": (f"/plans/{plan}?tab=tasks", PLAN_MS),
            f"the same in time ({runs:,} runs)": (f"/plans/{plan}?tab=time", PLAN_MS),
            f"the first page ({with_all})": ("/", LIST_MS),
            f"the board ({with_all})": ("/board", LIST_MS),
            f"the list of loops ({served.sizes[0]:,} loops)": ("/loops", LIST_MS),
            f"the page of a project ({with_all})": (f"/projects/{served.project_ids[0]}", LIST_MS),
            f"the palette ({with_all})": ("/find?q=plan", LIST_MS),
        }
        for name, (path, limit) in pages.items():
            values = tuple(_took(served, path) for _ in range(setting.pick(20, 5)))
            yield Measurement(
                case=CASE, name=name, unit="ms", values=values, target=Target(limit=limit, of="value")
            )
        if (chromium := shutil.which("chromium")) is not None:
            yield from _in_browser(served, setting, chromium, plan)


def _fill(served: ServedHome, runs: int) -> str:
    """Add a large plan under way, and finished runs to it and to others; return the plan's id."""
    loop = Loop(
        id=new_id(Kind.LOOP),
        project_id=served.project_ids[0],
        name="large",
        source_kind="yaml",
        source_path="large.yaml",
        state=LoopState.RUNNING,
        created_at=AT,
        updated_at=AT,
    )
    plan = Plan(
        id=new_id(Kind.PLAN),
        project_id=loop.project_id,
        loop_id=loop.id,
        title="A large plan",
        status=PlanState.RUNNING,
        source_sha256="0" * 64,
        base_ref="main",
        base_sha="1" * 40,
        branch="loopwright/large",
        policy=Policy(),
        created_at=AT,
        updated_at=AT,
        executed_at=AT,
    )
    tasks: list[Task] = []
    rows: list[Any] = []
    for n in range(TASKS):
        ended = n < TASKS // 2
        needs = (tasks[n - 7].id, tasks[n - 10].id) if n >= 10 else ()
        task = Task(
            id=new_id(Kind.TASK),
            plan_id=plan.id,
            key=f"task-{n}",
            title=f"Change part {n} of the program",
            depends_on=needs,
            position=n,
            status=TaskState.COMPLETE if ended else TaskState.QUEUED,
            created_at=AT,
            updated_at=AT,
        )
        attempt = Attempt(
            id=new_id(Kind.ATTEMPT),
            plan_id=plan.id,
            task_id=task.id,
            n=1,
            state=AttemptState.LANDED if ended else AttemptState.QUEUED,
            agent="claude",
            created_at=AT,
            updated_at=AT,
        )
        tasks.append(replace(task, attempt_id=attempt.id))
        rows.append(attempt)
    for n in range(runs):
        # A tenth of them belongs to the large plan.
        task, mine = tasks[n % (TASKS // 2)], n % 10 == 0
        began = AT + timedelta(seconds=n)
        rows.append(
            Run(
                id=new_id(Kind.RUN),
                plan_id=plan.id if mine else served.plan_ids[n % len(served.plan_ids)],
                task_id=task.id if mine else None,
                attempt_id=task.attempt_id if mine else None,
                role=Role.IMPLEMENTER if n % 20 else Role.GATE,
                state=RunState.COMPLETE,
                agent="claude" if n % 20 else None,
                cost_micros=12_000,
                created_at=began,
                started_at=began,
                ended_at=began + timedelta(seconds=30),
            )
        )

    def insert(tx: Any) -> None:
        for row in (loop, plan, *tasks, *rows):
            tx.insert(row)
        tx.update(Loop, loop.id, plan_id=plan.id)

    served.store.transact_sync("bench", insert)
    return plan.id


def _took(served: ServedHome, path: str) -> float:
    """Return how many milliseconds a page took from the request to its last byte."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", served.port)) as link:
        link.connect()
        headers = {"Authorization": f"Bearer {served.token}", "Accept": "text/html"}
        began = time.perf_counter()
        link.request("GET", path, headers=headers)
        reply = link.getresponse()
        reply.read()
        took = (time.perf_counter() - began) * 1000
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status}")
        return took


def _in_browser(served: ServedHome, setting: Setting, chromium: str, plan: str) -> Iterator[Measurement]:
    from playwright.sync_api import sync_playwright

    url = f"http://127.0.0.1:{served.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page()
        page.goto(f"{url}/login")
        page.get_by_label("Token").fill(served.token)
        page.get_by_role("button", name="Sign in").click()
        page.locator("#main").wait_for()
        for name, path in (("the first page", "/"), (f"a plan of {TASKS} tasks", f"/plans/{plan}")):
            values = []
            for _ in range(setting.pick(10, 3)):
                page.goto(url + path)
                while (painted := page.evaluate(_PAINT)) is None:
                    page.wait_for_timeout(10)
                values.append(float(painted))
            yield Measurement(
                case=CASE,
                name=f"first contentful paint of {name}",
                unit="ms",
                values=tuple(values),
                target=Target(limit=PAINT_MS, of="value"),
            )
        yield Measurement(
            case=CASE,
            name="an event until an open page shows it",
            unit="ms",
            values=tuple(_seen_after(served, page, plan, n) for n in range(setting.pick(20, 5))),
            target=Target(limit=LIVE_MS, of="value"),
        )
        seconds = setting.pick(1_200, 30)
        tools = page.context.new_cdp_session(page)

        def heap() -> float:
            tools.send("HeapProfiler.collectGarbage")
            return float(page.evaluate(_HEAP))

        with _busy(served, plan):
            page.wait_for_timeout(seconds * 100)  # what is loaded once is there by then
            before = heap()
            page.wait_for_timeout(seconds * 900)
            after = heap()
        yield Measurement(
            case=CASE,
            name=f"growth of a browser's memory in {seconds:,} s with 5 events a second",
            unit="MB",
            values=(max(0.0, after - before),),
            target=Target(limit=GROWTH_MB, of="value"),
        )
        browser.close()


def _seen_after(served: ServedHome, page: Any, plan: str, n: int) -> float:
    """Change a plan that is open in a browser; return how many milliseconds its page took to show it."""
    title = f"A large plan, change {n}"
    event = Event(type="plan_drafted", actor="bench", plan=plan, project=served.project_ids[0])

    def change(tx: Any) -> None:
        tx.update(Plan, plan, title=title)
        tx.append(event)

    began = time.perf_counter()
    served.store.transact_sync("bench", change)
    page.wait_for_function("title => document.querySelector('h1').textContent === title", arg=title)
    return (time.perf_counter() - began) * 1000


@contextlib.contextmanager
def _busy(served: ServedHome, plan: str) -> Iterator[None]:
    """Let something happen to a plan five times a second."""
    ended = threading.Event()

    def work() -> None:
        event = Event(type="run_started", actor="bench", plan=plan, project=served.project_ids[0], payload={})
        while not ended.wait(0.2):
            served.store.transact_sync("bench", lambda tx: tx.append(event))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
