"""`loopwright watch`: a plan live, without touching it."""

import json

import pytest
from tests.acceptance.cli.conftest import Live
from tests.acceptance.sandbox import Sandbox
from tests.waiting import eventually

from loopwright.core.values.ids import short_id


def test_watch_of_a_resting_plan_shows_it_and_ends_with_its_exit_code(
    finished: Sandbox, good_plan: str
) -> None:
    said = finished("watch")
    assert said.code == 1
    assert "NEEDS YOU" in said.out
    assert finished("watch", good_plan).code == 0


@pytest.mark.capability("C120")
def test_several_watch_until_the_plan_rests_and_one_leaves_before(live: Live) -> None:
    table = live.start("watch")
    table.until("slow  scripted")
    everything = live.start("watch", "--json", "--after", "0")
    everything.until('"run_started"')
    listening = len(list((live.home / "wake").iterdir()))
    from_now_on = live.start("watch", "--json")
    # It has begun once it is seen to listen for changes of the home.
    eventually(lambda: len(list((live.home / "wake").iterdir())) > listening)
    leaving = live.start("watch")
    leaving.until("slow  scripted")
    leaving.interrupt()
    assert leaving.end() == 130
    assert live("status", "--json").document["plan"]["loop_state"] == "RUNNING", "it is left alone"
    live.release()

    assert table.end() == 0
    assert "✔  slow  Make slow  verified" in table.out
    assert "VERIFIED  1/1 tasks" in table.out

    assert everything.end() == 0
    *events, last = [json.loads(line) for line in everything.out.splitlines()]
    numbers = [event["n"] for event in events]
    assert numbers == sorted(set(numbers))
    types = [event["type"] for event in events]
    assert types.index("plan_created") < types.index("task_started") < types.index("task_completed")
    assert types[-2:] == ["plan_verified", "loop_completed"]
    assert last["type"] == "end"
    assert last["plan"]["status"] == "VERIFIED"
    assert last["exit_code"] == 0

    assert from_now_on.end() == 0
    types = [json.loads(line)["type"] for line in from_now_on.out.splitlines()]
    assert "plan_created" not in types
    assert types[-1] == "end"


def test_a_plan_that_ended_rests_although_its_source_runs_anew(live: Live) -> None:
    live.release()
    assert live.worker.end() == 0
    ended = live.newest_plan()
    live.begin("--new")
    assert live.newest_plan() != ended
    assert live("watch", ended).code == 0


def test_on_a_terminal_there_is_a_live_table_and_its_end_stays(live: Live) -> None:
    # Enter and other keys leave the picture whole, and `q` ends the watching, not the plan.
    out = live.on_terminal("watch", typing=("q quits; the plan continues", "\n\nxyz\nq"))
    assert "xyz" not in out
    assert out.rstrip().endswith("follow it live")
    live.release()
    out = live.on_terminal("watch", columns=80, rows=24)
    assert "✔  slow  Make slow  verified" in out
    plan = live.newest_plan()
    assert f"git merge --ff-only loopwright/{short_id(plan)}/main" in out, "a command is never cut"


def test_a_terminal_without_no_color_gets_colours(finished: Sandbox) -> None:
    assert "\x1b[32m" in finished.on_terminal("status", color=True)
