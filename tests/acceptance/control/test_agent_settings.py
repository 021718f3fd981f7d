"""Settings that an agent wrote into the repository never act on another one, through the real command line."""

import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.fakes import stand_ins

from loopwright.core.rows.model import Role, Run


@pytest.fixture
def plan(shop: Workshop) -> str:
    """Return a plan whose first task leaves settings for the agent of the second, a stand-in for Gemini CLI."""
    program = shop.place / "gemini"
    stand_in = Path(stand_ins.__file__).parent / "acp.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I {stand_in} done "$@"\n')
    program.chmod(0o755)
    shop.program.env["LOOPWRIGHT_AGENTS__GEMINI__BINARY"] = str(program)
    shop.play({"a": [[{"write": ".gemini/settings.json", "text": '{"hooks": {}}\n'}]]})
    second = task("b", "test -s made.txt", depends_on=["a"], agent="gemini")
    return str(shop.plan("settings", [task("a", "test -s .gemini/settings.json"), second]))


def test_an_agent_is_not_started_with_settings_that_another_one_wrote(shop: Workshop, plan: str) -> None:
    said = shop("run", plan, timeout=90)
    assert said.code != 0
    assert shop.task("a").status == "COMPLETE"
    failed = shop.task("b")
    assert failed.failure == "cannot_start"
    assert (
        "gemini would take settings from .gemini/settings.json, which changed since the plan began"
        in failed.reason
    )
    assert "agents.gemini.trust_workspace = true" in failed.reason
    started = [run for run in shop.rows(Run, role=Role.IMPLEMENTER, agent="gemini") if run.started_at]
    assert started == []


def test_the_user_may_trust_them(shop: Workshop, plan: str) -> None:
    shop.program.env["LOOPWRIGHT_AGENTS__GEMINI__TRUST_WORKSPACE"] = "true"
    said = shop("run", plan, timeout=90)
    assert said.code == 0, said.out + said.err


def test_settings_of_the_commit_that_the_plan_began_with_are_read(shop: Workshop, plan: str) -> None:
    settings = shop.repository / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": {}}\n')
    shop.git("add", "-A")
    shop.git("commit", "-qm", "settings")
    shop.play({"a": [[{"write": "x", "text": "x"}]]})
    settings.unlink()
    said = shop("run", plan, timeout=90)
    assert said.code == 0, said.out + said.err
