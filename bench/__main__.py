"""Run the benchmark: `python -m bench [--quick] [--cases a,b] [--repeats N] [--docs]`."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import chart, machine, page, table
from bench.measure import Case, Setting

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "bench" / "results" / "latest.json"
DOCS = ROOT / "docs/reference"
CASES = (
    "landing",
    "script",
    "counts",
    "makespan",
    "growth",
    "history",
    "events",
    "loops",
    "recovery",
    "api",
    "pages",
    "soak",
    "keeper",
    "repository",
    "sources",
)


def main(arguments: Sequence[str]) -> int:
    """Measure what was asked for, write it down and show it; 1 when a target is missed."""
    asked = _asked(arguments)
    if asked.render:
        put_into(DOCS, {})
        return 0
    began = time.monotonic()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    cases: dict[str, dict[str, Any]] = {}
    for name, case in _measured(asked):
        # Each at once: whoever ends it after half an hour has what was measured by then.
        cases[name] = case
        asked.out.write_text(_json(cases))
        if asked.docs:
            put_into(DOCS, {name: case})
    measurements = page.figures(cases)
    sys.stdout.write(table.text(measurements) + "\n")
    missed = [one.name for one in measurements if one.met is False]
    sys.stdout.write(f"\n{time.monotonic() - began:.0f} s; {len(missed)} targets missed; {asked.out}\n")
    return 1 if missed and asked.strict else 0


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure the product beside its baselines.")
    parser.add_argument("--cases", default="", help=f"which ones, of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, under three minutes")
    parser.add_argument("--repeats", type=int, default=3, help="how often each figure is taken")
    parser.add_argument("--out", type=Path, default=LATEST, help="where the result is written, as JSON")
    parser.add_argument(
        "--docs", action="store_true", help="put the result into docs/reference/benchmarks.json and the page"
    )
    parser.add_argument("--render", action="store_true", help="measure nothing: make the page from its JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    asked = parser.parse_args(arguments)
    wanted = [name for name in asked.cases.replace(",", " ").split() if name]
    unknown = [name for name in wanted if name not in CASES]
    if asked.docs and asked.quick:
        parser.error("the docs have the full form; leave out --quick or --docs")
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; there are {', '.join(CASES)}")
    asked.wanted = wanted or list(CASES)
    return asked


def _measured(asked: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in asked.wanted:
        folder = Path(tempfile.mkdtemp(prefix="lwb-"))
        setting = Setting(folder=folder, quick=asked.quick, repeats=1 if asked.quick else asked.repeats)
        case: Case = import_module(f"bench.cases.{name}").case
        sys.stderr.write(f"{name} …\n")
        at, on = datetime.now(UTC).isoformat(timespec="seconds"), machine.describe()
        found = []
        try:
            for one in case(setting):
                sys.stderr.write(f"  {'  '.join(cell for cell in table.row(one) if cell)}\n")
                found.append(one.document())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        yield name, {"at": at, "quick": asked.quick, "machine": on, "measurements": found}


def put_into(docs: Path, cases: Mapping[str, Mapping[str, Any]]) -> None:
    """Put these cases beside what the docs have of the others, and make page and chart of all of them."""
    kept = docs / "benchmarks.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    both = {**known, **cases}
    both = {name: both[name] for name in CASES if name in both}
    kept.write_text(_json(both))
    path = kept.with_suffix(".md")
    text = page.replaced(path.read_text(encoding="utf-8"), page.rendered(both))
    path.write_text(text, encoding="utf-8")
    picture = chart.svg(page.figures(both), title=page.TITLE)
    path.with_suffix(".svg").write_text(picture, encoding="utf-8")


def _json(cases: Mapping[str, Mapping[str, Any]]) -> str:
    return json.dumps(cases, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the cases that were measured by then are written down\n")
        sys.exit(130)
