"""Tests that were moved, and those that only look so."""

from collections.abc import Mapping

from tests.cases import each_case

from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.moved_ids import read, told, with_moved, with_unseen_moves
from loopwright.core.moved_tests import Changed, moved_tests
from loopwright.core.witnesses import Baseline, Witnessed

UTIL = "def clean(text):\n    return text.strip()\n\n\ndef shout(text):\n    return text.upper()\n"
TEST = '''"""Tests of util."""

import pytest
from util import clean


def test_clean():
    assert clean(" a ") == "a"


class TestMore:
    @pytest.mark.parametrize("word", ["a"])
    def test_more(self, word):
        import util

        assert util.clean(word) == word
'''
MOVED = (
    TEST.replace("util", "text")
    .replace("import pytest\nfrom text", "from text")
    .replace("import clean\n", "import clean\nimport pytest\n", 1)
)


def found(
    before: Mapping[str, str], after: Mapping[str, str], *, beside: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Say what was moved between two trees that both have what is `beside`."""
    old, new = {**(beside or {}), **before}, {**(beside or {}), **after}

    def part(texts: Mapping[str, str], other: Mapping[str, str], *, tests: bool) -> dict[str, str]:
        return {path: text for path, text in texts.items() if path not in other and ("test" in path) is tests}

    return moved_tests(
        Changed(
            deleted=part(old, new, tests=False),
            added=part(new, old, tests=False),
            deleted_tests=part(old, new, tests=True),
            added_tests=part(new, old, tests=True),
            rewritten_tests={
                path: (text, new[path])
                for path, text in old.items()
                if "test" in path and path in new and new[path] != text
            },
            before=old,
            after=new,
        )
    )


BEFORE = {"util.py": UTIL, "tests/test_util.py": TEST}
HERE = {"tests/test_util.py": "tests/test_text.py"}


def test_a_test_moves_with_its_module_whatever_the_order_of_its_imports() -> None:
    assert found(BEFORE, {"text.py": UTIL, "tests/test_text.py": MOVED}) == HERE
    changed = UTIL.replace("upper", "swapcase")
    assert found(BEFORE, {"text.py": changed, "tests/test_text.py": MOVED}) == HERE


def test_a_test_moves_without_a_module() -> None:
    same = {"tests/test_util.py": "tests/unit/test_util.py"}
    assert found({"tests/test_util.py": TEST}, {"tests/unit/test_util.py": TEST}) == same
    both = {"tests/unit/test_util.py": TEST, "tests/test_a.py": TEST}
    assert found({"tests/test_util.py": TEST}, both) == same, "of two the one that is called the same"


def test_a_test_that_stays_follows_a_module() -> None:
    after = {"text.py": UTIL, "tests/test_util.py": MOVED}
    assert found(BEFORE, after) == {"tests/test_util.py": "tests/test_util.py"}
    assert found({"tests/test_a.py": TEST}, {"tests/test_a.py": f"{TEST}\n"}) == {}, "nothing was moved"


@each_case(
    ("old", "new"),
    [
        ("import pkg.util\n\n\ndef test_a():\n    assert pkg.util.clean('a')\n", ("pkg.util", "pkg.text")),
        ("import pkg.util as u\n\n\ndef test_a():\n    assert u.clean('a')\n", ("pkg.util as u", "pkg.text as t")),
        ("from pkg import util\n\n\ndef test_a():\n    assert util.clean('a')\n", ("util", "text")),
        ("from pkg import util\n\n\ndef test_a():\n    assert util.A\n", ("import util", "import text as util")),
        ("from pkg.util import clean\n\n\nasync def test_a():\n    assert clean('a')\n", ("util", "text")),
        ("from ..pkg.util import clean\n\n\ndef test_a():\n    assert clean('a')\n", ("..pkg.util", "pkg.text")),
        ("def test_a(mocker):\n    mocker.patch('pkg.util.clean')\n    assert 1 + 1\n", ("util", "text")),
        ("def test_a(mocker):\n    mocker.patch('os.sep')\n    assert 1 + 1\n", ("", "")),
    ],
)  # fmt: skip
def test_every_way_to_name_a_module_is_followed(old: str, new: tuple[str, str]) -> None:
    after = old.replace(*new) if new[0] else old
    if "u.clean" in old:
        after = after.replace("u.clean", "t.clean")
    before = {"src/pkg/util.py": UTIL, "tests/test_util.py": old}
    if new[0] == "..pkg.util":
        before = {"pkg/util.py": UTIL, "tests/test_util.py": old}
        assert found(before, {"pkg/text.py": UTIL, "tests/test_text.py": after}) == HERE
        return
    assert found(before, {"src/pkg/text.py": UTIL, "tests/test_text.py": after}) == HERE


def test_what_tests_load_moves_before_them() -> None:
    before = {
        "tests/parts.py": "def make():\n    return 1\n",
        "tests/test_a.py": "from . import parts\n\n\ndef test_a():\n    assert parts.make() == 1\n",
    }
    after = {
        "tests/pieces.py": before["tests/parts.py"],
        "tests/test_b.py": before["tests/test_a.py"].replace("parts", "pieces"),
    }
    assert found(before, after) == {
        "tests/parts.py": "tests/pieces.py",
        "tests/test_a.py": "tests/test_b.py",
    }


@each_case(
    ("more", "moved"),
    [
        ("\n\ndef test_new():\n    assert clean('b') == 'b'\n", True),
        ("\n\n@pytest.mark.slow\ndef test_new():\n    assert clean('b') == 'b'\n", True),
        ("\n\nclass TestNew:\n    def test_it(self):\n        assert clean('b') == 'b'\n", True),
        ("\n\n@fake\ndef test_new():\n    assert clean('b')\n", False),
        ("\n\ndef test_new():\n    global clean\n    clean = str\n", False),
        ("\n\ndef test_new(a=clean):\n    assert a\n", False),
        ("\n\ndef test_new():\n    globals()['clean'] = str\n", False),
        ("\n\ndef test_clean():\n    assert True\n", False),
        ("\n\nclean = str.strip\n", False),
        ("\n\ndef helper():\n    return 1\n", False),
        ("\n\nimport pytest\n\npytest.hookimpl\n", False),
    ],
)
def test_more_tests_may_come_with_a_move_if_they_leave_the_old_ones_alone(more: str, moved: bool) -> None:
    assert found(BEFORE, {"text.py": UTIL, "tests/test_text.py": MOVED + more}) == (HERE if moved else {})


@each_case(
    ("line", "moved"),
    [
        ("import json\n", True),
        ("from text import shout\n", True),
        ("from fakes import clean\n", False),
        ("from fakes import patched\n", False),
        ("from os.path import join as clean\n", False),
        ("from text import *\n", False),
    ],
)
def test_more_imports_may_not_take_the_place_of_what_the_tests_use(line: str, moved: bool) -> None:
    after = {"text.py": UTIL, "tests/test_text.py": MOVED.replace("from text", f"{line}from text", 1)}
    assert found(BEFORE, after) == (HERE if moved else {})


@each_case(
    "after",
    [
        {},
        {"text.py": UTIL},
        {"text.py": UTIL, "tests/test_text.py": MOVED.replace('== "a"', '== "b"')},
        {"text.py": UTIL, "tests/test_text.py": MOVED.replace("_clean():\n", "_clean():\n    return\n")},
        {"text.py": UTIL, "tests/test_text.py": MOVED.replace("test_more", "check_more")},
        {"text.py": UTIL, "tests/test_text.py": MOVED.replace("class", "import os\n\n\nclass")},
        {"text.py": UTIL, "tests/test_text.py": "import ("},
        {"text.py": UTIL, "tests/text_checks.py": MOVED},
        {"text.py": UTIL, "tests/test_text.txt": MOVED},
        {"text.py": "def clean(text):\n    return 1\n", "tests/test_text.py": MOVED},
        {"text.py": "", "tests/test_text.py": MOVED},
        {"util.py": UTIL, "text.py": UTIL, "tests/test_text.py": MOVED},
        {"tests/text.py": UTIL, "tests/test_text.py": MOVED},
    ],
)  # fmt: skip
def test_what_only_looks_like_a_move_is_none(after: dict[str, str]) -> None:
    assert found(BEFORE, after) == {}


def test_of_two_tests_that_became_one_only_one_was_moved() -> None:
    before = {
        "tests/test_a.py": "def test_a():\n    assert 1\n",
        "tests/test_b.py": "def test_a():\n    assert 1\n",
    }
    assert found(before, {"tests/test_c.py": before["tests/test_a.py"]}) == {
        "tests/test_a.py": "tests/test_c.py"
    }


def test_two_modules_of_one_name_are_told_apart() -> None:
    # The test of the module at the top is turned to a double, and another one is moved as an excuse.
    before = {**BEFORE, "pkg/util.py": UTIL}
    after = {"util.py": UTIL, "pkg/text.py": UTIL, "text.py": "decoy", "tests/test_text.py": MOVED}
    assert found(before, after) == {}


def test_a_module_that_is_called_like_one_of_the_library_is_known_by_its_package() -> None:
    test = "import json\n\n\ndef test_a():\n    assert json.loads('1') == 1\n"
    before = {"pkg/json.py": UTIL, "tests/test_a.py": test}
    assert found(before, {"pkg/text.py": UTIL, "tests/test_b.py": test.replace("json", "text")}) == {}


def test_an_import_that_binds_one_name_twice_is_not_compared() -> None:
    test = "from a import f\nfrom b import f\n\n\ndef test_a():\n    assert f()\n"
    assert found({"tests/test_a.py": test}, {"tests/test_b.py": test}) == {}


def test_an_example_at_the_top_of_a_file_is_compared() -> None:
    test = '">>> 1"\n\n\ndef test_a():\n    assert f()\n'
    assert found({"tests/test_a.py": test}, {"tests/test_b.py": test.replace("1", "2")}) == {}


SCRIPT = """import { it } from 'node:test'
import { clean } from './util.js'
it('cleans', () => expect(clean(' a')).toBe('a'))
"""
RENAMED = SCRIPT.replace("util", "text")


@each_case(
    ("after", "moved"),
    [
        ({"src/text.js": UTIL, "src/text.test.js": RENAMED}, True),
        ({"src/text.js": UTIL, "src/text.test.js": RENAMED.replace("'a')", "'b')")}, False),
        ({"src/text.js": UTIL, "src/text.test.js": SCRIPT.replace("util", "double")}, False),
        ({"src/text.js": UTIL, "src/text.test.js": RENAMED.replace("{ it }", "{ skip }")}, False),
        ({"src/text.js": UTIL, "src/text.test.js": RENAMED.replace("node:test", "fake")}, False),
        ({"src/text.js": UTIL, "src/text.test.js": RENAMED + "more()\n"}, False),
        ({"src/text/index.js": UTIL, "src/a/text.test.js": SCRIPT.replace("./util.js", "../text")}, True),
        ({"lib/util.js": UTIL, "lib/util.test.js": SCRIPT}, True),
    ],
)  # fmt: skip
def test_a_script_is_moved_where_only_the_lines_differ_that_load_moved_modules(
    after: dict[str, str], moved: bool
) -> None:
    assert bool(found({"src/util.js": UTIL, "src/util.test.js": SCRIPT}, after)) is moved


def test_a_script_that_names_a_neighbour_otherwise_is_not_moved_to_another_folder() -> None:
    mocks = f"{SCRIPT}jest.mock('./other')\n"
    before = {"src/util.js": UTIL, "src/util.test.js": mocks}
    assert found(before, {"lib/util.js": UTIL, "lib/util.test.js": mocks}) == {}


GO = 'package sums_test\n\nimport (\n\tu "example.com/m/util"\n)\n\nfunc TestA(t *testing.T) { u.Clean() }\n'


@each_case(
    ("text", "path", "moved"),
    [
        (GO, "sums/b_test.go", True),
        (GO.replace("m/util", "m/text"), "sums/b_test.go", True),
        (GO.replace("m/util", "m/other"), "sums/b_test.go", False),
        (GO.replace('u "example.com/m/util', 'v "example.com/m/text'), "sums/b_test.go", False),
        (GO.replace("u.Clean", "u.Other"), "sums/b_test.go", False),
        (GO, "other/b_test.go", False),
    ],
)
def test_a_test_of_go_is_moved_within_its_package(text: str, path: str, moved: bool) -> None:
    before = {"util/util.go": UTIL, "sums/a_test.go": GO}
    assert bool(found(before, {"text/util.go": UTIL, path: text})) is moved


def test_other_files_are_not_compared() -> None:
    assert found({"test/a.rb": "x"}, {"test/b.rb": "x"}) == {}


def saw(*passed: str, **more: tuple[str, ...]) -> Witnessed:
    return Witnessed(passed=frozenset(passed), **{key: frozenset(ids) for key, ids in more.items()})


@each_case(
    ("old", "new"),
    [
        ("tests/test_a.py::test_x", "tests/test_b.py::test_x"),
        ("tests/test_a.py", "tests/test_b.py"),
        ("test_a.py::test_x", "test_b.py::test_x"),
        ("tests.test_a.Case.test_x", "tests.test_b.Case.test_x"),
        ("test_a.Case.test_x", "test_b.Case.test_x"),
        ("tests.test_a::test_x", "tests.test_b::test_x"),
        ("tests/test_ab.py::test_x", "tests/test_ab.py::test_x"),
        ("other/test_a.py::test_x", "other/test_a.py::test_x"),
    ],
)
def test_ids_of_moved_tests_are_what_they_are_called_now(old: str, new: str) -> None:
    before = Baseline(seen={"pytest": saw(old, failed=(f"{old}[1]",))})
    after = with_moved(before, read([told("tests/test_a.py", "tests/test_b.py")]), [None])
    assert after.seen["pytest"].passed == {new}
    assert after.seen["pytest"].failed == {f"{new}[1]"} or old == "tests/test_a.py"


def test_tests_are_followed_from_place_to_place_and_stay_where_they_are_found() -> None:
    before = Baseline(seen={"pytest": saw("test_a.py::x", "test_d.py::y")})
    moves = read(
        ["test_b.py -> test_c.py", "test_a.py -> test_b.py", "test_d.py -> test_e.py", "t.py -> t.py"]
    )
    assert len(moves) == 3
    after = with_moved(before, moves, [saw("test_d.py::y", "test_c.py::x"), None])
    assert after.seen["pytest"].passed == {"test_c.py::x", "test_d.py::y"}
    assert with_moved(before, (), []) is before


def test_a_moved_test_that_nobody_saw_run_is_named() -> None:
    passed = Verdict(status=VerdictStatus.PASSED)
    moves = (
        ("tests/test_a.py", "tests/test_b.py"),
        ("tests/parts.py", "tests/pieces.py"),
        ("a_test.go", "b_test.go"),
    )
    assert with_unseen_moves(passed, [saw("tests/test_b.py::x"), None], moves).left_open == ()
    told_of = with_unseen_moves(passed, [None, saw("tests/test_a.py::x")], moves).left_open
    assert told_of == (
        "tests/test_a.py was moved to tests/test_b.py, and none of its tests was seen to run there",
    )
    assert with_unseen_moves(passed, [], moves, exempt=("tests/test_b.py",)).left_open == ()
    assert with_unseen_moves(passed, [], ()) is passed
    failed = Verdict(status=VerdictStatus.FAILED)
    assert with_unseen_moves(failed, [], moves) is failed


def test_a_module_is_not_moved_into_another_language() -> None:
    assert found(BEFORE, {"text.js": UTIL, "tests/test_text.py": MOVED}) == {}
