"""`help` and the version: what people type first."""

import pytest

from loopwright import __version__
from loopwright.cli.main import COMMANDS, call


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["help"]) == 0
    told = capsys.readouterr().out
    assert [name for name in COMMANDS if f" {name} " not in told] == []


@pytest.mark.parametrize("command", [("run",), ("plan", "check"), ("help",)])
def test_help_of_a_command_is_what_its_own_flag_prints(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert call(["help", *command]) == 0
    told = capsys.readouterr().out
    assert call([*command, "--help"]) == 0
    assert told == capsys.readouterr().out
    assert told.startswith(f"Usage: loopwright {' '.join(command)}")


@pytest.mark.parametrize("command", ["nosuch", "plan nosuch"])
def test_help_of_what_does_not_exist_says_so(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert call(["help", *command.split()]) == 2
    assert f"there is no command '{command}'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_has_a_long_and_a_short_flag(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert call([flag]) == 0
    assert capsys.readouterr().out == f"loopwright {__version__}\n"
