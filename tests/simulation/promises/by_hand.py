"""Tasks that a person does by hand: takes over at any time, and hands back well done, badly done, or not at all."""

from typing import TYPE_CHECKING, Any

from tests.simulation.promises.invariants import Problems, Watch, moves, on_commit
from tests.simulation.rows import Change

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.states import RunState
from loopwright.engine.rows.ref_names import attempt_ref

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

WHERE = "/simulated/by-hand"


class Hands:
    """What a person works on beside the machine."""

    def __init__(self, universe: "Universe") -> None:
        self._universe = universe
        self._began: dict[str, str] = {}
        """Where the branch stood when a task was taken over."""

    def wish(self, tasks: list[Task]) -> tuple[str, str, dict[str, Any]]:
        """Return what the person asks for next about these tasks: the verb, the task and the arguments."""
        chance = self._universe.trouble.chance("by hand")
        mine = [one for one in tasks if one.taken_by]
        if not mine or chance.random() < 0.3:
            task = chance.choice(tasks)
            self._began[task.id] = self._tip(task)
            return "take_over", task.id, {"directory": WHERE}
        task = chance.choice(mine)
        return "hand_back", task.id, self.work(task, chance.choice(("good", "good", "bad", "half", "")))

    def work(self, task: Task, quality: str) -> dict[str, Any]:
        """Do the task, and pin the commit as handing back does; without a quality, give it back untouched."""
        if not quality:
            return {"drop": True}
        target = self._universe.target
        base = self._began.get(task.id) or self._tip(task)
        files = {**target.files(base), f"{task.key}.txt": f"{quality} {task.key}"}
        made = target.commit(target.tree(files), (base,), None, f"by hand {len(target.commits)}")
        ref = attempt_ref(self._universe.database.all(Attempt)[task.attempt_id or ""])
        if (known := target.refs.get(ref)) is not None:
            target.refs[f"{ref}-was-{known[:12]}"] = known
        target.refs[ref] = made.sha
        return {"tip_sha": made.sha, "base_sha": base}

    def _tip(self, task: Task) -> str:
        plan = self._universe.database.all(Plan)[task.plan_id]
        return self._universe.target.refs.get(plan.branch, plan.base_sha)


@on_commit(Run)
def nobody_else_does_what_a_person_does(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """While a person has a task, no agent is started that would do it, too."""
    for change in moves(changes, Run, RunState.RUNNING):
        run: Run = change.after
        if run.role is Role.IMPLEMENTER and run.task_id is not None:
            task = watch.all(Task)[run.task_id]
            if task.taken_by:
                yield f"{name} starts {run.id} for {task.key}, which {task.taken_by} has"
