"""Run Loopwright unattended on benchmark tasks: `python -m bench.benchmark TASKS --out FOLDER`.

A task is a folder with `task.json` as SWE-bench has its instances: `instance_id`, `repo` (an address or a path),
`base_commit` and `problem_statement`, which may be in `problem.md` instead. `test_command`, if given, is the gate:
the tests of the base commit. `acceptance`, if given, has commands that show that the problem is solved. What grades
the result (`patch`, `test_patch`, `FAIL_TO_PASS`, `PASS_TO_PASS`) is never read, so no agent can see it.

`predictions.jsonl` has the patches in the form that SWE-bench takes, `results.jsonl` what each one cost. A task that
has a result is not run again.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright import Loopwright
from loopwright.core.values.errors import LoopwrightError
from loopwright.core.values.states import TaskState
from loopwright.engine.views.views import PlanView
from loopwright.services.driving.driver import Rested
from loopwright.services.runs.preparation import RunRequest

_UNATTENDED: Final = {"answer_within": "1m"}
"""You are not there to answer, so a question takes its default soon, or ends its task."""


class BadTask(Exception):
    """A task folder that cannot be run: its message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One benchmark task."""

    id: str
    repository: str
    base: str
    problem: str
    test_command: str = ""
    acceptance: tuple[str, ...] = ()

    def plan(self) -> Mapping[str, Any]:
        """Return it as a plan with one task."""
        gates = [{"name": "tests", "run": self.test_command}] if self.test_command else []
        first = self.problem.strip().splitlines()[0]
        task: dict[str, Any] = {"id": "solve", "title": first[:120], "description": self.problem}
        task["acceptance"] = [{"name": f"solved {n}", "run": one} for n, one in enumerate(self.acceptance, 1)]
        return {"title": self.id, "gates": gates, "tasks": [task]}


def read(folder: Path) -> Instance:
    """Read a task folder."""
    file = folder / "task.json"
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        problem = said.get("problem_statement") or (folder / "problem.md").read_text(encoding="utf-8")
        repository = str(said["repo"])
        if (folder / repository).is_dir():
            repository = str((folder / repository).resolve())
        found = Instance(
            id=str(said["instance_id"]),
            repository=repository,
            base=str(said["base_commit"]),
            problem=str(problem),
            test_command=str(said.get("test_command") or ""),
            acceptance=tuple(map(str, said.get("acceptance") or ())),
        )
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BadTask(f"{file} is not a task: {error!r}") from error
    if not found.problem.strip():
        raise BadTask(f"{file} has no problem_statement, and problem.md is empty")
    if Path(found.id).name != found.id or found.id in ("", ".", ".."):
        raise BadTask(f"{file}: the instance_id {found.id!r} cannot be a folder's name")
    return found


def folders(given: Sequence[Path]) -> Iterator[Path]:
    """Yield the task folders: those given, or those inside of them."""
    for one in given:
        if (one / "task.json").exists():
            yield one
        else:
            yield from sorted(path.parent for path in one.glob("*/task.json"))


def check_out(of: Instance, folder: Path) -> None:
    """Make a repository that ends at the base commit: what came later would give the solution away."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in (
        ("init", "-q", "-b", "main"),
        ("fetch", "-q", "--no-tags", of.repository, of.base),
        ("checkout", "-q", "-B", "main", "FETCH_HEAD"),
    ):
        _git(folder, *command)


async def solve(of: Instance, out: Path, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Let Loopwright work on a task; return its result."""
    began = time.monotonic()
    folder = out / "repositories" / of.id
    check_out(of, folder)
    plan = out / "plans" / f"{of.id}.json"
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(of.plan(), indent=1), encoding="utf-8")
    unproven = {} if of.test_command or of.acceptance else {"allow_unverified": True}
    asked = RunRequest(plan=plan.resolve(), flags={**_UNATTENDED, **unproven, **flags})
    rested = await Loopwright(folder, home=out / "home").plans.run(asked)
    view = rested.view if isinstance(rested, Rested) else None
    if view is None:
        raise BadTask(f"{of.id}: the run ended before its plan came to rest")
    return {
        "instance_id": of.id,
        "status": view.status.value,
        "outcome": view.outcome.value if view.outcome else None,
        "reason": view.tasks[0].reason or view.reason,
        "attempts": view.tasks[0].attempt,
        "cost_micros": view.cost_micros,
        "cost_complete": view.cost_complete,
        "seconds": round(time.monotonic() - began, 1),
        "model_patch": _patch(folder, view),
    }


def _patch(folder: Path, view: PlanView) -> str:
    """Return what landed, as a patch; empty where nothing did."""
    if not any(one.status is TaskState.COMPLETE for one in view.tasks):
        return ""
    return _git(folder, "diff", "--binary", "--no-color", view.base_sha, view.branch)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, errors="surrogateescape"
    )
    if done.returncode:
        raise BadTask(f"git {' '.join(arguments)} failed in {folder}: {done.stderr.strip()}")
    return done.stdout


def _append(path: Path, row: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(json.dumps(row) + "\n")


def _known(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = path.read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["instance_id"] for line in lines if line.strip()}


def main(arguments: Sequence[str]) -> int:
    """Run the tasks one after the other; 1 when one could not be run."""
    parser = argparse.ArgumentParser(prog="bench.benchmark", description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="+", type=Path, help="task folders, or folders of task folders")
    parser.add_argument("--out", type=Path, required=True, help="where predictions and results are written")
    parser.add_argument("--name", default="loopwright", help="model_name_or_path of the predictions")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the run"
    )
    asked = parser.parse_args(arguments)
    flags = dict(one.split("=", 1) for one in asked.set)
    asked.out.mkdir(parents=True, exist_ok=True)
    out = asked.out.resolve()
    results, predictions = out / "results.jsonl", out / "predictions.jsonl"
    done, bad = _known(results), 0
    for folder in folders(asked.tasks):
        try:
            task = read(folder)
            if task.id in done:
                continue
            row = asyncio.run(solve(task, out, flags))
        except (BadTask, LoopwrightError) as error:
            sys.stderr.write(f"{folder}: {error}\n")
            bad += 1
            continue
        patch = row.pop("model_patch")
        told = {"instance_id": task.id, "model_name_or_path": asked.name, "model_patch": patch}
        if task.id not in _known(predictions):  # a kill between the two files leaves the first of them
            _append(predictions, told)
        _append(results, row)
        sys.stdout.write(f"{task.id}: {row['status']}, {len(patch.splitlines())} lines of patch\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
