"""Bars and spark lines as geometry."""

from itertools import pairwise

from tests.cases import each_case

from loopwright.server.pages.charts import HEIGHT, SPARK_HEIGHT, draw_bars, round_step, spark


def test_bars_stand_beside_each_other_and_are_as_high_as_their_amounts() -> None:
    drawn = draw_bars([0, 10, 40, 1])
    assert all(one.left + one.width < next_one.left for one, next_one in pairwise(drawn.bars))
    assert drawn.bars[0].height == 0
    assert drawn.bars[2].height == drawn.bars[1].height * 4 == HEIGHT
    assert all(round(one.top + one.height, 1) == HEIGHT for one in drawn.bars)
    assert [one.value for one in drawn.lines] == [0, 10, 20, 30, 40]
    assert drawn.lines[-1].top == 0


def test_an_amount_above_nothing_can_be_seen_beside_a_large_one() -> None:
    assert draw_bars([1, 1_000_000]).bars[0].height == 1.5


def test_amounts_of_nothing_and_no_amounts_can_be_drawn() -> None:
    assert [one.height for one in draw_bars([0, 0]).bars] == [0, 0]
    assert draw_bars([]).bars == ()
    assert spark([]) == ""
    assert spark([0]) == "0,21"


@each_case("highest, step", [(0, 1), (4, 1), (9, 5), (10, 5), (100, 25), (7_310_000, 2_000_000), (41, 20)])
def test_marks_are_at_round_amounts(highest: int, step: int) -> None:
    assert round_step(highest) == step
    assert len(draw_bars([highest]).lines) <= 5


def test_a_spark_line_reaches_from_side_to_side_and_stays_inside() -> None:
    points = [tuple(map(float, one.split(","))) for one in spark([0, 5, 10]).split()]
    assert [x for x, _ in points] == [0, 50, 100]
    assert points[0][1] == SPARK_HEIGHT - 1
    assert points[2][1] == 1
