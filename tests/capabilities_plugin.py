"""Which rows of `capabilities.toml` are proven by which tests: `make capabilities` prints it.

A test says so itself with `@pytest.mark.capability("C025")`; a row that does not exist fails the collection.
"""

import tomllib
from collections import defaultdict
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

ROWS_FILE = Path(__file__).with_name("capabilities.toml")


@cache
def load_rows() -> dict[str, dict[str, str]]:
    """Return the groups with their rows, each an id and a short title."""
    groups: dict[str, dict[str, str]] = tomllib.loads(ROWS_FILE.read_text(encoding="utf-8"))
    return groups


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that prints the table."""
    parser.addoption(
        "--capabilities",
        action="store_true",
        help="collect only, and print which capability is proven by which tests",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Printing the table runs no test."""
    if config.option.capabilities:
        config.option.collectonly = True
        config.option.verbose = min(config.option.verbose, -2)


def _wrong_marks(item: pytest.Item) -> set[str]:
    known = {row for rows in load_rows().values() for row in rows}
    wrong = set()
    for mark in item.iter_markers("capability"):
        if not mark.args:
            wrong.add(f"{item.nodeid}: the capability mark names no row")
        for row in mark.args:
            if row not in known:
                wrong.add(f"{item.nodeid}: there is no capability {row!r} in {ROWS_FILE.name}")
    return wrong


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a file or class whose tests claim rows that do not exist."""
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    wrong = {text for item in items for text in _wrong_marks(item)}
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(sorted(wrong)), []
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which test claims which row."""
    proofs: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for mark in item.iter_markers("capability"):
            for row in mark.args:
                proofs[row].add(item.nodeid.split("[")[0])
    config.stash[_PROOFS] = dict(proofs)


_PROOFS = pytest.StashKey[dict[str, set[str]]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if not config.option.capabilities:
        return
    proofs = config.stash.get(_PROOFS, {})
    groups = load_rows()
    for group, rows in groups.items():
        terminalreporter.section(group, sep="-")
        for row, title in rows.items():
            tests = sorted(proofs.get(row, ()))
            terminalreporter.line(f"{row}  {'proven ' if tests else 'not yet'}  {title}")
            for test in tests:
                terminalreporter.line(f"        {test}")
    total = sum(len(rows) for rows in groups.values())
    terminalreporter.line("")
    terminalreporter.line(f"{len(proofs)} of {total} capabilities are proven by tests")
