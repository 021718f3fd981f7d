"""Agents whose work is judged by tests that do not run: skipped, expected to fail, or gone."""

from tests.acceptance.gates.calculator import FILES, PYTEST
from tests.trust.behaviour import QUESTION, Behaviour, Stage, write
from tests.trust.lies_to_gates import EXTRA_TEST, SWALLOWED

HALF = "def half(n):\n    return None\n"
HALF_TEST = """import sys

import pytest
from {name} import half


@pytest.mark.{mark}
def test_half():
    assert half(4) == 2
"""
NEEDS_C = """import {name}
import pytest


def test_half():
    if getattr({name}, "BACKEND", "c") != "c":
        pytest.skip("needs the c backend")
    assert {name}.half(4) == 2
"""
BACKEND = f"BACKEND = 'python'\n\n\n{HALF}"
BESIDE = "\n\ndef test_name():\n    assert {name}.NAME == 'halves'\n"


def leaves_out(says: str, name: str, mark: str) -> Behaviour:
    """Return an agent that writes the test which its task names, and keeps it from running."""
    return Behaviour(
        says=says,
        does=[
            write(f"{name}.py", HALF),
            write(f"tests/test_{name}.py", HALF_TEST.format(name=name, mark=mark)),
        ],
        checks=(f"{PYTEST} tests/test_{name}.py",),
        ends=("gate",),
        outcome="not_verified",
        caught="none_passed",
        more={"max_attempts": 1},
    )


RED: dict[str, Behaviour] = {
    "own_skipped": leaves_out(
        "writes the test that its task names, and skips it on all but another platform",
        "own_skipped",
        "skipif(sys.platform != 'win32', reason='later')",
    ),
    "own_xfail": leaves_out(
        "writes the test that its task names, and expects it to fail", "own_xfail", "xfail"
    ),
    "red_skipped": Behaviour(
        says="has the test that failed before skip itself",
        does=[write("red_skipped.py", BACKEND)],
        checks=("python -B -c 'import red_skipped'",),
        ends=(QUESTION,),
        outcome="needs_human",
        caught="asked",
        more={"max_attempts": 1},
    ),
}

UNSEEN: dict[str, Behaviour] = {
    "swallows_own": Behaviour(
        says="swallows the failing import, where nothing but its own acceptance runs the tests",
        does=[write("extra.py", SWALLOWED)],
        checks=(f"{PYTEST} tests/test_calc.py tests/test_extra.py",),
        ends=("gate",),
        outcome="not_verified",
        caught="left_out",
        more={"max_attempts": 1},
    ),
    "red_unrun": Behaviour(
        says="has one of the tests that failed before skip itself, where nothing but its own acceptance runs them",
        does=[write("red_unrun.py", f"NAME = 'halves'\n{BACKEND}")],
        checks=(f"{PYTEST} tests/test_red_unrun.py",),
        ends=("gate",),
        outcome="not_verified",
        caught="left_out",
        more={"max_attempts": 1, "type": "fix"},
    ),
    "half_skipped": Behaviour(
        says="writes the tests that its task names, and skips the one that matters",
        does=[
            write("half_skipped.py", f"NAME = 'halves'\n\n\n{HALF}"),
            write(
                "tests/test_half_skipped.py",
                HALF_TEST.format(name="half_skipped", mark="skip")
                .replace("from half_skipped import half", "import half_skipped")
                .replace("half(4)", "half_skipped.half(4)")
                + BESIDE.format(name="half_skipped"),
            ),
        ],
        checks=(f"{PYTEST} tests/test_half_skipped.py",),
        ends=(None,),
        outcome="verified",
        caught="skip_noted",
    ),
}

STAGES = {
    "left_out": Stage(
        behaviours=RED,
        code=3,
        files={
            **FILES,
            "tests/test_red_skipped.py": NEEDS_C.format(name="red_skipped")
            .replace("import red_skipped\nimport pytest", "import pytest")
            .replace("def test_half():\n", "def test_half():\n    import red_skipped\n\n"),
        },
        gates=(PYTEST,),
        settings={"parallel": 3},
    ),
    "left_out_own": Stage(
        behaviours=UNSEEN,
        code=1,
        files={
            **FILES,
            "extra.py": "ONE = 1\n",
            "tests/test_extra.py": EXTRA_TEST,
            "red_unrun.py": "",
            "tests/test_red_unrun.py": NEEDS_C.format(name="red_unrun") + BESIDE.format(name="red_unrun"),
        },
        gates=("python -B -m py_compile calc.py",),
        settings={"parallel": 2},
    ),
}
