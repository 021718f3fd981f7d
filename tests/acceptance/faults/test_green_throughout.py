"""Many tasks that get in each other's way: the plan branch is green at every commit, and nothing is lost or doubled."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import Sandbox, Steps, task

AT_ONCE = 4
GATE = (
    # Everyone who uses the interface uses the one that there is.
    "for use in uses/*.txt; do test ! -e $use || cmp -s api.txt $use || { echo $use; exit 1; }; done",
    # Every entry is in the list once, and nothing that git leaves behind in a conflict.
    'test -z "$(grep -v \'^[a-z0-9-]*$\' list.txt)" && test -z "$(sort list.txt | uniq -d)"',
)
KINDS: dict[str, tuple[str, str]] = {
    # Two that add to the end of the same file cannot be merged.
    "list": ("echo {key} >> list.txt", "grep -qx {key} list.txt"),
    # It uses the interface as it is where it starts; one that changes it mends the uses that it can see.
    "use": ("mkdir -p uses; cp api.txt uses/{key}.txt", "test -s uses/{key}.txt"),
    "api": (
        "echo {key} >> api.txt; for use in uses/*.txt; do test ! -e $use || cp api.txt $use; done",
        "grep -qx {key} api.txt",
    ),
    "own": ("echo {key} > {key}.txt", "test -s {key}.txt"),
}
"""What a task of each kind does, the same in every attempt, and its acceptance. Each is right where it starts."""
FIRST = ("list", "list", "use", "api")
"""The kinds of those that are sure to start from the same commit."""


def _kinds(count: int) -> list[str]:
    rest = ("list", "own", "use", "api", "list", "use")
    return [*FIRST, *(rest[n % len(rest)] for n in range(count - len(FIRST)))]


@pytest.mark.capability("C028", "C073")
@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.long)])
def test_the_plan_branch_is_green_at_every_commit_of_a_run_with_conflicts(
    sandbox: Sandbox, count: int
) -> None:
    for name in ("list.txt", "api.txt"):
        (sandbox.repository / name).write_text("first\n")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-q", "-m", "a list and an interface")
    started = sandbox.place / "started"
    started.mkdir()
    together = f"touch {started}/$$; until test $(ls {started} | wc -l) -ge {AT_ONCE}; do sleep 0.02; done"
    steps: dict[str, list[Steps]] = {}
    tasks = []
    for n, kind in enumerate(_kinds(count)):
        key = f"{kind}-{n}"
        does, accepted = (text.format(key=key) for text in KINDS[kind])
        steps[key] = [[{"run": does}]]
        if n < AT_ONCE:
            steps[key].insert(0, [{"run": together}, {"run": does}])
        tasks.append(task(key, accepted))
    sandbox.play(steps)
    gates = [{"name": f"gate {n}", "run": command} for n, command in enumerate(GATE)]
    plan = sandbox.plan("many", tasks, gates=gates, settings={"parallel": AT_ONCE})
    said = sandbox("run", str(plan), timeout=600)
    assert said.code == 0, said.out + said.err
    record = Record(sandbox.repository, home=sandbox.home, said=said)
    assert record.landings() == Counter([one["id"] for one in tasks])
    happened = Counter(failure for one in tasks for failure in record.failures(one["id"]))
    assert happened["conflict"] >= 1, "two added to the list at the same place"
    assert happened["together"] >= 1, "one used the interface that another one changed"
    assert set(happened) <= {None, "conflict", "together"}
    assert {record.task(one["id"])["attempts"] for one in tasks} == {0}, "nobody's work was found wanting"
    line = record.git(
        "rev-list", "--first-parent", "--reverse", f"{record.plan['base_sha']}..{record.plan['branch']}"
    )
    commits = line.split()
    assert len(commits) == count
    red = [sha for sha in commits if not _is_green(sandbox.place / "look", sandbox.repository, sha)]
    assert not red
    assert sorted(record.on_branch("list.txt").split()) == sorted(
        ["first", *(one["id"] for one in tasks if one["id"].startswith("list"))]
    ), "every addition is there, whoever lost a race"


def _is_green(place: Path, repository: Path, sha: str) -> bool:
    """Check a commit out as anyone would, and run the gate there."""
    if not place.exists():
        subprocess.run(["git", "clone", "-q", "--shared", repository, place], check=True)
    subprocess.run(["git", "checkout", "-q", "--detach", sha], cwd=place, check=True)
    return all(subprocess.run(["sh", "-c", command], cwd=place).returncode == 0 for command in GATE)
