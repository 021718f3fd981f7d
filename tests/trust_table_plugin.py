"""Writes down what came of each behaviour of an agent: `make trust-table` makes the table in docs/trust.md of it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

OPTION = "--trust-table"
PROPERTY = "trust"

_SEEN = pytest.StashKey[dict[str, dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that writes the file."""
    parser.addoption(OPTION, type=Path, metavar="FILE", help="write down what came of each lie of an agent")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect, where all reports arrive."""
    if config.getoption(OPTION) and not hasattr(config, "workerinput"):
        config.stash[_SEEN] = {}
        config.pluginmanager.register(_Collector(config.stash[_SEEN]))


class _Collector:
    def __init__(self, seen: dict[str, dict[str, Any]]) -> None:
        self._seen = seen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what came of a behaviour; of one that was believed nothing is noted."""
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call" and report.passed:
                key, came_of_it = value
                self._seen[key] = came_of_it


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, if everything in it was seen."""
    seen = session.config.stash.get(_SEEN, None)
    if seen is None:
        return
    from tests.trust.table import as_table

    try:
        table = as_table(seen)
    except KeyError as missing:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        sys.stderr.write(
            f"\n{OPTION} needs the whole suite, all of it passed: nothing was seen of {missing}\n"
        )
        return
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    session.config.getoption(OPTION).write_text(text, encoding="utf-8")
