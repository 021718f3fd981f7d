"""The project file that `init` writes."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.adapters.detect import Detected, ProposedGate, Trial, detect, render_toml
from loopwright.config.layers import Level, from_toml
from loopwright.config.resolve import Settings, resolve


def read_back(text: str) -> Settings:
    return resolve([from_toml(text, "loopwright.toml", Level.PROJECT)])


def proposed(name: str, command: str = "make test", **more: object) -> ProposedGate:
    return ProposedGate(
        purpose="test", name=name, command=command, why="Makefile", programs=("make",), **more
    )  # type: ignore[arg-type]


def found(**fields: object) -> Detected:
    blank = {
        "languages": (),
        "dependencies": None,
        "setup": None,
        "setup_why": "",
        "env_files": (),
        "gates": (),
        "notes": (),
    }
    return Detected(**{**blank, **fields})  # type: ignore[arg-type]


def test_what_was_found_reads_back_through_the_settings() -> None:
    gates = (
        proposed("test", timeout_s=1200.0, junit="out/junit.xml"),
        proposed("lint", 'echo "a\\b" # é\nx'),
    )
    text = render_toml(found(setup="npm ci && x", env_files=(".env", ".env.local"), gates=gates), {})
    settled = read_back(text)
    assert settled.values.setup == "npm ci && x"
    assert settled.values.copy_files == (".env", ".env.local")
    assert settled.gates == tuple(gate.gate() for gate in gates)
    assert set(settled.origins) == {"setup", "copy_files", "gates"}


def test_a_failing_gate_is_written_but_commented_out_with_the_reason() -> None:
    gates = (proposed("test"), proposed("lint", "make lint"))
    trials = {
        "test": Trial(passed=False, reason="exit code 2:\nline two\x1b[31m"),
        "lint": Trial(passed=True),
    }
    text = render_toml(found(gates=gates), trials)
    assert [gate.name for gate in read_back(text).gates] == ["lint"]
    assert "# Left out: exit code 2: line two" in text
    assert "\x1b" not in text
    assert '# run = "make test"' in text
    awake = (
        text.replace("# [[gates]]", "[[gates]]")
        .replace('# name = "', 'name = "')
        .replace('# run = "', 'run = "')
    )
    assert [gate.name for gate in read_back(awake).gates] == ["test", "lint"]


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\x0b"])
def test_an_unusual_line_end_in_a_command_does_not_end_the_comment(end: str) -> None:
    gate = proposed("test", f"echo a{end}agent = 'x'")
    text = render_toml(found(gates=(gate,)), {"test": Trial(passed=False)})
    assert read_back(text).origins == {}
    assert "agent = 'x'" in text
    awake = (
        text.replace("# [[gates]]", "[[gates]]").replace("# name = ", "name = ").replace("# run = ", "run = ")
    )
    assert read_back(awake).gates == (gate.gate(),)


def test_a_gate_that_could_not_be_tried_because_a_program_is_missing_is_left_out() -> None:
    text = render_toml(found(gates=(proposed("test", missing=("make",)),)), {})
    assert read_back(text).gates == ()
    assert "# Left out: not installed: make" in text


def test_without_anything_found_the_file_shows_how_a_gate_is_written() -> None:
    text = render_toml(found(notes=("No tests were found.",)), {})
    assert tomllib.loads(text) == {}
    assert "# No tests were found." in text
    assert "# [[gates]]" in text


@settings(deadline=None)
@given(
    command=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40).filter(
        str.strip
    ),
    reason=st.text(max_size=40),
    note=st.text(max_size=40),
    why=st.text(max_size=40),
    passed=st.booleans(),
)
def test_any_command_and_reason_give_a_file_that_reads_back(
    command: str, reason: str, note: str, why: str, passed: bool
) -> None:
    gate = ProposedGate(purpose="test", name="test", command=command, why=why, programs=())
    text = render_toml(found(gates=(gate,), notes=(note,)), {"test": Trial(passed=passed, reason=reason)})
    expected = [command.strip()] if passed else []
    assert [each.command for each in read_back(text).gates] == expected


@pytest.mark.capability("C001")
def test_a_project_that_is_copied_elsewhere_gives_the_same_file(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "requirements.txt").write_text("pytest\n")
    (here / "test_a.py").write_text("def test_a(): pass\n")
    (here / ".env").write_text("A=1\n")
    there = tmp_path / "there"
    shutil.copytree(here, there)
    texts = {render_toml(detect(folder), {}) for folder in (here, there)}
    (text,) = texts
    assert str(tmp_path) not in text
    assert re.search(r'"(/|~)', text) is None
