"""Proofs are kept for as long as they can be true."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import executable
from tests.wording_plugin import Wording

from loopwright.adapters.sandbox.choosing import Network, choose
from loopwright.adapters.sandbox.proof import FILE, proof
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import UserError


def counting(place: Path, bwrap: str) -> tuple[Path, Path]:
    """Make a bwrap that notes each time it is started."""
    calls = place / "calls"
    return executable(place / "bwrap", f'echo >> {calls}; exec {bwrap} "$@"'), calls


def test_a_proof_is_made_once_for_each_program(tmp_path: Path, bwrap: str) -> None:
    program, calls = counting(tmp_path, bwrap)
    home = tmp_path / "home"
    home.mkdir()
    first = proof(str(program), home)
    assert (first.holds, first.cuts_network, first.why_not) == (True, True, "")
    tried = len(calls.read_text().splitlines())
    assert proof(str(program), home) == first
    assert len(calls.read_text().splitlines()) == tried
    program.write_text(program.read_text() + "# a newer one\n")
    assert proof(str(program), home).holds
    assert len(calls.read_text().splitlines()) == 2 * tried
    kept = json.loads((home / FILE).read_text())
    (home / FILE).write_text(json.dumps({**kept, "stamp": ["another boot", *kept["stamp"][1:]]}))
    assert proof(str(program), home).holds
    assert len(calls.read_text().splitlines()) == 3 * tried


@pytest.mark.parametrize("left", ["", "{", "[]", '{"stamp": 1}'])
def test_what_was_kept_by_someone_else_is_made_anew(left: str, tmp_path: Path, bwrap: str) -> None:
    (tmp_path / FILE).write_text(left)
    assert proof(bwrap, tmp_path).holds


def test_one_that_does_not_work_is_tried_again_each_time(tmp_path: Path, wording: Wording) -> None:
    broken = executable(tmp_path / "bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = proof(str(broken), tmp_path)
    assert found.holds is False
    wording(found.why_not)
    assert not (tmp_path / FILE).exists()


def test_auto_takes_what_holds_and_a_name_is_insisted_on(tmp_path: Path, bwrap: str) -> None:
    common = {"home": tmp_path, "own": (), "user": tmp_path}
    assert choose("auto", program=bwrap, **common).sandbox.level is Containment.BUBBLEWRAP
    assert choose("none", program=bwrap, **common).sandbox.level is Containment.NONE
    missing = choose("auto", program="/nowhere/bwrap", **common)
    missing.check()
    assert missing.sandbox.level is Containment.NONE
    with pytest.raises(UserError, match="does not hold here"):
        choose("bubblewrap", program="/nowhere/bwrap", **common).check()


@pytest.mark.parametrize("network", ["agents", "off"])
def test_a_network_that_nothing_takes_away_is_refused(tmp_path: Path, bwrap: str, network: Network) -> None:
    common: dict[str, Any] = {"home": tmp_path, "own": (), "user": tmp_path}
    for wanted, program in (("none", bwrap), ("auto", "/nowhere/bwrap")):
        choose(wanted, program=program, **common).check()
        with pytest.raises(UserError, match="only a sandbox can take the network away, and runs have none"):
            choose(wanted, program=program, network=network, **common).check()
    choose("auto", program=bwrap, network=network, **common).check()
