"""What is kept of a gate run on a base: by what was asked, as long as it counts, and never over a doubt."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loopwright.adapters.machine.files import delete
from loopwright.config.resolve import Settings, load
from loopwright.core.plans.base_checks import Condition, conditions
from loopwright.core.values.policy import GateCommand
from loopwright.services.gates.base_gates import Bases
from loopwright.services.gates.clean_tree import clean_tree
from loopwright.testing.sample import make_sample_repository

TREE = "a" * 40
COMMANDS = (GateCommand(name="green", command="true"), GateCommand(name="red", command="exit 3"))


def settings(place: Path, **more: str) -> Settings:
    env = {"HOME": str(place / "user"), "LOOPWRIGHT_HOME": str(place / "home"), **more}
    return load({**env, "LOOPWRIGHT_SANDBOX__LEVEL": "none"}, platform="linux")


def kept(place: Path, bases: Bases) -> None:
    """Run the commands in a clean clone, and keep that."""
    sha = make_sample_repository(place / "project")

    async def run() -> None:
        async with clean_tree(place / "project", sha, bases.settings, subfolder="", copy_files=()) as tree:
            tried = await tree.judge(COMMANDS)
            bases.keep(tried.directory, TREE, COMMANDS)
            bases.note(TREE, COMMANDS, {"x": conditions(COMMANDS, tried.verdict, tried.seen)[0]})

    asyncio.run(run())


def test_what_was_found_is_found_again_until_it_is_old(tmp_path: Path) -> None:
    bases = Bases(settings=settings(tmp_path))
    kept(tmp_path, bases)
    assert list((tmp_path / "home").iterdir()) == [tmp_path / "home" / "bases"], "nothing else is left"
    found = bases.find(TREE, COMMANDS)
    assert found is not None
    assert [one.condition for one in found.gates] == [Condition.GREEN, Condition.RED]
    assert found.acceptance["x"].condition is Condition.GREEN
    taken = bases.taken(found)
    assert taken is not None
    assert (tmp_path / "home" / "runs" / taken.run_id / "gate" / "results.json").is_file()

    assert bases.find("b" * 40, COMMANDS) is None, "another tree"
    assert bases.find(TREE, COMMANDS[:1]) is None, "other commands"
    contained = settings(tmp_path, LOOPWRIGHT_SANDBOX__NETWORK="off")
    assert Bases(settings=contained).find(TREE, COMMANDS) is None, "other walls"
    copies = settings(tmp_path, LOOPWRIGHT_COPY_FILES=".env")
    assert Bases(settings=copies).find(TREE, COMMANDS) is None, "files that git does not know"

    record = found.directory / "exit.json"
    ended = {
        **json.loads(record.read_text()),
        "ended_at": (datetime.now(UTC) - timedelta(hours=13)).isoformat(),
    }
    record.write_text(json.dumps(ended))
    assert bases.find(TREE, COMMANDS) is None, "half a day ago"


def test_a_record_that_somebody_changed_is_not_believed(tmp_path: Path) -> None:
    bases = Bases(settings=settings(tmp_path))
    kept(tmp_path, bases)
    found = bases.find(TREE, COMMANDS)
    assert found is not None
    (found.directory / "gate" / "2.out").write_text("all is well\n")
    assert bases.find(TREE, COMMANDS) is None


def test_what_is_half_written_is_not_known_and_what_is_gone_is_not_taken(tmp_path: Path) -> None:
    bases = Bases(settings=settings(tmp_path))
    kept(tmp_path, bases)
    found = bases.find(TREE, COMMANDS)
    assert found is not None
    for text in ('{"x": {"cond', "[]", '{"x": 1}', '{"x": {"condition": "odd", "failed": []}}'):
        (found.directory / "acceptance.json").write_text(text)
        again = bases.find(TREE, COMMANDS)
        assert again is not None
        assert again.acceptance == {}
    delete(found.directory)
    assert bases.taken(found) is None
    assert not (tmp_path / "home" / "runs").exists()


def test_no_secret_is_kept_that_a_command_comes_upon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that it was handed over, nor one of ours that lies about on the machine."""
    monkeypatch.setenv("LICENCE", "handed-over-1234")
    monkeypatch.setenv("ELSEWHERE_TOKEN", "not-handed-over-1234")
    found = settings(tmp_path, LOOPWRIGHT_ENVIRONMENT='["LICENCE"]')
    sha = make_sample_repository(tmp_path / "project")
    prints = (GateCommand(name="prints", command="echo $LICENCE not-handed-over-1234; exit 3"),)

    async def run() -> str:
        async with clean_tree(tmp_path / "project", sha, found, subfolder="", copy_files=()) as tree:
            tried = await tree.judge(prints)
            kept = (one for one in tried.directory.rglob("*") if one.is_file())
            return "".join(one.read_text(errors="replace") for one in kept)

    stored = asyncio.run(run())
    assert "[redacted] [redacted]" in stored
    assert "1234" not in stored.replace(prints[0].command, "")
