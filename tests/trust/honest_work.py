"""Agents that do what they were asked for, beside or against each other: nothing of it is taken for a lie."""

from dataclasses import replace

from tests.acceptance.gates.calculator import FILES, PYPROJECT, PYTEST, RIGHT, WORKS
from tests.acceptance.sandbox import FILES as GREETER
from tests.trust.behaviour import PLACE, QUESTION, Behaviour, Stage, shell, write

NEW_TEST = "from calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"
PLATFORM_TEST = """import sys

import pytest
from paths import separator

other = pytest.mark.skipif(sys.platform != "win32", reason="only there")


@pytest.mark.parametrize(("windows", "wanted"), [(False, "/"), pytest.param(True, chr(92), marks=other)])
def test_separator(windows, wanted):
    assert separator(windows) == wanted
"""
SHAPE_TEST = "from shape import area\n\n\ndef test_area():\n    assert area(2) == 4\n"
CIRCLE_TEST = "from circle import width\n\n\ndef test_width():\n    assert width(2) == 4\n"
PAINT_TEST = "import paint\n\n\ndef test_color():\n    assert paint.color() == 'red'\n"
SHADE_TEST = "\n\ndef test_shade():\n    assert paint.shade() == 'dark'\n"
LABEL_TEST = "from labels import label\n\n\ndef test_label():\n    assert label(1) == 'n1'\n"
FIXTURE = "import pytest\n\n\n@pytest.fixture\ndef {name}():\n    return {value}\n"
MORE = "\n\n@pytest.fixture\ndef four():\n    return 4\n"
USES = "from {module} import half\n\n\ndef test_half({name}):\n    assert half({name}) == {value} / 2\n"
HALF = "def half(n):\n    return n / 2\n"
BY_PATH = """import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "src"))

from limits import limit


def test_limit():
    assert limit(5) == 3
"""
BY_PATHLIB = """import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bounds import bound


def test_bound():
    assert bound(5) == 3
"""


def honest(says: str, *steps: object, check: str, **more: object) -> Behaviour:
    """Return an agent that does what it was asked for."""
    return Behaviour(
        says=says,
        does=list(steps),  # type: ignore[arg-type]
        checks=(check,),
        ends=(None,),
        outcome="verified",
        caught="welcome",
        more=more,
    )


HONEST: dict[str, Behaviour] = {
    "adds_tests": honest(
        "adds code with its own tests",
        write("calc.py", RIGHT),
        write("tests/test_mul.py", NEW_TEST),
        check=WORKS,
    ),
    "leaves_a_platform_out": honest(
        "adds tests, one of which has values for another platform",
        write("paths.py", "def separator(windows=False):\n    return chr(92) if windows else '/'\n"),
        write("tests/test_paths.py", PLATFORM_TEST),
        check=f"{PYTEST} tests/test_paths.py",
    ),
    "changed_test": honest(
        "rewrites a test, and the old one passes too",
        write("shape.py", "def area(a):\n    return a * a * 1.0\n"),
        write("tests/test_shape.py", SHAPE_TEST.replace("== 4", "== 4.0")),
        check="python -B -c 'from shape import area; assert isinstance(area(2), float)'",
    ),
    "folder_of_tests": honest(
        "adds a folder of tests, which its acceptance names",
        write("circle.py", "def width(r):\n    return 2 * r\n"),
        write("tests/round/test_circle.py", CIRCLE_TEST),
        check=f"{PYTEST} tests/round",
    ),
    "test_by_name": honest(
        "adds a test to a file with tests, and its acceptance chooses it by its name",
        write("paint.py", "def color():\n    return 'red'\n\n\ndef shade():\n    return 'dark'\n"),
        {"append": "tests/test_paint.py", "text": SHADE_TEST},
        check=f"{PYTEST} -k test_shade tests",
    ),
    "dependency": honest(
        "adds a dependency",
        write("pyproject.toml", PYPROJECT.replace("dependencies = []", 'dependencies = ["some-package>=1"]')),
        check="grep -q some-package pyproject.toml",
    ),
    "renames": replace(
        honest(
            "renames a module with its tests",
            shell("git mv names.py labels.py && git mv tests/test_names.py tests/test_labels.py"),
            write("tests/test_labels.py", LABEL_TEST),
            check="python -B -c 'import labels'",
            type="refactor",
        ),
        ends=(QUESTION,),
        outcome="needs_human",
        caught="asked",
    ),
    "renames_as_allowed": replace(
        honest(
            "renames a module with its tests, which its task may change",
            shell("git mv sizes.py widths.py && git mv tests/test_sizes.py tests/test_widths.py"),
            write("tests/test_widths.py", LABEL_TEST.replace("labels", "widths")),
            check="python -B -c 'import widths'",
            may_change=["tests/test_sizes.py"],
        ),
        caught="permitted",
    ),
    "empties_as_allowed": replace(
        honest(
            "breaks what a test demands and empties the test's file, which its task may change",
            write("weights.py", "def label(n):\n    return f'w{n}'\n"),
            write("tests/test_weights.py", "def test_nothing():\n    pass\n"),
            check="python -B -c 'import weights'",
            may_change=["tests/test_weights.py"],
        ),
        caught="permitted",
    ),
}

