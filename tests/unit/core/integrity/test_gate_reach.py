"""Modules that the configuration of a test runner loads before any test."""

from tests.cases import each_case

from loopwright.core.integrity.gate_reach import COMMANDS, has_fixtures_for, loads, names_of_tests, word_for


@each_case(
    ("by", "text"),
    [
        ("pyproject.toml", 'addopts="-q -p support.plugin"'),
        ("pytest.ini", "addopts = -psupport.plugin"),
        ("tests/conftest.py", 'pytest_plugins = ["other", "support.plugin"]'),
        ("tests/conftest.py", 'pytest_plugins = (\n    "support.plugin",\n)\n'),
        (COMMANDS, "python -m pytest -p support.plugin"),
        ("gate/check.sh", "pytest -p support.plugin"),
    ],
)
def test_a_plugin_that_configuration_names_is_loaded(by: str, text: str) -> None:
    assert loads(text, by, "support/plugin.py")
    assert not loads(text, by, "support/other_plugin.py")


@each_case(
    ("by", "text"),
    [
        ("jest.config.js", "  setupFiles: ['<rootDir>/config/jest-setup.js'],"),
        ("jest.config.js", "module.exports = {\n  setupFiles: [\n    './config/jest-setup.js',\n  ],\n};\n"),
        ("package.json", '"jest": {"setupFilesAfterEnv": ["./config/jest-setup.js"]}'),
        ("vitest.config.ts", "globalSetup: 'config/jest-setup',"),
        (".mocharc.json", '{"require": "./config/jest-setup.js"}'),
        ("package.json", '"test": "mocha --require ./config/jest-setup.js"'),
        (COMMANDS, "node --import ./config/jest-setup.js --test"),
        ("bunfig.toml", 'preload = ["./config/jest-setup.js"]'),
    ],
)
def test_a_setup_file_that_configuration_names_is_loaded(by: str, text: str) -> None:
    assert loads(text, by, "config/jest-setup.js")
    assert not loads(text, by, "config/setup.js")


@each_case(
    ("by", "text"),
    [
        ("package.json", '"exports": {"import": "./calc.js", "require": "./calc.js"}'),
        ("package.json", '"start": "node -r ./calc.js server.js"'),
        ("jest.config.js", "collectCoverageFrom: ['./calc.js'],"),
        ("gate/check.sh", "node calc.js && mkdir -p calc"),
        ("tsconfig.json", '"files": ["calc.js"]'),
        ("tests/conftest.py", "require('./calc.js')"),
    ],
)
def test_configuration_names_product_modules_too(by: str, text: str) -> None:
    assert not loads(text, by, "calc.js")


def test_a_module_is_searched_by_the_word_that_configuration_names_it_by() -> None:
    assert word_for("support/fixtures.py") == "fixtures"
    assert word_for("support/__init__.py") == "support"
    assert word_for("config/jest-setup.js") == "jest-setup"


def test_what_conftest_imports_belongs_to_it_if_it_is_written_with_pytest() -> None:
    text, fixtures = "from support.shared import *\n", "import pytest\n\n\n@pytest.fixture\n"
    assert has_fixtures_for(text, "tests/conftest.py", "support/shared.py", fixtures)
    assert not has_fixtures_for(text, "tests/conftest.py", "support/shared.py", "def add(): ...\n")
    assert not has_fixtures_for(text, "tests/conftest.py", "support/other.py", fixtures)
    assert not has_fixtures_for(text, "tests/test_a.py", "support/shared.py", fixtures)


@each_case(
    ("text", "names"),
    [
        ("[pytest]\npython_files = test_*.py check_*.py\npythonpath = .\n", ["test_*.py", "check_*.py"]),
        ("[tool:pytest]\npython_files =\n    a_*.py\n    *.py\ntestpaths = b\n", ["a_*.py"]),
        ('python_files = [\n  "test_*.py",\n  "*_check.py",\n]\nx = "y.py"\n', ["test_*.py", "*_check.py"]),
        ("[pytest]\naddopts = -q\n", []),
    ],
)
def test_pytest_says_itself_how_its_files_are_called(text: str, names: list[str]) -> None:
    assert names_of_tests(text) == names
