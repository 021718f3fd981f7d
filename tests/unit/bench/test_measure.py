"""The figures of the benchmark: medians, ratios, spreads and targets."""

from bench.measure import Measurement, Target, read, taken_in_turn
from tests.cases import each_case


def figure(**changes: object) -> Measurement:
    given: dict[str, object] = {"case": "c", "name": "n", "unit": "s", "values": (1.0, 4.0, 2.0)}
    return Measurement(**{**given, **changes})


def test_a_figure_is_the_median_with_its_spread() -> None:
    assert (figure().value, figure().spread) == (2.0, (1.0, 4.0))
    assert figure().ratio is None
    assert figure().met is None


def test_repeats_that_ran_side_by_side_are_compared_with_each_other() -> None:
    # The second repeat met a busy machine in both ways: the medians alone would say 1.0.
    one = figure(values=(2.0, 20.0, 3.0), baseline=(1.0, 10.0, 3.0), against="b")
    assert one.ratio == 2.0
    assert figure(values=(2.0, 4.0), baseline=(2.0,)).ratio == 1.5


@each_case(
    ("target", "met"),
    [
        (Target(limit=2.0, of="value"), True),
        (Target(limit=1.9, of="value"), False),
        (Target(limit=4.0, of="ratio"), True),
        (Target(limit=3.9, of="ratio"), False),
    ],
)
def test_a_target_is_met_up_to_its_limit(target: Target, met: bool) -> None:
    assert figure(baseline=(0.5,), target=target).met is met


def test_a_target_on_a_ratio_without_a_baseline_is_missed() -> None:
    assert figure(target=Target(limit=9.0, of="ratio")).met is False


def test_a_figure_survives_json() -> None:
    one = figure(
        baseline=(1.0, 2.0, 1.0), against="b", target=Target(limit=2.0, of="ratio"), group="g", at="a"
    )
    assert read(one.document()) == one
    assert read(figure().document()) == figure()


def test_ways_are_taken_in_turn_and_every_other_round_backwards() -> None:
    order: list[str] = []

    def way(name: str) -> object:
        return lambda n: order.append(f"{name}{n}") or n

    found = taken_in_turn(3, (way("a"), way("b")))
    assert order == ["a0", "b0", "b1", "a1", "a2", "b2"]
    assert found == [[0, 1, 2], [0, 1, 2]]
