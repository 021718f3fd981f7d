"""The command line says and does the same with a daemon as without one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Plan

_ID = re.compile(r"(?<![a-z])[a-z]+_[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b")
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?|\b[0-9a-f]{7,64}\b|(?<=plan_)[0-9a-f]{8}"
    r"|\b\d+(\.\d+)? m?s\b"
)
_MEASURED = {
    "elapsed_s",
    "duration_s",
    "duration_ms",
    "seconds",
    "event",
    "last_event",
    "pid",
    "n",
    "workers",
}
"""Fields that a clock or another process decides; only the daemon is a worker that stays."""


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """The same project twice: one without a daemon, one with it."""
    shops = []
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
        shops.append(Served(tmp_path / name))
    yield shops[0], shops[1]
    for shop in shops:
        shop.clean_up()


def _scenario(shop: Served) -> list[Any]:
    """Run a plan of which a task fails, retry it, and look at everything; return what was said, step by step."""
    shop.play(
        {
            "good": [[{"write": "good", "text": "1\n"}]],
            "bad": [[{"claim": "done"}], [{"write": "bad", "text": "1\n"}]],
        }
    )
    tasks = [task("good", "test -s good"), task("bad", "test -s bad", depends_on=["good"], max_attempts=1)]
    path = shop.plan("both", tasks)
    said = [_still(shop, shop("run", str(path), "--json", timeout=100))]
    plan = shop.newest_plan()
    for command in (
        ("status", plan),
        ("show", "bad"),
        ("questions",),
        ("retry", "good"),
        ("reject", "good"),
    ):
        said.append(_still(shop, shop(*command, "--json", timeout=100)))
    # Without a daemon it drives the plan itself and shows its end; with one it shows the command.
    assert shop("retry", "bad", "--note", "write it", "--json", timeout=100).code == 0
    eventually(lambda: shop.row(Plan).status == "VERIFIED", timeout=100)
    said.append(_still(shop, shop("run", str(path), "--json", timeout=100)))
    for command in (
        ("status", plan),
        ("show", "bad"),
        ("diff", plan),
        ("receipt", "show", plan),
        ("cancel", plan),
    ):
        said.append(_still(shop, shop(*command, "--json", timeout=100)))
    return said


def _still(shop: Served, said: Any) -> Any:
    """Return what was said without what differs from run to run."""
    return said.code, _plain(said.document, str(shop.place))


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        return {
            _plain(key, place): ""
            if key in _MEASURED or key.endswith(("_at", "_s", "_bytes"))
            else _plain(one, place)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_plain(one, place) for one in value]
    if isinstance(value, str):
        return _CHANGING.sub("X", _ID.sub("ID", value.replace(place, "PLACE")))
    return value


def _differences(before: Any, after: Any, where: str) -> Iterator[str]:
    """Yield where two answers differ."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key in before:
            yield from _differences(before[key], after[key], f"{where}.{key}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, f"{where}[{number}]")
    elif before != after:
        yield f"{where}: {before!r:.300} without, {after!r:.300} with"


def test_the_command_line_says_the_same_with_and_without_a_daemon(both: tuple[Served, Served]) -> None:
    without, served = both
    served.serve()
    expected, found = _scenario(without), _scenario(served)
    different = list(_differences(expected, found, ""))
    assert not different, "\n".join(different)
    assert without.started() == served.started()
    told = ("plan_", "task_", "loop_")
    kinds = [[one.type for one in shop.events() if one.type.startswith(told)] for shop in both]
    assert kinds[0] == kinds[1]
