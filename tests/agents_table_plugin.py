"""Writes down which adapter kept which behaviour: `make agents-table` makes the table in docs/agents.md of it."""

import json
import sys
from pathlib import Path

import pytest

OPTION = "--agents-table"
PROPERTY = "conformance"

_KEPT = pytest.StashKey[dict[tuple[str, str], bool]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that writes the file."""
    parser.addoption(OPTION, type=Path, metavar="FILE", help="write down which adapter kept which behaviour")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect, where all reports arrive."""
    if config.getoption(OPTION) and not hasattr(config, "workerinput"):
        config.stash[_KEPT] = {}
        config.pluginmanager.register(_Collector(config.stash[_KEPT]))


class _Collector:
    def __init__(self, kept: dict[tuple[str, str], bool]) -> None:
        self._kept = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a behaviour went."""
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                subject, behaviour = value
                self._kept[subject, behaviour] = report.passed


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, if everything in it was seen."""
    kept = session.config.stash.get(_KEPT, None)
    if kept is None:
        return
    from tests.contracts.agents.table import as_table

    try:
        table = as_table(kept)
    except KeyError as missing:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        sys.stderr.write(f"\n{OPTION} needs the whole suite: nothing was seen of {missing}\n")
        return
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    session.config.getoption(OPTION).write_text(text, encoding="utf-8")
