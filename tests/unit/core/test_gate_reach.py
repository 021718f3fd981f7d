"""What tests and their configuration use, told by who names it."""

from tests.cases import each_case

from loopwright.core.gate_files import Rules
from loopwright.core.gate_reach import (
    COMMANDS,
    Line,
    Reach,
    holds_tests,
    is_telling,
    reach,
    settled,
    words_for,
)

RULES = Rules(scripts=frozenset({"gate/check.sh"}))


def used(path: str, *lines: tuple[str, str], own: str = "", texts: dict[str, str] | None = None) -> str:
    """Return how the gate uses a file that these lines name; `own` is what stands in it."""
    found = reach([path], [Line(path=by, text=text) for by, text in lines], RULES)
    done: Reach = settled(found, {path: own, **(texts or {})})
    kinds = {"loaded": done.scripts, "tests": done.tests, "shared": done.shared}
    return next((name for name, paths in kinds.items() if path in paths), "")


@each_case(
    ("by", "line"),
    [
        ("pyproject.toml", 'addopts="-q -p support.plugin"'),
        ("pytest.ini", "addopts = -psupport.plugin"),
        ("tests/conftest.py", 'pytest_plugins = ["other", "support.plugin"]'),
        (COMMANDS, "python -m pytest -p support.plugin"),
        ("gate/check.sh", "pytest -p support.plugin"),
    ],
)
def test_a_plugin_that_configuration_names_is_loaded(by: str, line: str) -> None:
    assert used("support/plugin.py", (by, line)) == "loaded"
    assert used("support/plugin.py", (by, line), ("app.py", "from support import plugin")) == "shared"
    assert used("src/support/plugin.py", (by, line)) == "shared", "it is the product that tests are run with"
    assert used("support/other_plugin.py", (by, line)) == ""


def test_a_plugin_that_the_project_hands_out_is_its_product() -> None:
    entry = ("pyproject.toml", 'calc = "pytest_calc"')
    named = ("tests/conftest.py", 'pytest_plugins = ["pytest_calc"]')
    assert used("pytest_calc.py", named) == "loaded"
    assert used("pytest_calc.py", named, entry) == "shared"


@each_case(
    ("by", "line"),
    [
        ("jest.config.js", "  setupFiles: ['<rootDir>/config/jest-setup.js'],"),
        ("package.json", '"jest": {"setupFilesAfterEnv": ["./config/jest-setup.js"]}'),
        ("vitest.config.ts", "globalSetup: 'config/jest-setup',"),
        (".mocharc.json", '{"require": "./config/jest-setup.js"}'),
        ("package.json", '"test": "mocha --require ./config/jest-setup.js"'),
        (COMMANDS, "node --import ./config/jest-setup.js --test"),
        ("bunfig.toml", 'preload = ["./config/jest-setup.js"]'),
    ],
)
def test_a_setup_file_that_configuration_names_is_loaded(by: str, line: str) -> None:
    assert used("config/jest-setup.js", (by, line)) == "loaded"


def test_a_setup_file_is_found_in_a_list_over_several_lines() -> None:
    whole = {
        "jest.config.js": "module.exports = {\n  setupFiles: [\n    './config/jest-setup.js',\n  ],\n};\n"
    }
    line = ("jest.config.js", "    './config/jest-setup.js',")
    assert used("config/jest-setup.js", line, texts=whole) == "loaded"
    plugins = {"tests/conftest.py": 'pytest_plugins = (\n    "support.plugin",\n)\n'}
    assert (
        used("support/plugin.py", ("tests/conftest.py", '    "support.plugin",'), texts=plugins) == "loaded"
    )


@each_case(
    ("by", "line"),
    [
        ("package.json", '"exports": {"import": "./calc.js", "require": "./calc.js"}'),
        ("package.json", '"start": "node -r ./calc.js server.js"'),
        ("jest.config.js", "collectCoverageFrom: ['./calc.js'],"),
        ("gate/check.sh", "node calc.js && mkdir -p calc"),
        ("tsconfig.json", '"files": ["calc.js"]'),
    ],
)
def test_configuration_names_the_product_too(by: str, line: str) -> None:
    assert used("calc.js", (by, line), texts={by: line}) == ""


STAR = ("tests/conftest.py", "from support.fixtures import *  # noqa")
PYTEST = "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n"


def test_a_module_for_tests_is_one_that_only_tests_import() -> None:
    assert used("support/fixtures.py", STAR, own=PYTEST) == "tests"
    assert (
        used("support/more.py", ("tests/test_a.py", "from support import one, more"), own=PYTEST) == "tests"
    )
    assert (
        used("support/fixtures.py", STAR, ("app/main.py", "from support.fixtures import one"), own=PYTEST)
        == ""
    )
    beside = ("support/__init__.py", "from .fixtures import one")
    assert used("support/fixtures.py", STAR, beside, own=PYTEST) == "shared", (
        "it may be a part of the product"
    )


