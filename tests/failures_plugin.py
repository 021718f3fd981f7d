"""Writes down which tests failed, so that they can be run once more alone: a busy machine is not a defect."""

from pathlib import Path

import pytest

RECORD = Path(".failed-tests")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the names of the failed tests beside the checkout's other leftovers."""
    if hasattr(session.config, "workerinput"):
        return  # the process that hands the tests out hears of all of them
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:
        return
    bad = [*reporter.stats.get("failed", []), *reporter.stats.get("error", [])]
    names = sorted({report.nodeid for report in bad})
    if names:
        (session.config.rootpath / RECORD).write_text("\n".join(names) + "\n", encoding="utf-8")
    else:
        (session.config.rootpath / RECORD).unlink(missing_ok=True)
