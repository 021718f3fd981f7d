"""Which rows of `capabilities.toml`, `traps.toml` and `clauses.toml` tests prove: `make capabilities` prints it.

A test says so itself, with `@pytest.mark.capability("C025")` or `@pytest.mark.trap("quoted success")`; a row that does
not exist fails the collection.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

FILES = {
    "capability": Path(__file__).with_name("capabilities.toml"),
    "trap": Path(__file__).with_name("traps.toml"),
    "clause": Path(__file__).with_name("clauses.toml"),
}
"""The rows that each mark may name."""
TITLES = {
    "capability": "capabilities are proven by tests",
    "trap": "traps are watched by tests",
    "clause": "clauses of contracts are proven by tests",
}


@cache
def load_rows(mark: str = "capability") -> dict[str, dict[str, str]]:
    """Return the groups of a mark's file with their rows, each an id and a sentence."""
    groups: dict[str, dict[str, str]] = tomllib.loads(FILES[mark].read_text(encoding="utf-8"))
    return groups


def marked_in(source: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the tests of a file that carry the mark, each with a row that it names, without loading the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == f"pytest.mark.{mark}":
                    yield from ((node.name, one.value) for one in call.args if isinstance(one, ast.Constant))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that prints the tables."""
    parser.addoption(
        "--capabilities",
        action="store_true",
        help="collect only, and print which capability is proven and which trap is watched by which tests",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Printing the tables runs no test."""
    if config.option.capabilities:
        config.option.collectonly = True
        config.option.verbose = min(config.option.verbose, -2)


def _wrong_marks(item: pytest.Item, name: str) -> set[str]:
    wrong = set()
    for mark in item.iter_markers(name):
        if not mark.args:
            wrong.add(f"{item.nodeid}: the {name} mark names no row")
        for row in mark.args:
            if not any(row in rows for rows in load_rows(name).values()):
                wrong.add(f"{item.nodeid}: there is no {name} {row!r} in {FILES[name].name}")
    return wrong


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a file or class whose tests claim rows that do not exist."""
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    wrong = {text for item in items for name in FILES for text in _wrong_marks(item, name)}
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(sorted(wrong)), []
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which test claims which row."""
    proofs: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for name in FILES:
            for mark in item.iter_markers(name):
                for row in mark.args:
                    proofs[row].add(item.nodeid.split("[")[0])
    config.stash[_PROOFS] = dict(proofs)


_PROOFS = pytest.StashKey[dict[str, set[str]]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables."""
    if not config.option.capabilities:
        return
    proofs = config.stash.get(_PROOFS, {})
    for name, title in TITLES.items():
        groups = load_rows(name)
        ids = [row for rows in groups.values() for row in rows]
        width = max(map(len, ids))
        for group, rows in groups.items():
            terminalreporter.section(group, sep="-")
            for row, sentence in rows.items():
                tests = sorted(proofs.get(row, ()))
                terminalreporter.line(f"{row:{width}}  {'proven ' if tests else 'not yet'}  {sentence}")
                for test in tests:
                    terminalreporter.line(f"        {test}")
        terminalreporter.line("")
        terminalreporter.line(f"{len(proofs.keys() & set(ids))} of {len(ids)} {title}")
