"""A keeper that is killed after its agent finished: the work is taken as it is, not done again."""

import asyncio
import hashlib
import os
import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.keeper.conftest import MakeSpec, is_running, keeper_of, text_of
from tests.waiting import eventually_async
from tests.wording_plugin import Wording

from loopwright.adapters.agents.command import CommandAgent
from loopwright.adapters.processes import keeper_files
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Limits
from loopwright.engine.processes.runs import Ended, agent_spec, drive_agent, exit_to_judge
from loopwright.ports import Agent, AgentRequest, Exit, RunSpec, Spent
from loopwright.testing.scripted import ScriptedAgent, write_script

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STUBBORN = "trap '' TERM; echo $$ > left; sleep 300 & wait"
"""A process that outlives its parent and a polite word, so that the keeper has something to do after the end."""


async def test_how_the_child_ended_is_known_although_the_keeper_was_killed_before_it_said_so(
    keepers: ProcessKeepers, make_spec: MakeSpec, wording: Wording
) -> None:
    left = f'setsid sh -c "{STUBBORN}" > /dev/null 2>&1 &'
    spec = make_spec(sh=f"{left} until test -s left; do sleep 0.02; done; seq 1 2000; exit 7")
    await keepers.start(spec)
    await eventually_async(lambda: "code" in (keeper_files.read_status(spec.directory) or {}))
    keeper_of(spec).kill()
    await eventually_async(lambda: keepers.look(spec.directory).state == "lost")
    ended = await keepers.end(spec.directory)
    assert (ended.code, ended.ended_by) == (7, "itself")
    wording(ended.error)
    assert await text_of(keepers, spec) == [str(number) for number in range(1, 2001)]
    kept = b"".join(path.read_bytes() for path in sorted((spec.directory / "output").iterdir()))
    assert ended.output_sha256 == hashlib.sha256(kept).hexdigest()
    assert not is_running(int((spec.cwd / "left").read_text()))


def _request(tmp_path: Path, agent: Agent, **options: object) -> tuple[AgentRequest, RunSpec]:
    workspace, directory = tmp_path / "workspace", tmp_path / f"run-{agent.name}"
    workspace.mkdir(exist_ok=True)
    request = AgentRequest(
        prompt="Task: t1\nAttempt: 1\n", workspace=workspace, run_directory=directory, options=options
    )
    spec = agent_spec(
        request,
        agent.invocation(request),
        run_id=f"run_{uuid4().hex}",
        env={"PATH": "/usr/bin:/bin"},
        limits=replace(Limits(), hard=60.0, done_grace=60.0, term_grace=60.0),
    )
    return request, spec


async def _driven(keepers: ProcessKeepers, agent: Agent, request: AgentRequest, spec: RunSpec) -> Ended:
    return await drive_agent(
        keepers, agent, spec, request=request, before=Spent(), interrupt=asyncio.Event(), heard=lambda _: None
    )


@pytest.mark.parametrize("watched", [True, False], ids=["by a living worker", "by the next worker"])
async def test_an_agent_that_said_it_is_done_is_judged_by_what_it_said(
    tmp_path: Path, keepers: ProcessKeepers, watched: bool
) -> None:
    agent = ScriptedAgent()
    for said, step, outcome in (
        ("result", {"claim": "all of it"}, (True, None)),
        ("result", {"print": '{"event":"result","ok":false,"failure":"auth"}'}, (False, Failure.AUTH)),
        ("half of it", {"say": "half of it"}, None),
    ):
        place = tmp_path / next(iter(step))
        place.mkdir()
        steps = [{"write": "a.txt"}, step, {"hang": 300}]
        script = write_script(place / "script.json", {"default": [steps]})
        request, spec = _request(place, agent, script=str(script), python=sys.executable)
        await keepers.start(spec)
        driving = asyncio.ensure_future(_driven(keepers, agent, request, spec)) if watched else None
        await eventually_async(lambda spec=spec, said=said: any(said in line for line in _recorded(spec)))
        keeper_of(spec).kill()
        ended = await (driving or _driven(keepers, agent, request, spec))
        assert ended.exit.ended_by == "lost"
        found = ended.result and (ended.result.claimed, ended.result.failure)
        assert found == outcome, "half a piece of work is nothing to be judged" if outcome is None else step
        assert not (spec.directory / "earlier").exists(), "it was started a second time"


