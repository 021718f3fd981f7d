"""The part of `docs/benchmarks.md` that is made from a result. Pure: text in, text out."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench import table
from bench.measure import Measurement

BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"
TITLE = "Loopwright against its baselines (1 is the baseline; shorter is better)"


def rendered(measurements: Sequence[Measurement], result: Mapping[str, Any]) -> str:
    """Return the machine, the targets and the tables of every case."""
    machine = "; ".join(f"{name} {value}" for name, value in result["machine"].items())
    lines = [
        f"Measured {result['at'][:10]} ({'quick form' if result['quick'] else 'full form'}) on: {machine}.",
        "",
        "![Ratios to the baselines](benchmarks.svg)",
        "",
        "### Targets",
        "",
        table.markdown([one for one in measurements if one.target is not None]),
    ]
    for case in dict.fromkeys(one.case for one in measurements):
        lines += ["", f"### {case}", "", table.markdown([one for one in measurements if one.case == case])]
    return "\n".join(lines)


def replaced(page: str, part: str) -> str:
    """Return the page with a new part between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{part}\n{END}{after}"
