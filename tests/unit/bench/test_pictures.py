"""The table, the page and the chart are made from the figures alone."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bench import chart, page, table
from bench.__main__ import put_into
from bench.measure import Measurement, Target
from tests.cases import each_case

MET = Measurement(
    case="makespan",
    name="wall time | 50",
    unit="s",
    values=(2.0, 3.0),
    against="script",
    baseline=(2.0, 3.0),
    target=Target(limit=1.1, of="ratio"),
    group="Wall",
    at="50 <tasks>",
)
MISSED = Measurement(
    case="keeper", name="memory", unit="MB", values=(16.0,), target=Target(limit=15, of="value")
)
LONG = Measurement(
    case="makespan",
    name="more",
    unit="s",
    values=(4.0,),
    against="script",
    baseline=(1.0,),
    target=Target(limit=1.6, of="ratio"),
    group="Wall",
    at="200",
)


def measured(*figures: Measurement, at: str = "2030-01-02T03:04:05") -> dict[str, Any]:
    return {
        "at": at,
        "quick": False,
        "machine": {"memory": "4 GB"},
        "measurements": [one.document() for one in figures],
    }


def test_a_row_says_value_spread_baseline_ratio_and_target() -> None:
    assert table.row(MET) == (
        "wall time | 50",
        "2.50 s",
        "2.00 … 3.00 (2)",
        "2.50 s (script)",
        "1.00",
        "ratio ≤ 1.10",
        "met",
    )
    assert table.row(MISSED)[-2:] == ("≤ 15.0 MB", "**missed**")


@each_case(
    ("value", "shown"),
    [(1234.5, "1234"), (12.34, "12.3"), (1.234, "1.23"), (0.01234, "0.012"), (-5.0, "-5.00")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert table.number(value) == shown


def test_the_terminal_gets_columns_and_the_page_gets_escaped_cells() -> None:
    lines = table.text([MET, MISSED]).splitlines()
    assert lines[2].index("2.50 s") == lines[0].index("value")
    assert lines[3].endswith("missed")
    assert "wall time \\| 50" in table.markdown([MET])


def test_a_page_keeps_what_stands_around_the_marks() -> None:
    cases = {"makespan": measured(MET), "keeper": measured(MISSED)}
    text = page.replaced(f"# Before\n{page.BEGIN}\nold\n{page.END}\nAfter\n", page.rendered(cases))
    assert text.startswith("# Before\n")
    assert text.endswith(f"{page.END}\nAfter\n")
    assert "old" not in text
    assert "### makespan" in text
    assert "2030-01-02 (full form) on: memory 4 GB." in text
    with pytest.raises(ValueError, match="needs the marks"):
        page.replaced("no marks", "part")


def test_cases_that_are_measured_again_take_the_place_of_their_own_figures_alone(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    put_into(tmp_path, {"keeper": measured(MISSED), "makespan": measured(MET)})
    put_into(tmp_path, {"makespan": measured(LONG, at="2031-01-02T03:04:05")})
    kept = json.loads((tmp_path / "benchmarks.json").read_text())
    assert list(kept) == ["makespan", "keeper"]
    assert page.figures(kept) == [LONG, MISSED]
    told = (tmp_path / "benchmarks.md").read_text()
    assert "Measured 2031-01-02 (full form)" in told
    assert "Measured 2030-01-02 (full form)" in told
    assert "wall time" not in told
    assert len(bars((tmp_path / "benchmarks.svg").read_text())) == 1
    before = told
    put_into(tmp_path, {})
    assert (tmp_path / "benchmarks.md").read_text() == before


def bars(picture: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}rect")[1:]


def test_the_chart_draws_each_ratio_to_scale_and_shows_which_target_is_missed() -> None:
    first, second = bars(chart.svg([MET, MISSED, LONG], title="A <title>"))
    assert float(second.attrib["width"]) == pytest.approx(4 * float(first.attrib["width"]), abs=0.5)
    assert (first.attrib["fill"], second.attrib["fill"]) == (chart.GOOD, chart.BAD)


def test_no_bar_leaves_the_picture_and_nothing_is_drawn_without_a_ratio() -> None:
    [_, second] = bars(chart.svg([MET, LONG], title="t"))
    assert float(second.attrib["x"]) + float(second.attrib["width"]) < chart.WIDTH - 60
    assert chart.panels([MISSED]) == []
