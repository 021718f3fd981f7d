"""Work of 1,000 items: how long reading it, evaluating it and telling all of it that it is done take."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from bench.measure import Measurement, Setting, Target
from loopwright.adapters import registry
from loopwright.engine.intake.evaluation import evaluate
from loopwright.ports import Files, ItemProgress, Mark, Progress, Source

CASE = "sources"
ITEMS: Final = 1_000
PHASE: Final = 50
LIMIT_S: Final = 1.0


def case(setting: Setting) -> Iterator[Measurement]:
    """Do all three to each form, in memory."""
    for kind, made in FORMS.items():
        files = made(ITEMS)
        source = registry.source(kind)
        yield Measurement(
            case=CASE,
            name=f"{ITEMS:,} items in {next(iter(files))} read, evaluated and written back",
            unit="s CPU",
            values=tuple(_taken(source, files) for _ in range(max(setting.repeats, 3))),
            target=Target(limit=LIMIT_S, of="value"),
        )


def _taken(source: Source, files: Files) -> float:
    began = time.process_time()
    work = source.parse(files, "work")
    evaluate(work, "work")
    done = ItemProgress(mark=Mark.DONE, commit="a" * 40, summary="done", checks=("tests: passed",))
    items = {task.key: done for task in work.tasks}
    told = source.written(files, Progress(plan_id="plan_1", at=datetime.now(UTC), items=items))
    took = time.process_time() - began
    assert told, "nothing was written back"
    assert len(items) == ITEMS
    return took


def plan_md(count: int) -> Files:
    """Return a checkbox plan with phases."""
    lines = ["# Large\n"]
    for n in range(count):
        if n % PHASE == 0:
            lines.append(f"\n## Phase {n // PHASE + 1}: Part\n\n")
        lines.append(f"- [ ] Task {n // PHASE + 1}.{n % PHASE + 1}: Do number {n}\n")
        lines.append(f"  - Acceptance: `test -e made-{n}`\n  - Files: src/{n}.py\n")
    return {"plan.md": "".join(lines).encode()}


def feature_list(count: int) -> Files:
    """Return a feature list whose features wait for each other in tens."""
    features = [
        {
            "id": f"f{n}",
            "name": f"Feature {n}",
            "description": "All of it.",
            "dependencies": [f"f{n - 1}"] if n % 10 else [],
            "priority": n % 7,
            "tests": [f"`test -e made-{n}` passes"],
            "passes": False,
        }
        for n in range(count)
    ]
    return {"feature_list.json": json.dumps({"project": "Large", "features": features}, indent=2).encode()}


FORMS: Final[Mapping[str, Callable[[int], Files]]] = {"plan_md": plan_md, "feature_list": feature_list}
