"""An arena where many wait to land at once: its gate does not end before those behind it are being judged as well."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.chaos.arena import Arena

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.gates.gates import task_commands
from loopwright.core.rows.model import Attempt, Outcome, Plan, Role, Run, Task, VerdictRecord
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import ENDED_RUN, AttemptState, PlanState, RunState
from loopwright.testing.scripted import write_script

R = TypeVar("R")

GATE = """
cd {root}
n=$(ls "$OLDPWD/out" | wc -l)
tree=$(git -C "$OLDPWD" rev-parse 'HEAD^{{tree}}')
landed() {{ git -C repository for-each-ref --format='%(objectname)' refs/heads/loopwright/ | {{
    read tip; git -C repository rev-list --first-parent --count trunk..$tip; }}; }}
behind() {{ for each in judging/*; do
    kill -0 ${{each##*/}} 2>/dev/null && cat $each; done | sort -un | awk -v n=$n '$1 > n' | wc -l; }}
echo $n > judging/$$
echo $n > seen/$tree
trap 'rm -f judging/$$' EXIT
until {until}; do test -e open || exit 1; sleep 0.05; done
! grep -qx bad "$OLDPWD"/out/* || exit 1
echo $tree >> passed
"""
"""It takes its time until something holds, and writes down which tree it passed."""
AT_ONCE = 3
"""How many are judged at the same time."""
LINE = "%H %T %(trailers:key=Loopwright-Task,valueonly,separator=%x2C)"
LANDS_NEXT = (
    "test -e line && now=$(landed) && { test $now -ge $n || "
    "{ test $now -eq $((n - 1)) && { test $(behind) -ge 1 || test $n -ge $(cat line); }; }; }"
)
"""It is its turn, and as long as the file says that there are others, one is being judged on top of it."""
TWO_ARE_FIRST = "test $n -gt 1 || test $(grep -lx 1 seen/* | wc -l) -ge 2"
"""Two workers judge their first one at the same time, each on the same tip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingArena(Arena):
    """Tasks that do not depend on each other, each done at once."""

    @classmethod
    def build(cls, root: Path, keys: Sequence[str], *, until: str, steps: dict[str, Any]) -> "LandingArena":
        """Create the repository, the plan, the gate and the script of the agents."""
        arena = cls(root=root)
        for folder in ("user", "repository", "judging", "seen", "started"):
            (root / folder).mkdir(parents=True)
        (root / "open").touch()
        (root / "gate.sh").write_text(GATE.format(root=root, until=until))
        plan = {
            "title": "Landing",
            "gates": [{"name": "whole", "run": f"sh {root}/gate.sh"}],
            "tasks": [
                {"id": key, "title": f"Make {key}", "acceptance": [f"test -s out/{key}"]} for key in keys
            ],
        }
        (arena.repository / "plan.yaml").write_text(json.dumps(plan))
        for command in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-qm", "base"]):
            arena.git(*command)
        good = {key: [[{"write": f"out/{key}", "text": f"{key}\n"}]] for key in keys}
        write_script(root / "script.json", {"journal": "journal", "tasks": {**good, **steps}})
        return arena

    def env(self, **more: str) -> dict[str, str]:
        gates = {"LOOPWRIGHT_SANDBOX__LEVEL": "none", "LOOPWRIGHT_LANDING__PARALLEL_GATES": str(AT_ONCE)}
        # A dataclass with slots is made anew, so the short form would not find it.
        return super(LandingArena, self).env(**{**gates, **more})


def read(store: SqlStore, kind: type[R], **where: Any) -> list[R]:
    """Return rows of a home."""
    return store.read_sync(lambda tx: tx.find(kind, **where))


def judged_now(store: SqlStore) -> set[str | None]:
    """Return the attempts that a gate judges, by the rows."""
    runs = read(store, Run, role=Role.GATE, state=RunState.RUNNING)
    return {run.attempt_id for run in runs}


def check_landed(arena: LandingArena, store: SqlStore) -> None:
    """Hold the end of the plan against what landing promises."""
    [plan] = read(store, Plan)
    assert plan.status is PlanState.VERIFIED
    assert plan.outcome is Outcome.VERIFIED
    tasks = {task.id: task for task in read(store, Task)}
    line = arena.git("log", "--first-parent", f"--format={LINE}", f"{plan.base_sha}..{plan.branch}")
    commits = [entry.split() for entry in line.splitlines()]
    assert Counter(task_id for _, _, task_id in commits) == Counter(list(tasks)), "landed twice, or never"
    passed = set((arena.root / "passed").read_text().split())
    for sha, tree, task_id in commits:
        assert tree in passed, f"{sha} was never judged"
        assert tasks[task_id].landed_sha == sha
        records = read(store, VerdictRecord, plan_id=plan.id, tree=tree)
        good = [one.verdict for one in records if one.verdict.status is VerdictStatus.PASSED]
        wanted = {one.command for one in task_commands(plan, tasks[task_id])}
        assert any(wanted <= {one.command for one in verdict.commands} for verdict in good)
    assert not [run for run in read(store, Run) if run.state not in ENDED_RUN]
    landed = Counter(one.task_id for one in read(store, Attempt) if one.state is AttemptState.LANDED)
    assert landed == Counter(list(tasks))
    assert arena.git("status", "--porcelain") == "", "the user's checkout was touched"
    assert arena.git("rev-parse", "trunk") == plan.base_sha
