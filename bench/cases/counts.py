"""What one more landing asks of the database, of git and of the system: exact, and the same on every machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Measurement, Setting
from bench.projects import Project
from bench.yard import independent

CASE = "counts"
SIZES = (5, 15)


def case(setting: Setting) -> Iterator[Measurement]:
    """Count over two sizes; what one more task adds is the difference."""
    rounds = range(1 if setting.quick else setting.repeats)
    counted = [tuple(_counted(setting, count, n) for count in SIZES) for n in rounds]

    def per_task(name: str, kind: str, *only: str) -> Measurement:
        def total(counts: dict[str, dict[str, int]]) -> int:
            return sum(number for what, number in counts[kind].items() if not only or what in only)

        values = tuple((total(large) - total(small)) / (SIZES[1] - SIZES[0]) for small, large in counted)
        return Measurement(case=CASE, name=f"{name}, per landing", unit="", values=values)

    yield per_task("writing transactions", "statements", "BEGIN IMMEDIATE")
    yield per_task("reading transactions", "statements", "BEGIN")
    yield per_task("SQL statements", "statements")
    yield per_task("git commands", "git")
    yield per_task("keepers of agents and gates", "programs", "keeper")
    yield per_task("gate commands", "programs", "gate command")


def _counted(setting: Setting, count: int, n: int) -> dict[str, dict[str, int]]:
    yard = Project(root=setting.folder / f"counted-{count}-{n}", jobs=independent(count, 0)).make()
    result = yard.root / "counts.json"
    root = str(Path(__file__).parent.parent.parent)
    subprocess.run(
        [sys.executable, "-m", "bench.counted", str(result), "run", "plan-0.json", "--json"],
        cwd=yard.repository,
        env={**yard.env(), "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    found: dict[str, dict[str, int]] = json.loads(result.read_text())
    # They are forked from a program that is started once, so it is what they left that counts them.
    found["programs"]["keeper"] = len(yard.roles())
    found["programs"]["gate command"] = len(yard.commands_run())
    yard.remove()
    return found
