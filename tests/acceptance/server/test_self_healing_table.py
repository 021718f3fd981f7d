"""The self-healing table: for each scenario what happens first, and what becomes of it, through CLI and HTTP.

One plan runs without `auto_heal`, the same plan again with it, and one meets an account without credit. The tests
look at what was seen on the way.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Gateway
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.once import made_once
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task

pytestmark = [pytest.mark.timeout(400), pytest.mark.shares("healing-table")]


def wrote(name: str, text: str) -> list[dict[str, Any]]:
    """Return the steps of an agent that writes a file and says that it is done."""
    return [{"write": f"{name}.txt", "text": f"{text}\n"}, {"claim": f"I wrote {text}."}]


def told(words: str, name: str) -> list[dict[str, Any]]:
    """Return the steps of an agent that does its work only if its prompt has these words."""
    return [{"expect_prompt": words, "otherwise": wrote(name, "wrong")}, *wrote(name, "right")]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the interfaces showed of a plan."""

    plan: str
    tasks: dict[str, dict[str, Any]]
    alerts: dict[str, dict[str, Any]]
    attempts: dict[str, list[Attempt]]
    runs: dict[str, list[Run]]
    restarts: int

    def steps(self, key: str) -> list[tuple[str, str]]:
        """Return the healing steps of a task, with what became of each."""
        return [(one["step"], one["state"]) for one in self.tasks[key]["healing"]]

    def status(self, key: str) -> str:
        """Return where a task stands."""
        return str(self.tasks[key]["status"])


@dataclass(frozen=True, kw_only=True)
class Table:
    """What happened first, and what became of it."""

    before: Seen
    after: Seen
    paused: Seen
    topped_up: Seen
    screen: str
    """What `status` says of the task that failed three times."""


def same(name: str) -> dict[str, Any]:
    """Return a check whose failure looks the same for each task."""
    return {"name": "sum", "run": f"grep -q right {name}.txt || (echo 'sum.py:3: AssertionError: 3'; exit 1)"}


API = ("api1", "api2", "api3")
KEYS = ("once", "thrice", "root", "leaf", "builds", *API, "hangs", "pattern")


def play(served: Served, held: Gateway) -> None:
    """Write the script by which all plans are played."""
    down = {"fail": "overloaded", "message": "529 overloaded"}
    served.play(
        {
            "once": [wrote("once", "wrong"), told("grep -q right once.txt", "once")],
            "thrice": [
                *(wrote("thrice", how) for how in ("no sum", "a float", "half of it")),
                told("At the end all of this must be true", "thrice"),
            ],
            "root": [wrote("root", "wrong")],
            "leaf": [wrote("leaf", "right")],
            "builds": [wrote("builds", "half")],
            **{
                key: [[{"expect_prompt": "You were interrupted", "otherwise": [down]}, *wrote(key, "right")]]
                for key in API
            },
            "hangs": [
                [
                    {
                        "expect_prompt": "stopped making progress",
                        "otherwise": [held.step, *wrote("hangs", "right")],
                    },
                    *wrote("hangs", "right"),
                ]
            ],
            "pattern": [told("At the end all of this must be true", "pattern")],
            "credit": [
                [
                    {"expect_prompt": "You were interrupted", "otherwise": [{"fail": "billing"}]},
                    *wrote("credit", "right"),
                ]
            ],
        }
    )


def tasks() -> list[dict[str, Any]]:
    """Return the tasks of the table."""
    plain = [task(key, f"cat {key}.txt; grep -q right {key}.txt") for key in ("once", *API, "hangs")]
    plain[0]["max_attempts"] = 2
    return [
        *plain,
        task("thrice", "cat thrice.txt; grep -q right thrice.txt", max_attempts=3),
        {**task("root"), "acceptance": [same("root")], "max_attempts": 1},
        task("leaf", "grep -q right leaf.txt", depends_on=["root"], max_attempts=1),
        task("builds", "cat root.txt builds.txt", depends_on=["root"], max_attempts=1),
        {**task("pattern"), "acceptance": [same("pattern")], "max_attempts": 2},
    ]


