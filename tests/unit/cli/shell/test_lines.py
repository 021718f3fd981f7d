"""Paragraphs that fit a terminal, with commands that can be copied."""

import io

import pytest
from rich.text import Text
from tests.cases import each_case

from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.output import SafeConsole, complain

RECEIPT = "loopwright receipt show plan_0a1b2c3d --output receipt.json"
SENTENCE = (
    f"This plan has no receipt yet. `{RECEIPT}` writes one as it is now, and `git log --oneline` shows it."
)


def printed(text: str, width: int, *, indent: str = "  ", style: str = "") -> list[str]:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=width, color_system=None, soft_wrap=True)
    console.print(Wrapped(Text(text, style=style), indent=indent))
    return out.getvalue().splitlines()


@each_case("width", list(range(20, 121)))
def test_a_command_in_a_sentence_is_never_broken(width: int) -> None:
    lines = printed(SENTENCE, width)
    assert any(f"`{RECEIPT}`" in line for line in lines)
    assert any("`git log --oneline`" in line for line in lines)
    assert " ".join(line.strip() for line in lines) == SENTENCE
    room = max(width, len(RECEIPT) + 4)
    assert all(len(line) <= room for line in lines)


@each_case(
    ("text", "command"),
    [
        ("to do: loopwright answer q_0a1b2c3d 'leave it as it is'", "answer q_0a1b2c3d 'leave it as it is'"),
        ("merge it:  git merge --ff-only loopwright/plan-0a1b2c3d", "git merge --ff-only loopwright/plan-0a1b2c3d"),
        ("loopwright discovered accept d_1   or   loopwright discovered dismiss d_1", "discovered dismiss d_1"),
        ("git add loopwright.toml; then run it again in this folder", "git add loopwright.toml"),
    ],
)  # fmt: skip
def test_a_command_without_backticks_is_never_broken(text: str, command: str) -> None:
    for width in range(20, 81):
        assert any(command in line for line in printed(text, width)), width


def test_a_sentence_without_a_command_breaks_between_words_and_keeps_its_style() -> None:
    text = "Run loopwright in that folder, because the file is for that folder alone."
    lines = printed(text, 24)
    assert len(lines) == 4
    assert all(len(line) <= 24 for line in lines)
    assert " ".join(line.strip() for line in lines) == text


def test_a_word_that_is_wider_than_the_terminal_is_broken() -> None:
    lines = printed(f"home {'/folder' * 20}", 40)
    assert all(len(line) <= 40 for line in lines)
    assert "".join(line.strip() for line in lines[1:]) == "/folder" * 20


def test_the_hint_of_an_error_can_be_copied(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "60"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    complain("it has no receipt", code=2, kind="no_receipt", hint=SENTENCE)  # type: ignore[arg-type]
    assert f"`{RECEIPT}`" in capsys.readouterr().err
