"""The chain of `fallback`, through the real command line: who takes over from Claude Code, and how that is told."""

import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.fakes import stand_ins

from loopwright.core.rows.model import Role, Run


@pytest.fixture
def behaves(shop: Workshop) -> Path:
    """Return the file that says how the stand-in behaves; whoever takes over does the work."""
    program, behaviour = shop.place / "claude", shop.place / "behaviour"
    stand_in = Path(stand_ins.__file__).parent / "claude.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I {stand_in} "$(cat {behaviour})" "$@"\n')
    program.chmod(0o755)
    work = [{"write": "a", "text": "a"}]
    shop.play({"a": [work, work]})
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "claude",
        "LOOPWRIGHT_MODEL": "big",
        "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(program),
        "LOOPWRIGHT_FALLBACK": "scripted:small",
        "LOOPWRIGHT_MAX_CALL_RETRIES": "0",
    }
    return behaviour


@pytest.mark.parametrize(
    ("behaviour", "attempts"),
    [
        pytest.param("overloaded", 1, marks=pytest.mark.more),
        ("refusal", 2),
        pytest.param("model", 1, marks=pytest.mark.long),
        pytest.param("context", 2, marks=pytest.mark.long),
    ],
)
def test_the_next_of_the_chain_does_what_the_first_could_not(
    shop: Workshop, behaves: Path, behaviour: str, attempts: int
) -> None:
    behaves.write_text(behaviour)
    said = shop("run", str(shop.plan("chain", [task("a", "test -s a")])), timeout=90)
    assert said.code == 0, said.out + said.err
    assert len(shop.attempts("a")) == attempts, "what was not judged goes on in the same workspace"
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert [run.agent for run in runs] == ["claude", "scripted"]
    last = shop.attempts("a")[-1]
    assert (last.agent, last.model) == ("scripted", "small")
    assert last.stands_in.startswith("claude big handed it on: ")
    (told,) = shop.events("task_handed_on")
    assert (told.payload["was"], told.payload["agent"]) == ("claude:big", "scripted")
    assert f"scripted small replaces it: {last.stands_in}" in shop("show", "a").out


def test_a_kill_at_the_moment_of_handing_on_loses_nothing(shop: Workshop, behaves: Path) -> None:
    behaves.write_text("model")
    plan = str(shop.plan("chain", [task("a", "test -s a")]))
    killed = shop("run", plan, env={"LOOPWRIGHT_FAILPOINT": "store.attempt.handed_on.after"})
    assert killed.code != 0
    again = shop("resume", timeout=90)
    assert again.code == 0, again.out + again.err
    assert [run.agent for run in shop.rows(Run, role=Role.IMPLEMENTER)] == ["claude", "scripted"]
    assert len(shop.events("task_handed_on")) == 1


def test_without_a_chain_a_task_fails_as_before(shop: Workshop, behaves: Path) -> None:
    behaves.write_text("model")
    del shop.program.env["LOOPWRIGHT_FALLBACK"]
    said = shop("run", str(shop.plan("chain", [task("a", "test -s a")])), timeout=90)
    assert said.code != 0
    assert shop.events("task_handed_on") == []
    assert shop.task("a").failure == "model"
