"""Agents that crash, hang, linger and leave children behind: ended, recorded by class, and tried again."""

from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.acceptance.faults.record import Record


def test_everything_that_hung_or_crashed_once_is_verified_in_the_end(hung: Record) -> None:
    assert hung.said.code == 0, hung.said.out + hung.said.err
    assert hung.plan["status"] == "VERIFIED"
    assert set(hung.landings().values()) == {1}


@pytest.mark.capability("C029", "C087")
@pytest.mark.trap("random crash")
@pytest.mark.parametrize(
    ("key", "failure", "state", "ended_by", "counted"),
    [
        ("crashes", "crash", "BROKEN", "itself", 0),
        ("busy", "timeout", "REJECTED", "deadline", 1),
        ("silent", "hang", "REJECTED", "idle", 1),
    ],
)
def test_a_run_that_ends_badly_is_recorded_by_its_class_and_tried_again(
    hung: Record, key: str, failure: str, state: str, ended_by: str, counted: int
) -> None:
    first, second = hung.attempts(key)
    assert (first["failure"], first["state"], second["state"]) == (failure, state, "LANDED")
    assert hung.runs(key, "implementer")[0]["ended_by"] == ended_by
    assert hung.task(key)["attempts"] == counted, "a crash is not the work's fault, and uses up no attempt"


def test_what_a_killed_agent_had_written_is_kept(hung: Record) -> None:
    for key in ("crashes", "busy", "silent"):
        first = hung.attempts(key)[0]
        pinned = f"refs/loopwright/attempts/{first['plan_id']}/{first['task_id']}/1"
        assert hung.git("rev-parse", pinned).strip() == first["tip_sha"]
        assert hung.git("show", f"{pinned}:{key}.txt") == "right\n"


def test_an_agent_that_says_done_and_does_not_leave_is_ended_and_believed(hung: Record) -> None:
    assert hung.failures("lingers") == [None]
    (run,) = hung.runs("lingers", "implementer")
    assert (run["state"], run["ended_by"]) == ("COMPLETE", "done_hang")


def test_work_that_was_finished_when_its_keeper_was_killed_is_not_done_again(hung: Record) -> None:
    assert hung.failures("unkept") == [None]
    (run,) = hung.runs("unkept", "implementer")
    assert (run["state"], run["ended_by"]) == ("COMPLETE", "lost")


@pytest.mark.capability("C029")
def test_a_child_that_an_agent_left_behind_is_gone(hung: Record) -> None:
    pid = int(Path(hung.home.parent / "spawned.pid").read_text())
    with suppress(psutil.NoSuchProcess):  # the number may belong to someone else by now
        assert "sleep 600" not in " ".join(psutil.Process(pid).cmdline())
