"""Which files of a change are read for what they know of their tests."""

from tests.cases import each_case

from loopwright.engine.answers import _is_loaded


@each_case(
    "text",
    [
        "from testutils.core import mul",
        "from testutils import core",
        "from .testutils import (\n    core,\n)",
        "import testutils.core as hidden",
        "importlib.import_module('testutils.core')",
        "const { mul } = require('./testutils/core');",
    ],
)
def test_a_file_among_the_tests_that_source_loads_is_known(text: str) -> None:
    assert _is_loaded("testutils/core.py", text)


def test_a_file_that_only_tests_load_is_not_taken_for_source() -> None:
    assert not _is_loaded("testutils/core.py", "from calc.core import mul\n# see testutils\n")
    assert not _is_loaded("test_calc.py", "import test_calc")
