"""Compare ways of working in the simulation: `python -m bench.worth [--docs]`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.worth.measuring import document
from bench.worth.page import rendered

KEPT = Path(__file__).resolve().parent.parent.parent / "docs/reference/worth.json"
MADE = "<!-- Made by `make worth DOCS=1`. Edit bench/worth, not this. -->\n\n"


def main(arguments: Sequence[str]) -> int:
    """Play, and print the page or write its numbers."""
    parser = argparse.ArgumentParser(prog="bench.worth", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="play everything, and write docs/reference")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one per processor)")
    asked = parser.parse_args(arguments)
    if not asked.docs:
        sys.stdout.write(rendered(document(tasks=800, sensitivity_tasks=400, projects=2, jobs=asked.jobs)))
        return 0
    found = document(tasks=8_000, sensitivity_tasks=2_000, projects=8, jobs=asked.jobs)
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    KEPT.with_suffix(".md").write_text(MADE + rendered(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