def _recorded(spec: RunSpec) -> list[str]:
    return [line.text for line in keeper_files.OutputReader(spec.directory, 0).all()]


async def test_a_command_that_came_to_its_end_is_judged_by_its_exit_code(
    tmp_path: Path, keepers: ProcessKeepers
) -> None:
    agent = CommandAgent()
    program = (
        f'setsid sh -c "{STUBBORN}" > /dev/null 2>&1 & until test -s left; do sleep 0.02; done; echo did it'
    )
    request, spec = _request(tmp_path, agent, command=["sh", "-c", program])
    await keepers.start(spec)
    await eventually_async(lambda: "code" in (keeper_files.read_status(spec.directory) or {}))
    keeper_of(spec).kill()
    ended = await _driven(keepers, agent, request, spec)
    assert ended.exit.ended_by == "itself"
    assert ended.result is not None
    assert ended.result.claimed


HIDING = (
    'setsid env -i sh -c "echo \\$\\$ > hiding; exec sleep 300" > /dev/null 2>&1 < /dev/null & '
    "until test -s hiding; do sleep 0.02; done; kill -9 $PPID; sleep 300"
)
"""A process without its marker, whose keeper is killed by the run itself: nothing of it is known by name or parent."""


async def test_what_hides_from_a_killed_keeper_is_ended_by_its_group_or_else_named(
    keepers: ProcessKeepers, make_spec: MakeSpec, wording: Wording
) -> None:
    spec = make_spec(sh=HIDING)
    await keepers.start(spec)
    await eventually_async(lambda: keepers.look(spec.directory).state == "lost")
    group = Path((keeper_files.read_status(spec.directory) or {})["cgroup"] or "/nowhere")
    hidden = int((spec.cwd / "hiding").read_text())
    is_grouped = group.exists()
    ended = await keepers.end(spec.directory)
    if is_grouped:
        assert not is_running(hidden)
        assert not group.exists()
    else:
        wording(ended.error)
        os.kill(hidden, signal.SIGKILL)


async def test_what_hides_is_named_where_a_run_has_no_group(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh=HIDING)
    # A run that counts as contained gets no group, as everywhere where none can be made.
    await keepers.start(replace(spec, contained=True))
    await eventually_async(lambda: keepers.look(spec.directory).state == "lost")
    hidden = int((spec.cwd / "hiding").read_text())
    try:
        ended = await keepers.end(spec.directory)
        assert f"still run in its folder and may be left of it: {hidden}" in ended.error
    finally:
        os.kill(hidden, signal.SIGKILL)


async def test_a_run_leaves_no_group_behind(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="cat /proc/self/cgroup")
    await keepers.start(spec)
    said = await text_of(keepers, spec)
    await keepers.wait(spec.directory)
    path = (keeper_files.read_status(spec.directory) or {})["cgroup"]
    if path:
        assert any(line.endswith(f"/loopwright-{spec.run_id}") for line in said)
    assert not path or not Path(path).exists()


@pytest.mark.parametrize(
    ("ended_by", "unfinished"),
    [("idle", "idle"), ("deadline", "deadline"), ("lost", None), ("asked", "asked"), ("itself", "itself")],
)
def test_finished_work_is_judged_whatever_ended_the_process(ended_by: Any, unfinished: str | None) -> None:
    end = Exit(code=-9, ended_by=ended_by, started_at=NOW, ended_at=NOW, output_bytes=0, output_sha256="")
    judged = exit_to_judge(end, said_done=True)
    assert judged is not None
    assert judged.ended_by == (ended_by if ended_by in ("asked", "itself") else "done_hang")
    left = exit_to_judge(end, said_done=False)
    assert (left and left.ended_by) == unfinished