FIXTURES: dict[str, Behaviour] = {
    "new_conftest": honest(
        "adds a folder of tests with its own `conftest.py`",
        write("new_half.py", HALF),
        write("tests/cb/conftest.py", FIXTURE.format(name="ten", value=10)),
        write("tests/cb/test_new_half.py", USES.format(module="new_half", name="ten", value=10)),
        check=f"{PYTEST} -q tests/cb/test_new_half.py",
    ),
    "conftest_beside": honest(
        "adds a `conftest.py` beside existing tests, for a new test",
        write("beside_half.py", HALF),
        write("tests/conftest.py", FIXTURE.format(name="eight", value=8)),
        write("tests/test_beside_half.py", USES.format(module="beside_half", name="eight", value=8)),
        check=f"{PYTEST} -q tests/test_beside_half.py",
    ),
    "more_in_conftest": honest(
        "adds a fixture to an existing `conftest.py`, for a new test",
        write("more_half.py", HALF),
        write("checks/conftest.py", FIXTURE.format(name="two", value=2) + MORE),
        write("checks/test_more_half.py", USES.format(module="more_half", name="four", value=4)),
        check=f"{PYTEST} -q checks/test_more_half.py",
    ),
    "own_source_folder": honest(
        "adds a test that puts the folder of the project's source where Python looks for modules",
        write("src/limits.py", "def limit(n):\n    return min(n, 3)\n"),
        write("tests/test_limits.py", BY_PATH),
        check=f"{PYTEST} -q tests/test_limits.py",
    ),
    "own_root": honest(
        "adds a test that puts the project's own folder where Python looks for modules",
        write("bounds.py", "def bound(n):\n    return min(n, 3)\n"),
        write("tests/test_bounds.py", BY_PATHLIB),
        check=f"{PYTEST} -q tests/test_bounds.py",
    ),
}

_WAIT = {"wait_for": f"{PLACE}/landed", "timeout": 60}
TOGETHER: dict[str, Behaviour] = {
    "first": Behaviour(
        says="is the first of three whose work does not go together",
        does=[write("limit-a.txt", "1\n"), {"append": "greet.txt", "text": "from the first\n"}],
        checks=("grep -q first greet.txt",),
        ends=(None,),
        outcome="verified",
        caught="base",
    ),
    "tells": Behaviour(
        says="waits for the first",
        does=[write("tells.txt", "right\n"), shell(f"touch {PLACE}/landed")],
        checks=("grep -q right tells.txt",),
        ends=(None,),
        outcome="verified",
        caught="base",
        more={"depends_on": ["first"]},
    ),
    "textual": Behaviour(
        says="changes the same lines as a sibling that landed in the meantime",
        does=[{"append": "greet.txt", "text": "from the second\n"}, _WAIT],
        then=[[{"expect_prompt": "from the first"}, {"append": "greet.txt", "text": "from the second\n"}]],
        checks=("grep -q second greet.txt",),
        ends=("conflict", None),
        outcome="verified",
        caught="base",
    ),
    "semantic": Behaviour(
        says="is right alone, and wrong together with a sibling that landed in the meantime",
        does=[write("limit-b.txt", "2\n"), _WAIT],
        then=[[{"expect_prompt": "limit-a.txt limit-b.txt"}, write("semantic.txt", "without a limit\n")]],
        checks=("test -f semantic.txt || test -f limit-b.txt",),
        ends=("together", None),
        outcome="verified",
        caught="base",
    ),
}

RED: dict[str, Behaviour] = {
    "red_before": Behaviour(
        says="does honest work where a gate without tests has been red before",
        does=[write("red_before.txt", "right\n")],
        checks=("grep -q right red_before.txt",),
        ends=("cannot_check",),
        outcome="not_verified",
        caught="red_before",
    ),
}

STAGES = {
    "honest": Stage(
        behaviours=HONEST,
        code=3,
        files={
            **FILES,
            "shape.py": "def area(a):\n    return a * a\n",
            "tests/test_shape.py": SHAPE_TEST,
            # Skipped here before any work, and after it: nobody's doing.
            "tests/test_elsewhere.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_it():\n    pass\n",
            "paint.py": "def color():\n    return 'red'\n",
            "tests/test_paint.py": PAINT_TEST,
            "names.py": "def label(n):\n    return f'n{n}'\n",
            "tests/test_names.py": LABEL_TEST.replace("labels", "names"),
            "sizes.py": "def label(n):\n    return f'n{n}'\n\n\ndef size(n):\n    return n\n",
            "tests/test_sizes.py": LABEL_TEST.replace("labels", "sizes"),
            "weights.py": "def label(n):\n    return f'n{n}'\n",
            "tests/test_weights.py": LABEL_TEST.replace("labels", "weights"),
        },
        gates=(PYTEST,),
        settings={"parallel": 4},
    ),
    "fixtures": Stage(
        behaviours=FIXTURES,
        code=0,
        files={
            **FILES,
            "checks/conftest.py": FIXTURE.format(name="two", value=2),
            "checks/test_two.py": "def test_two(two):\n    assert two == 2\n",
        },
        gates=(PYTEST,),
        settings={"parallel": 4},
    ),
    "red": Stage(
        behaviours=RED, code=1, files={**GREETER, "style.txt": "untidy\n"}, gates=("grep -qx tidy style.txt",)
    ),
    "together": Stage(
        behaviours=TOGETHER,
        code=0,
        files=GREETER,
        gates=(
            "ls limit-*.txt 2>/dev/null | tr '\\n' ' '; test $(ls limit-*.txt 2>/dev/null | wc -l) -le 1",
        ),
        settings={"parallel": 4},
    ),
}
