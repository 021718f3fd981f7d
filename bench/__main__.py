"""Run the benchmark: `python -m bench [--quick] [--cases a,b] [--repeats N] [--docs]`."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import chart, machine, page, table
from bench.measure import Case, Measurement, Setting, read

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "bench" / "results" / "latest.json"
CASES = (
    "overhead",
    "makespan",
    "counts",
    "integrity",
    "growth",
    "history",
    "events",
    "loops",
    "recovery",
    "keeper",
    "repository",
    "sources",
)


def main(arguments: Sequence[str]) -> int:
    """Measure what was asked for, write it down and show it; 1 when a target is missed."""
    asked = _asked(arguments)
    if asked.render:
        result = json.loads(asked.out.read_text())
        _show(result, docs=True)
        return 0
    began = time.monotonic()
    result = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": asked.quick,
        "machine": machine.describe(),
        "measurements": [one.document() for one in _measured(asked)],
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")
    measurements = _show(result, docs=asked.docs)
    missed = [one.name for one in measurements if one.met is False]
    sys.stdout.write(f"\n{time.monotonic() - began:.0f} s; {len(missed)} targets missed; {asked.out}\n")
    return 1 if missed and asked.strict else 0


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure the product beside its baselines.")
    parser.add_argument("--cases", default="", help=f"which ones, of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, under three minutes")
    parser.add_argument("--repeats", type=int, default=3, help="how often each figure is taken")
    parser.add_argument("--out", type=Path, default=LATEST, help="where the result is written, as JSON")
    parser.add_argument("--docs", action="store_true", help="put the result into docs/benchmarks.md")
    parser.add_argument("--render", action="store_true", help="measure nothing: show the last result, --docs")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    asked = parser.parse_args(arguments)
    wanted = [name for name in asked.cases.replace(",", " ").split() if name]
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; there are {', '.join(CASES)}")
    asked.wanted = wanted or list(CASES)
    return asked


def _measured(asked: argparse.Namespace) -> Iterable[Measurement]:
    for name in asked.wanted:
        folder = Path(tempfile.mkdtemp(prefix="lwb-"))
        setting = Setting(folder=folder, quick=asked.quick, repeats=1 if asked.quick else asked.repeats)
        case: Case = import_module(f"bench.cases.{name}").case
        sys.stderr.write(f"{name} …\n")
        try:
            for one in case(setting):
                sys.stderr.write(f"  {'  '.join(cell for cell in table.row(one) if cell)}\n")
                yield one
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _show(result: dict[str, Any], *, docs: bool) -> list[Measurement]:
    measurements = [read(one) for one in result["measurements"]]
    sys.stdout.write(table.text(measurements) + "\n")
    if docs:
        path = ROOT / "docs" / "benchmarks.md"
        text = page.replaced(path.read_text(encoding="utf-8"), page.rendered(measurements, result))
        path.write_text(text, encoding="utf-8")
        picture = chart.svg(measurements, title=page.TITLE)
        path.with_suffix(".svg").write_text(picture, encoding="utf-8")
    return measurements


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing of it was written down\n")
        sys.exit(130)
