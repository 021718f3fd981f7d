"""The part of `docs/reference/benchmarks.md` that is made from what was measured. Pure: text in, text out."""

from collections.abc import Mapping
from typing import Any

from bench import table
from bench.measure import Measurement, read

BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"
TITLE = "Loopwright against its baselines (1 is the baseline; shorter is better)"


def figures(cases: Mapping[str, Mapping[str, Any]]) -> list[Measurement]:
    """Return the figures of all cases."""
    return [read(one) for case in cases.values() for one in case["measurements"]]


def rendered(cases: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the targets, and for every case when and where it was measured and its table."""
    lines = [
        "![Ratios to the baselines](benchmarks.svg)",
        "",
        "### Targets",
        "",
        table.markdown([one for one in figures(cases) if one.target is not None]),
    ]
    for name, case in cases.items():
        machine = "; ".join(f"{what} {value}" for what, value in case["machine"].items())
        measured = (
            f"Measured {case['at'][:10]} ({'quick form' if case['quick'] else 'full form'}) on: {machine}."
        )
        lines += ["", f"### {name}", "", measured, "", table.markdown(figures({name: case}))]
    return "\n".join(lines)


def replaced(page: str, part: str) -> str:
    """Return the page with a new part between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{part}\n{END}{after}"
