"""The list of pins that we made outlives a kill, a full disk, and a second process that writes it."""

from pathlib import Path

from loopwright.adapters.git.plumbing.refs import FOLDER, PinList

ONE, TWO, THREE = (f"{FOLDER}plan_1/task_{n}" for n in (1, 2, 3))
SHAS = [letter * 40 for letter in "abc"]


def test_what_another_process_writes_is_known_and_what_went_is_not(tmp_path: Path) -> None:
    here, there = PinList(tmp_path / "pins"), PinList(tmp_path / "pins")
    here.note({ONE: SHAS[0], "refs/heads/main": SHAS[1]})
    assert there.below(f"{FOLDER}plan_1/") == {ONE: SHAS[0]}
    there.note({TWO: SHAS[1]})
    there.forget([ONE])
    assert here.below(f"{FOLDER}plan_1/") == {TWO: SHAS[1]}
    assert here.below(f"{FOLDER}plan_10/") == {}


def test_a_line_that_was_cut_short_is_no_pin(tmp_path: Path) -> None:
    pins = PinList(tmp_path / "pins")
    pins.note({ONE: SHAS[0], TWO: SHAS[1]})
    whole = (tmp_path / "pins").read_bytes()
    (tmp_path / "pins").write_bytes(whole[:-5])
    assert pins.below(f"{FOLDER}plan_1/") == {ONE: SHAS[0]}
    pins.note({THREE: SHAS[2]})
    assert pins.below(f"{FOLDER}plan_1/") == {ONE: SHAS[0]}
    pins.note({TWO: SHAS[1], THREE: SHAS[2]})
    assert set(pins.below(f"{FOLDER}plan_1/")) == {ONE, TWO, THREE}
