"""Projects in which something goes wrong on purpose."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import executable
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import COST, Sandbox, task
from tests.loaded import Said
from tests.once import once

ESCAPE = "../../../$(touch pwned)"
"""A task's id that would do harm as a path or as a part of a command."""

RAW = """
task=$(sed -n 's/^Task: //p')
case "$task" in
  exits) echo no licence; exit 3 ;;
  raw) head -c 300000 /dev/urandom; printf '\\0\\0\\n{"event":"result","ok":tr\\n'; echo right > raw.txt; printf half ;;
esac
"""
"""An agent that is a plain program: what it prints is no protocol at all."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A project where nothing has run yet."""
    return Sandbox(tmp_path)


def _once(factory: pytest.TempPathFactory, name: str, carry_out: Callable[[Sandbox], Said]) -> Record:
    place, said = once(factory, name, lambda place: carry_out(Sandbox(place)))
    return Record(place / "greeter", home=place / "home", said=said)


def _right(name: str) -> dict[str, Any]:
    return {"write": f"{name}.txt", "text": "right\n"}


@pytest.fixture(scope="session")
def misbehaved(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A plan that was carried out by agents of every bad habit. Tests may only look at it."""
    return _once(tmp_path_factory, "misbehaved", _misbehave)


def _misbehave(sandbox: Sandbox) -> Said:
    agent = executable(sandbox.place / "raw-agent", RAW)
    unheard = {"write": "unheard.txt", "text": "the prompt did not say why\n"}
    sandbox.play(
        {
            "garbage": [
                [{"garbage": 500}, {"print": '{"event":"result","ok":'}, _right("garbage"), {"claim": "x"}]
            ],
            "flood": [[{"flood_mb": 50}, _right("flood"), COST, {"claim": "after fifty megabytes"}]],
            "commits": [
                [_right("commits"), {"commit": "my own message"}, {"write": "later.txt", "text": "later\n"}]
            ],
            "stages": [[_right("stages"), {"run": "git add -A"}]],
            "resets": [
                [
                    {"write": "dropped.txt", "text": "not wanted\n"},
                    {"commit": "a commit to be dropped"},
                    {"run": "git reset -q --hard HEAD~1"},
                    _right("resets"),
                ]
            ],
            "unmakes": [[_right("unmakes"), {"run": "rm -rf .git"}]],
            "branches": [
                [
                    _right("branches"),
                    {"run": "git checkout -q --orphan elsewhere"},
                    {"commit": "without history"},
                ]
            ],
            "liar": [
                [{"claim": "all done"}],
                [{"expect_prompt": "changed nothing", "otherwise": [unheard]}, _right("liar")],
            ],
            "fails": [
                [{"write": "fails.txt", "text": "[PASS] one\n[FAIL] the sum is 3, not 4\n"}],
                [
                    {"expect_prompt": "the sum is 3, not 4", "otherwise": [unheard]},
                    {"write": "fails.txt", "text": "[PASS] one\n[PASS] the sum is 4\n"},
                ],
            ],
            "slow": [
                [{"write": "slow.txt", "text": "wrong\n"}],
                [{"expect_prompt": "its time limit of 1 s", "otherwise": [unheard]}, _right("slow")],
            ],
        }
    )
    plain = ("garbage", "flood", "commits", "stages", "resets", "unmakes", "branches", "liar")
    tasks = [task(key, f"grep -q right {key}.txt") for key in plain]
    tasks += [
        task("raw", "grep -q right raw.txt", agent="command"),
        task("exits", "test -d .", agent="command"),
        task("nobody", "test -d .", agent="nobody"),
        task("unbuilt", "test -d .", agent="claude"),
        task("after-nobody", "test -d .", depends_on=["nobody"]),
        task("fails", "cat fails.txt"),
        task("slow", agent="scripted"),
    ]
    tasks[-1]["acceptance"] = [
        {"name": "in time", "run": "grep -q right slow.txt || sleep 60", "timeout": "1s"}
    ]
    plan = sandbox.plan(
        "misbehaved",
        tasks,
        settings={
            "parallel": 4,
            "agents": {"command": {"command": [str(agent)]}, "claude": {"binary": "no-such-claude"}},
        },
    )
    return sandbox.run(plan, "--json")


@pytest.fixture(scope="session")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A plan whose agents first crash, hang and linger, and then do their work. Tests may only look at it."""
    return _once(tmp_path_factory, "hung", _hang)


def _hang(sandbox: Sandbox) -> Said:
    keys = ("crashes", "busy", "silent", "lingers", "unkept")
    busy = "while :; do date > beat; sleep 0.1; done"
    pid_file = sandbox.place / "spawned.pid"
    said = """until grep -q '"result"' "$TMPDIR"/../output/*; do sleep 0.02; done"""
    kill_keeper = f"{said}; kill -9 $(ps -o ppid= -p $PPID)"
    sandbox.play(
        {
            "unkept": [[_right("unkept"), {"claim": "done"}, {"run": kill_keeper}], [{"fail": "refusal"}]],
            "crashes": [[_right("crashes"), {"crash": "SIGKILL"}], [_right("crashes")]],
            "busy": [[_right("busy"), {"run": busy}], [_right("busy")]],
            "silent": [[_right("silent"), {"hang": 600, "stubborn": True}], [_right("silent")]],
            "lingers": [[_right("lingers"), {"claim": "done, but I stay"}, {"hang": 600}]],
            ESCAPE: [[{"spawn": "sleep 600", "pid_file": str(pid_file)}, _right("spawns")]],
        }
    )
    limits = {"hard": "6s", "idle": "3s"}
    tasks = [task(key, f"grep -q right {key}.txt") for key in keys]
    tasks.append(task(ESCAPE, "grep -q right spawns.txt"))
    plan = sandbox.plan("hung", tasks, settings={"parallel": 6, "limits": limits})
    return sandbox.run(plan)
