"""Work that only passes because it changed what judges it does not land, and the next attempt is told why.

The other ways to cheat are in `tests/trust`.
"""

from tests.acceptance.gates.calculator import BROKEN, HONEST, Calculator, write
from tests.trust.lies_to_gates import LOOSE

from loopwright.core.model import Plan


def test_asserts_that_are_gone_are_named_without_any_run_of_the_gate_and_the_next_attempt_is_told(
    calculator: Calculator,
) -> None:
    said = calculator.carry_out([write("calc.py", BROKEN), write("tests/test_calc.py", LOOSE)], HONEST)
    assert said.code == 0, said.out + said.err
    first, second = calculator.attempts("mul")
    assert (first.state, first.failure, second.state) == ("REJECTED", "gate", "LANDED")
    assert calculator.gate_files(1)["weakened"] == (
        "tests/test_calc.py: no longer checked: assert add(2, 2) == 4",
        "tests/test_calc.py: no longer checked: assert add(0, 0) == 0",
    )
    assert first.verdict_id is None
    branch = calculator.row(Plan).branch
    assert "return a + b" in calculator.git("show", f"{branch}:calc.py")
    assert "told" not in calculator.git("ls-tree", "--name-only", branch).split()