def seen(served: Served, plan: Plan, *keys: str) -> Seen:
    """Look at a plan through the API and the screen."""
    shown = {key: served.get(f"/api/plans/{plan.id}/tasks/{key}") for key in keys}
    rows = {one.key: one for one in served.rows(Task, plan_id=plan.id)}
    return Seen(
        plan=plan.id,
        tasks={key: {**one, **one["task"]} for key, one in shown.items()},
        alerts={one["kind"]: one for one in served.get("/api/alerts")["alerts"]},
        attempts={key: served.rows(Attempt, task_id=rows[key].id) for key in keys},
        runs={key: served.rows(Run, task_id=rows[key].id, role=Role.IMPLEMENTER) for key in keys},
        restarts=len([one for one in served.events("task_interrupted") if one.plan == plan.id]),
    )


def rested(served: Served, plan: Plan) -> bool:
    """Return whether a plan waits for nothing but a person, or has ended."""
    return bool(served.get(f"/api/loops/{plan.loop_id}")["status"] in ("failed", "completed"))


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Return what was seen of the three plans, which one test carries out for all."""
    return made_once(tmp_path_factory, "healing-table", lambda: carry_out(tmp_path_factory.mktemp("table")))


def carry_out(place: Path) -> Table:
    """Carry the three plans out, and look at them on the way."""
    served = Served(place)
    served.program.env |= {"LOOPWRIGHT_MONITOR__EVERY": "1s", "LOOPWRIGHT_MONITOR__STUCK": "2"}
    held = served.gate("hung")
    play(served, held)
    served.serve("--slots", "4")
    try:
        settings = {"parallel": 4, "heal": {"stronger": "scripted:large"}}
        before = begun(served, "before", tasks(), settings)
        eventually(lambda: found(served, "stuck", before) and settled(served, before), timeout=200, every=0.5)
        first = seen(served, before, *KEYS)
        screen = served("status", first.tasks["thrice"]["id"]).out
        assert served.post(f"/api/plans/{before.id}/cancel").status_code == 200
        after = begun(served, "after", tasks(), {**settings, "auto_heal": True, "auto_refine": True})
        eventually(lambda: rested(served, after), timeout=200, every=0.5)
        second = seen(served, after, *KEYS)
        plan = begun(served, "credit", [task("credit", "grep -q right credit.txt")], {})
        eventually(lambda: found(served, "account_closed"), timeout=100, every=0.5)
        paused = seen(served, plan, "credit")
        assert served("stats", "quota", "open", "scripted").code == 0
        eventually(lambda: rested(served, plan), timeout=100, every=0.5)
        return Table(
            before=first, after=second, paused=paused, topped_up=seen(served, plan, "credit"), screen=screen
        )
    finally:
        served.clean_up()


def begun(served: Served, name: str, wanted: list[dict[str, Any]], settings: dict[str, Any]) -> Plan:
    """Start a plan in the daemon."""
    said = served.run(served.plan(name, wanted, settings=settings), "--detach")
    assert said.code == 0, said.out + said.err
    return served.rows(Plan)[-1]


def found(served: Served, kind: str, plan: Plan | None = None) -> bool:
    """Return whether there is such an alert."""
    return any(
        one["kind"] == kind and (plan is None or one["planId"] == plan.id)
        for one in served.get("/api/alerts")["alerts"]
    )


def settled(served: Served, plan: Plan) -> bool:
    """Return whether all that can be done in the plan without a person was done, but for the agent that hangs."""
    waiting = ("hangs", "leaf", "builds")
    return all(
        one.status in ("COMPLETE", "ERROR")
        for one in served.rows(Task, plan_id=plan.id)
        if one.key not in waiting
    )


def states(attempts: list[Attempt]) -> list[str]:
    """Return what became of each attempt."""
    return [one.state.value for one in attempts]


def test_test_fails_once(table: Table) -> None:
    assert table.before.status("once") == "COMPLETE", "it is tried again at once, with or without healing"
    for each in (table.before, table.after):
        assert states(each.attempts["once"]) == ["REJECTED", "LANDED"]
        assert each.steps("once") == []


@pytest.mark.capability("C084", "C090", "C091")
def test_test_fails_three_times(table: Table) -> None:
    blocked = table.before.tasks["thrice"]
    assert blocked["status"] == "ERROR"
    assert table.before.steps("thrice") == [], "nothing more is tried without auto_heal"
    found = blocked["diagnosis"]
    assert [one["n"] for one in found["tried"]] == [1, 2, 3]
    assert found["fixes"][0]["command"][:2] == ["loopwright", "retry"]
    assert "likely cause" in table.screen
    assert table.after.status("thrice") == "COMPLETE"
    assert table.after.steps("thrice") == [("restate", "HEALED")]


@pytest.mark.capability("C085")
def test_dependency_blocked(table: Table) -> None:
    assert [table.before.status(key) for key in ("root", "leaf", "builds")] == ["ERROR", "QUEUED", "QUEUED"]
    assert table.before.status("once") == "COMPLETE", "what does not need it continues"
    assert table.after.steps("leaf") == [("bypass", "HEALED")]
    assert table.after.steps("builds") == [("bypass", "FAILED")], "its own checks say that it needs it"
    assert [table.after.status(key) for key in ("leaf", "builds")] == ["COMPLETE", "QUEUED"]


@pytest.mark.capability("C086")
def test_claude_api_error(table: Table) -> None:
    for each in (table.before, table.after):
        for key in API:
            refused, worked = each.runs[key]
            (attempt,) = each.attempts[key]
            assert (refused.failure, worked.failure, attempt.state) == ("overloaded", None, "LANDED")
            assert refused.ended_at is not None
            assert worked.started_at is not None
            assert (worked.started_at - refused.ended_at).total_seconds() >= 4, (
                "it waits before it asks again"
            )
        assert each.alerts["service_errors"]["severity"] == "warning", "one alert for all of them"


@pytest.mark.capability("C087", "C105", "C106")
def test_loop_hangs(table: Table) -> None:
    assert table.before.status("hangs") == "RUNNING"
    assert table.before.alerts["stuck"]["taskId"] == table.before.tasks["hangs"]["id"]
    assert table.before.restarts == 0, "without auto_heal the monitor only reports"
    assert table.after.restarts == 1
    assert table.after.status("hangs") == "COMPLETE"
    assert states(table.after.attempts["hangs"])[-1] == "LANDED"
    assert "REJECTED" not in states(table.after.attempts["hangs"]), "being started again uses up no attempt"


@pytest.mark.capability("C088", "C092")
def test_same_error_pattern(table: Table) -> None:
    blocked = table.before.tasks["pattern"]
    assert (blocked["status"], blocked["diagnosis"]["cause"], blocked["diagnosis"]["repeated"]) == (
        "ERROR",
        "model_limit",
        2,
    )
    assert table.after.status("pattern") == "COMPLETE"
    steps = table.after.steps("pattern")
    assert steps == [("stronger_agent", "FAILED"), ("restate", "HEALED")], "another way each time"
    assert [one.model for one in table.after.runs["pattern"]][-2] == "large"


@pytest.mark.capability("C089")
def test_out_of_credits(table: Table) -> None:
    assert table.paused.status("credit") not in ("ERROR", "COMPLETE")
    assert table.paused.alerts["account_closed"]["severity"] == "warning"
    assert table.topped_up.status("credit") == "COMPLETE"
    assert states(table.topped_up.attempts["credit"]) == ["LANDED"], "no attempt was used up"
    assert "account_closed" not in table.topped_up.alerts
