"""Writes down what a suite saw, for a table in the docs: `make agents-table` and `make trust-table`."""

import json
import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the docs and the suite that fills it."""

    option: str
    property: str
    """What the tests of the suite record."""
    made_by: str
    """The module whose `from_reports` makes it of what was seen; a key that is missing there was not seen."""
    help: str


AGENTS = Table(
    option="--agents-table",
    property="conformance",
    made_by="tests.contracts.agents.table",
    help="write down which adapter kept which behaviour",
)
TRUST = Table(
    option="--trust-table",
    property="trust",
    made_by="tests.trust.table",
    help="write down what came of each lie of an agent",
)
TABLES = (AGENTS, TRUST)

_COLLECTORS = pytest.StashKey[list["_Collector"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switches that write the files."""
    for table in TABLES:
        parser.addoption(table.option, type=Path, metavar="FILE", help=table.help)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect, where all reports arrive."""
    config.stash[_COLLECTORS] = []
    for table in TABLES:
        if config.getoption(table.option) and not hasattr(config, "workerinput"):
            collector = _Collector(table=table)
            config.stash[_COLLECTORS].append(collector)
            config.pluginmanager.register(collector)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Collector:
    table: Table
    seen: list[tuple[Any, bool]] = field(default_factory=list)
    """What was recorded, and whether its test passed."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test recorded."""
        values = [value for name, value in report.user_properties if name == self.table.property]
        if report.when == "call":
            self.seen.extend((value, report.passed) for value in values)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the files, if everything in them was seen."""
    for collector in session.config.stash[_COLLECTORS]:
        table = collector.table
        try:
            made = import_module(table.made_by).from_reports(collector.seen)
        except KeyError as missing:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            sys.stderr.write(f"\n{table.option} needs the whole suite: nothing was seen of {missing}\n")
            continue
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        session.config.getoption(table.option).write_text(text, encoding="utf-8")
