"""Plans that were carried out once for many tests which only look."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.sandbox import COST, Sandbox, task
from tests.loaded import Said
from tests.once import once
from tests.waiting import eventually

GOOD, BAD = "good", "bad"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A home with a verified plan and a newer one that needs a person. Tests may only look at it."""
    place, _ = once(tmp_path_factory, "finished", lambda place: _finish(Sandbox(place)))
    return Sandbox(place)


def _finish(sandbox: Sandbox) -> Said:
    sandbox.play(
        {
            "one": [
                [
                    {"say": "I look at the task."},
                    {"run": "echo seen by a tool"},
                    {"write": "one.txt", "text": "right\n"},
                    COST,
                    {"claim": "one is there"},
                ]
            ],
            "two": [
                [{"write": "two.txt", "text": "wrong\n"}, COST],
                [{"write": "two.txt", "text": "right\n"}, COST],
            ],
            "broken": [
                [{"write": "broken.txt", "text": "first try\n"}, COST],
                [{"write": "broken.txt", "text": "second try\n"}, {"write": "more.txt", "text": "x\n"}, COST],
            ],
            "fine": [[{"write": "fine.txt", "text": "right\n"}]],
        }
    )
    good = sandbox.plan(
        GOOD,
        [task("one", "grep -q right one.txt"), task("two", "grep -q right two.txt", depends_on=["one"])],
    )
    said = sandbox.run(good)
    assert said.code == 0, said.out + said.err
    check = (
        "cat broken.txt; echo 'expected the word right, but it is not there' >&2; grep -q right broken.txt"
    )
    bad = sandbox.plan(
        BAD,
        [
            task("fine", "grep -q right fine.txt"),
            task("broken", check, criteria=["The word right is in the file."]),
            task("after", "test -d .", depends_on=["broken"]),
        ],
    )
    said = sandbox.run(bad, "--max-attempts", "2")
    assert said.code == 1, said.out + said.err
    return said


@pytest.fixture(scope="session")
def good_plan(finished: Sandbox) -> str:
    """The id of the verified plan."""
    plans = finished("status", "--json").document["plans"]
    return next(str(plan["id"]) for plan in plans if plan["title"] == GOOD)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A project where nothing has run yet."""
    return Sandbox(tmp_path)


class Live(Sandbox):
    """A sandbox with a plan that is being worked on, until it is let go."""

    def begin(self, *flags: str) -> None:
        """Start the plan and wait until its agent has said its first words."""
        self.go = self.place / "go"
        self.go.unlink(missing_ok=True)
        self.play(
            {
                "slow": [
                    [
                        {"say": "first words"},
                        {"wait_for": str(self.go)},
                        {"say": "last words"},
                        {"write": "s", "text": "x"},
                    ]
                ]
            }
        )
        self.worker = self.start("run", str(self.plan("live", [task("slow", "test -f s")])), *flags)
        self.worker.until("slow  scripted")
        eventually(self._has_spoken, timeout=30)

    def _has_spoken(self) -> bool:
        return any("first words" in path.read_text() for path in self.home.glob("runs/*/progress.json"))

    def release(self) -> None:
        """Let the agent go on."""
        self.go.touch()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A plan in the middle of its only task."""
    sandbox = Live(tmp_path)
    sandbox.begin()
    yield sandbox
    sandbox.release()
    assert sandbox.worker.end() == 0, sandbox.worker.out