def test_a_module_for_tests_is_told_by_what_it_does_or_is_called() -> None:
    calc = ("tests/test_calc.py", "from calc import add")
    assert used("calc.py", calc, own="def add(a, b):\n    return a + b\n") == ""
    assert used("calc.py", calc, own="import unittest\n\n\ndef add(): ...\n") == "", (
        "some have their tests inside"
    )
    assert used("app/fakes.py", ("tests/test_a.py", "from app.fakes import Clock")) == "tests"
    js = ("test/a.test.js", "const { same } = require('../lib2/same');")
    assert used("lib2/same.js", js, own="const { expect } = require('chai');\n") == "tests"
    assert used("lib2/same.js", js, own="const assert = require('node:assert');\n") == ""


@each_case(
    "line",
    [
        "json.loads(pathlib.Path('data/sums.json').read_text())",
        "const sums = require('../data/sums.json');",
        "open(os.path.join('data', 'sums.json'))",
        "for one in Path('data').glob('*.json'):",
    ],
)
def test_data_that_a_test_reads_judges_with_it(line: str) -> None:
    assert used("data/sums.json", ("tests/test_sums.py", line)) == "shared"
    assert used("data/sums.json", ("app.py", line)) == "", "nobody but the product reads it"
    assert used("other/sums.json", ("tests/test_sums.py", line)) == ""


def test_data_that_a_script_of_the_gate_reads_judges_with_it() -> None:
    assert used("rules/allowed.txt", ("gate/check.sh", "grep -v -F -f rules/allowed.txt")) == "shared"
    assert used("gate/allowed.txt", ("gate/check.sh", "grep -v -F -f $(dirname $0)/allowed.txt")) == "shared"
    assert used("style.txt", (COMMANDS, "grep -qx tidy style.txt")) == "", "a command names what it judges"


def test_what_people_read_is_asked_for_by_nobody() -> None:
    assert not any(map(is_telling, ("README.md", "docs/a.rst", "LICENSE", ".gitignore", "logo.svg")))
    assert all(map(is_telling, ("calc.py", "data/sums.json", "Dockerfile", "schema.sql")))


def test_a_file_is_looked_for_by_the_words_that_others_name_it_by() -> None:
    assert words_for("support/fixtures.py") == ("fixtures",)
    assert words_for("support/__init__.py") == ("support",)
    assert words_for("data/sums.json") == ("sums.json", "data")


@each_case(
    ("path", "test"),
    [
        ("checks/check_calc.py", "checks/check_calc.py::test_add"),
        ("checks/check_calc.py", "checks/check_calc.py::TestAdd::test_add[1.5-a]"),
        ("unit/check_calc.py", "unit.check_calc.Add.test_add"),
        ("web/calc.js", "calc.js::adds"),
        ("calc.js", "calc.js::adds. and more"),
    ],
)
def test_a_file_holds_tests_when_their_ids_say_so(path: str, test: str) -> None:
    assert holds_tests(path, ["other.py::test_x", test])


@each_case(
    ("path", "test"),
    [
        ("calc.py", "calc.py::calc.add"),
        ("README.md", "README.md::README.md"),
        ("calc.py", "tests/test_calc.py::test_add"),
        ("calc.py", "test_calc.Add.test_add"),
        ("calc.py", "recalc.py::test_add"),
    ],
)
def test_examples_in_source_make_it_no_file_of_tests(path: str, test: str) -> None:
    assert not holds_tests(path, [test])


CHECK = "import app\n\nWANT = 1\n\n\n@pytest.fixture\ndef one(): ...\n\n\ndef test_a(one): ...\n\n\nclass TestB: ...\n"


@each_case(
    ("path", "text", "put_back"),
    [
        ("checks/check_a.py", CHECK, True),
        ("calc.py", f"def add(a, b): ...\n\n\n{CHECK}", False),
        ("calc.py", f"class Sum: ...\n\n\n{CHECK}", False),
        ("src/calc.py", CHECK, False),
        ("unit/calc.js", "test('add', () => {});\n", True),
        ("calc.js", "export const add = 1;\ntest('add', () => {});\n", False),
    ],
)
def test_a_file_in_which_tests_were_seen_is_put_back_where_nothing_else_is_in_it(
    path: str, text: str, put_back: bool
) -> None:
    found = settled(reach([path], [], RULES, [path]), {path: text})
    assert (found.tests, found.shared) == (({path}, set()) if put_back else (set(), {path}))


def test_a_file_with_tests_in_it_that_the_product_uses_is_not_put_back() -> None:
    lines = [Line(path="app.py", text="from inline import test_a")]
    assert settled(reach(["inline.py"], lines, RULES, ["inline.py"]), {"inline.py": CHECK}).shared
