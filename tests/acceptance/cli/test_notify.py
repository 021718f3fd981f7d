"""`run --notify` and the setting `notify`: a real Apprise sends to a receiver on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.sandbox import COST, Sandbox, task
from tests.integration.notifications.sink import Sink, listening

DO = [{"write": "made.txt", "text": "made\n"}, COST]
PASSES = task("t1", "test -f made.txt")
FAILS = task("t1", "test -f other.txt")


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A receiver."""
    with listening() as made:
        yield made


def test_a_run_tells_of_the_budget_and_of_its_end_and_keeps_the_secret(sandbox: Sandbox, sink: Sink) -> None:
    sandbox.play({"t1": [DO]})
    sandbox.program.env["SINK_TOKEN"] = "a-very-secret-word"
    away = "json://127.0.0.1:9/${SINK_TOKEN}"
    ran = sandbox.run(
        sandbox.plan("todo", [PASSES]),
        "--max-cost=0.01",
        "--notify",
        sink.url("${SINK_TOKEN}"),
        "--notify",
        away,
    )
    assert ran.code == 0, ran.err
    assert sink.titles == ["Budget: todo", "Done: todo"]
    assert "took nothing" in ran.out + ran.err
    files = [one.read_bytes() for one in sandbox.home.rglob("*") if one.is_file()]
    assert not any(b"a-very-secret-word" in one for one in files)
    assert "a-very-secret-word" not in ran.out + ran.err


@pytest.mark.more
@pytest.mark.parametrize(
    ("on_error", "first", "last"), [("hold", "Needs you", "Needs you"), ("fail", "Failed", "Failed")]
)
def test_a_run_that_needs_you_or_failed_says_so(
    sandbox: Sandbox, sink: Sink, on_error: str, first: str, last: str
) -> None:
    sandbox.play({"t1": [DO]})
    sandbox.program.env |= {"LOOPWRIGHT_NOTIFY": sink.url(), "LOOPWRIGHT_ON_TASK_ERROR": on_error}
    assert sandbox.run(sandbox.plan("todo", [FAILS]), "--max-attempts=1").code == 1
    assert sink.titles[-1] == f"{last}: todo"
    assert f"{first}: todo" in sink.titles


def test_a_target_that_cannot_be_used_is_refused_before_any_work(sandbox: Sandbox) -> None:
    plan = sandbox.plan("todo", [PASSES])
    wrong = sandbox.run(plan, "--notify", "nosuchservice://a-secret-word/")
    assert (wrong.code, "a-secret-word" in wrong.err) == (2, False)
    unset = sandbox.run(plan, "--notify", "json://localhost/${NOT_SET}")
    assert (unset.code, "NOT_SET" in unset.err) == (2, True)
    assert sandbox.run(plan, "--notify", "json://localhost", "--detach").code == 2
    assert not (sandbox.home / "loopwright.db").exists()


def test_doctor_and_config_name_targets_without_their_secrets(sandbox: Sandbox) -> None:
    sandbox.program.env["LOOPWRIGHT_NOTIFY"] = json.dumps(
        ["json://user:a-secret-word@localhost", "nosuch://x"]
    )
    shown = sandbox("config", "show", "--json").out
    assert ("json://***" in shown, "a-secret-word" in shown) == (True, False)
    found = [one for one in sandbox("doctor", "--json").document["findings"] if one["name"] == "notify"]
    assert [one["status"] for one in found] == ["ok", "warn"]


@pytest.mark.more
def test_doctor_says_how_to_install_what_is_missing(sandbox: Sandbox, tmp_path: Path) -> None:
    # A module that cannot be found, as far as the program knows.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['apprise'] = None\n")
    sandbox.program.env |= {"LOOPWRIGHT_NOTIFY": "json://localhost", "PYTHONPATH": str(tmp_path)}
    found = [
        one for one in sandbox("doctor", "--json", fresh=True).document["findings"] if one["name"] == "notify"
    ]
    assert [one["status"] for one in found] == ["warn"]
    assert "pip install 'loopwright[notify]'" in found[0]["fix"]
