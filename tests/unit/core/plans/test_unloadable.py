"""Making modules unloadable, and what the end of a gate says then."""

import pytest
from tests.cases import each_case

from loopwright.core.integrity.gate_files import Rules
from loopwright.core.plans.base_checks import Condition
from loopwright.core.plans.unloadable import (
    MARK,
    Before,
    Judging,
    is_probed,
    is_product,
    judging,
    module_names,
    own_file,
    unloadable,
)
from loopwright.core.values.findings import CommandResult, Witnessed
from loopwright.core.values.policy import GateCommand

RAISES = f'__loopwright__ = int("{MARK}")'
THROWS = f'if (Date.now()) throw new Error("{MARK}");'


@each_case(
    "path, text, expected",
    [
        ("a.py", "x = 1\n", f"{RAISES}\n\nx = 1\n"),
        ("a.py", "", f"{RAISES}\n\n"),
        (
            "a.py",
            "#!/usr/bin/python\n# -*- x -*-\nx = 1\n",
            f"#!/usr/bin/python\n# -*- x -*-\n{RAISES}\n\nx = 1\n",
        ),
        ("a.py", '"""Say.\n\nMore."""\nimport os\n', f'"""Say.\n\nMore."""\n{RAISES}\n\nimport os\n'),
        (
            "a.py",
            '"""Say."""\nfrom __future__ import annotations\n\nx = 1\n',
            f'"""Say."""\nfrom __future__ import annotations\n{RAISES}\n\n\nx = 1\n',
        ),
        ("a.py", "print 'for an old Python'\n", f"{RAISES}\n"),
        ("a.ts", "export const x = 1;\n", f"{THROWS}\nexport const x = 1;\n"),
        ("bin/a.js", "#!/usr/bin/env node\nmain();\n", f"#!/usr/bin/env node\n{THROWS}\nmain();\n"),
        ("a.go", "package a\n", f"{MARK}\npackage a\n"),
    ],
)
def test_a_module_gets_one_line_that_keeps_it_from_being_loaded(path: str, text: str, expected: str) -> None:
    assert unloadable(path, text) == expected
    if path.endswith(".py"):
        with pytest.raises(ValueError, match=MARK):
            exec(compile(unloadable(path, text), path, "exec"), {})


@each_case(
    "path, expected",
    [
        ("src/calc/core.py", True),
        ("lib/index.ts", True),
        ("cmd/main.go", True),
        ("tests/test_core.py", False),
        ("conftest.py", False),
        ("setup.py", False),
        ("run.py", False),
        ("types.d.ts", False),
        ("rollup.config.js", False),
        ("ci/check.sh", False),
        ("README.md", False),
        ("vendored.py", False),
    ],
)
def test_only_source_that_does_not_judge_is_made_unloadable(path: str, expected: bool) -> None:
    assert is_product(path, Rules(patterns=("vendored.py",), scripts=frozenset({"run.py"}))) is expected


GREEN = Before(condition=Condition.GREEN, seen=Witnessed(passed=frozenset({"a", "b"})))
RED = Before(condition=Condition.RED, seen=Witnessed(passed=frozenset({"a"}), failed=frozenset({"b"})))
UNSEEN = Before(condition=Condition.GREEN)


@each_case(
    "before, exit_code, passed, tail, expected",
    [
        (GREEN, 0, "ab", "", Judging.BLIND),
        (GREEN, 1, None, "", Judging.JUDGES),
        # Tests that skip themselves are missed when work is compared with its base.
        (GREEN, 0, "a", "", Judging.JUDGES),
        (GREEN, 127, None, "", Judging.UNKNOWN),
        (UNSEEN, 0, None, "", Judging.BLIND),
        (UNSEEN, 1, None, "", Judging.JUDGES),
        (RED, 1, "a", "", Judging.BLIND),
        (RED, 1, None, "", Judging.JUDGES),
        (Before(condition=Condition.RED), 1, None, "", Judging.UNKNOWN),
        (None, 0, "ab", "", Judging.BLIND),
        (None, 1, None, "", Judging.UNKNOWN),
        (None, 1, None, f"ValueError: {MARK}", Judging.JUDGES),
    ],
)
def test_a_gate_that_ends_as_on_the_base_does_not_judge_the_tree(
    before: Before | None, exit_code: int, passed: str | None, tail: str, expected: Judging
) -> None:
    result = CommandResult(
        name="tests",
        command="pytest",
        exit_code=exit_code,
        duration_s=1.0,
        output_sha256="",
        output_bytes=0,
        tail=tail,
    )
    seen = Witnessed(passed=frozenset(passed)) if passed is not None else None
    assert judging(result, seen, before) is expected


@each_case(
    "command, before, expected",
    [
        ("pytest -q", None, True),
        ("make test", GREEN, True),
        ("venv/bin/pytest", UNSEEN, True),
        ("make lint", UNSEEN, False),
        ("make test", None, False),
        ("test -e /tmp/pytest-of-me/done", None, False),
        ("pytest", Before(condition=Condition.BROKEN), False),
        ("pytest", Before(condition=Condition.EMPTY), False),
    ],
)
def test_only_gates_that_run_tests_are_probed(command: str, before: Before | None, expected: bool) -> None:
    assert is_probed(GateCommand(name="tests", command=command), before) is expected


@each_case(
    "module, file, expected",
    [
        ("calc", "/site/calc/__init__.py", "src/calc/__init__.py"),
        ("calc.core", "/site/calc/core.py", "src/calc/core.py"),
        ("solo", "/site/solo.py", "solo.py"),
        ("core", "/site/core.py", None),
        ("alc", "/site/alc/__init__.py", None),
    ],
)
def test_a_loaded_module_is_known_by_the_name_that_it_is_imported_by(
    module: str, file: str, expected: str | None
) -> None:
    assert own_file(module, file, ("src/calc/__init__.py", "src/calc/core.py", "solo.py")) == expected


def test_modules_are_known_by_each_part_of_their_path() -> None:
    assert module_names(["src/shop/cart.py", "json.py", "README.md"]) == {"src", "shop", "cart"}
