"""The check that a planner's plan has to pass: `python -m loopwright.services.plans.spec_check [--gates] FILE`."""

import re
import sys
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text.reading import read
from loopwright.core.plans.evaluating import cannot_fail
from loopwright.core.plans.planning import FENCE
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.wording import drawable, listed
from loopwright.engine.intake.evaluation import evaluate
from loopwright.ports import PlannedWork

GATES: Final = "--gates"
"""The project has no checks, so the plan may name some."""
_SHOWN: Final = 300
_KEY: Final = re.compile(r"""^\s*\{|^["']?\w+["']?:""", re.MULTILINE)
"""How a text that is meant as a plan begins or continues."""


def main(arguments: list[str]) -> int:
    """Print what is wrong with a plan, one problem per line with its place; return 0 if nothing is."""
    path = Path(arguments[-1])
    problems: list[str] = []
    try:
        work = read(YamlSource(), path)
        problems += [f"{path.as_posix()}: {one}" for one in _wrong(work, gates=GATES in arguments)]
        evaluate(work, path.as_posix())
    except BadPlan as bad:
        said = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
        # Positions of errors in prose do not help.
        located = (*problems, *bad.problems) if _KEY.search(said) else ()
        problems = [*located, *_no_plan_at_all(said)]
    except Refused as pointless:
        problems.append(str(pointless))
    sys.stdout.write(drawable("".join(f"{problem}\n" for problem in problems)))
    return 1 if problems else 0


def _wrong(work: PlannedWork, *, gates: bool) -> list[str]:
    """Return what a planner must not set, and tasks without a check."""
    found = []
    if work.settings:
        found.append("settings: they are not part of what you plan, leave them out")
    if work.gates is not None and not gates:
        found.append("gates: the project has its own checks, leave them out")
    bare = [task.key for task in work.tasks if not task.acceptance]
    if gates and not work.gates and bare:
        found.append(
            f"no criterion can fail where nothing checks the work of {listed(bare)}: give it acceptance"
        )
    elif bare and len(bare) == len(work.tasks):
        # The checks of the project also pass before the work: they prove nothing about the goal.
        found.append(
            "no criterion can fail: no task has acceptance, so nothing would show that the goal is met"
        )
    vain = [
        one.check.command for task in work.tasks for one in task.held_out if cannot_fail(one.check.command)
    ]
    if vain:
        found.append(f"held_out: a command that always passes checks nothing: {listed(vain)}")
    for task in work.tasks:
        named = {
            "agent": task.agent,
            "model": task.model,
            "max_attempts": task.max_attempts,
            "may_change": task.may_change or None,
        }
        found += [
            f"task {task.key}: {key}: leave it out" for key, value in named.items() if value is not None
        ]
    return found


def _no_plan_at_all(text: str) -> list[str]:
    """Return the beginning of a text that is not a plan."""
    if "tasks" in text:
        return []
    said = " ".join(text.split())[:_SHOWN] or "nothing"
    return [f"there is no block ```{FENCE} with tasks; instead of a plan the answer has: {said}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
