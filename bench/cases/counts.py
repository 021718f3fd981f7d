"""How often a task asks something of the database and of git: exact, and the same on every machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Measurement, Setting
from bench.yard import Yard, independent

CASE = "counts"
SIZES = (5, 15)
SECONDS = 0.1


def case(setting: Setting) -> Iterator[Measurement]:
    """Count over two sizes; what one more task adds is the difference."""
    small, large = (_counted(setting, count) for count in SIZES)
    more = SIZES[1] - SIZES[0]

    def per_task(name: str, of: dict[str, int], before: dict[str, int], *only: str) -> Measurement:
        def total(counts: dict[str, int]) -> int:
            return sum(number for what, number in counts.items() if not only or what in only)

        values = ((total(of) - total(before)) / more,)
        return Measurement(case=CASE, name=f"{name}, per task", unit="", values=values)

    sql, sql_before = large["statements"], small["statements"]
    yield per_task("writing transactions", sql, sql_before, "BEGIN IMMEDIATE")
    yield per_task("reading transactions", sql, sql_before, "BEGIN")
    yield per_task("SQL statements", sql, sql_before)
    yield per_task("git commands", large["git"], small["git"])
    yield per_task("keepers", large["programs"], small["programs"], "keeper")


def _counted(setting: Setting, count: int) -> dict[str, dict[str, int]]:
    yard = Yard(root=setting.folder / f"counted-{count}", jobs=independent(count, SECONDS)).make()
    result = yard.root / "counts.json"
    root = str(Path(__file__).parent.parent.parent)
    subprocess.run(
        [sys.executable, "-m", "bench.counted", str(result), "run", "plan.json", "--json"],
        cwd=yard.repository,
        env={**yard.env(), "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    found: dict[str, dict[str, int]] = json.loads(result.read_text())
    # They are forked from a program that is started once, so it is what they left that counts them.
    found["programs"]["keeper"] = len(yard.roles())
    yard.remove()
    return found
