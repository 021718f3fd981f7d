"""`help` and the version: what people type first."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright import __version__
from loopwright.cli.main import call
from loopwright.cli.shell.command_table import COMMANDS
from loopwright.config.settings import settings

PARTS = {
    "webhooks": ("create", "dead", "remove", "replay"),
    "lessons": ("add", "approve", "diff", "promote", "remove", "suggest"),
    "plan": ("check", "coverage"),
    "stats": ("agents", "flaky", "quota"),
    "stats quota": ("open", "show"),
    "discovered": ("accept", "dismiss"),
    "actions": ("undo",),
    "locks": ("release", "take"),
    "receipt": ("show", "verify", "replay", "export"),
    "projects": ("add", "env", "import"),
    "service": ("install",),
    "scaffold": ("orchestrator",),
    "tokens": ("create", "limit", "revoke"),
    "config": ("show", "check", "schema"),
}
EVERY = [*COMMANDS, *(f"{name} {part}" for name, parts in PARTS.items() for part in parts)]

Pages = Callable[[str], str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """So wide that no line has to break."""
    monkeypatch.setenv("COLUMNS", "800")


@pytest.fixture
def pages(capsys: pytest.CaptureFixture[str]) -> Pages:
    """Returns what `--help` of a command prints."""

    def page(command: str) -> str:
        assert call([*command.split(), "--help"]) == 0
        return capsys.readouterr().out

    return page


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["help"]) == 0
    told = capsys.readouterr().out
    assert [name for name in COMMANDS if f" {name} " not in told] == []


@each_case("command", [("run",), ("plan", "check"), ("help",)])
def test_help_of_a_command_is_what_its_own_flag_prints(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert call(["help", *command]) == 0
    told = capsys.readouterr().out
    assert call([*command, "--help"]) == 0
    assert told == capsys.readouterr().out
    assert told.startswith(f"Usage: loopwright {' '.join(command)}")


@each_case("command", ["nosuch", "plan nosuch"])
def test_help_of_what_does_not_exist_says_so(
    capsys: pytest.CaptureFixture[str], command: str, wording: Wording
) -> None:
    assert call(["help", *command.split()]) == 2
    wording(capsys.readouterr().err)


@each_case("flag", ["-V", "--version"])
def test_the_version_has_a_long_and_a_short_flag(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert call([flag]) == 0
    assert capsys.readouterr().out == f"loopwright {__version__}\n"


def test_every_part_of_a_command_is_looked_at_here(pages: Pages) -> None:
    for name in [*COMMANDS, *PARTS]:
        listed = pages(name).partition("─ Commands ─")[2].partition("╰")[0]
        assert tuple(sorted(re.findall(r"^│ (\w+)", listed, re.MULTILINE))) == tuple(
            sorted(PARTS.get(name, ()))
        )


@each_case("command", EVERY)
def test_the_usage_line_calls_arguments_by_their_names(pages: Pages, command: str) -> None:
    usage = pages(command).splitlines()[0]
    assert usage.startswith(f"Usage: loopwright {command}")
    assert "ARGS" not in usage


@each_case(
    ("command", "usage"),
    [
        ("status", "[OPTIONS] [TARGET]"),
        ("receipt export", "[OPTIONS] PATH [PLAN]"),
        ("help", "[COMMAND...]"),
        ("init", "[OPTIONS]"),
    ],
)
def test_what_may_be_left_out_stands_in_brackets(pages: Pages, command: str, usage: str) -> None:
    assert pages(command).startswith(f"Usage: loopwright {command} {usage}\n")


@each_case("command", EVERY)
def test_a_switch_has_no_opposite_that_nobody_needs(pages: Pages, command: str) -> None:
    told = pages(command)
    assert set(re.findall(r"--(?:no|empty)-[a-z-]+", told)) <= {
        "--no-run",
        "--no-wait",
        "--no-allow-unverified",
        "--no-auto-heal",
        "--no-check-base",
    }
    assert "default: False" not in told
    assert "docs/" not in told, "who installed the package has no such folder"


@each_case("command", EVERY)
def test_a_line_of_help_breaks_only_where_the_terminal_ends(pages: Pages, command: str) -> None:
    rest = pages(command).splitlines()[2:]
    described = rest[: next(n for n, line in enumerate(rest) if line.startswith("╭"))]
    assert all(not line for line in described[1::2]), "a paragraph is one line"
    assert not [line for line in rest if re.match(r"│ {6,}[^ │]", line)], "so is what is said of a flag"


def test_the_default_that_a_flag_names_is_the_one_of_its_setting(pages: Pages) -> None:
    told = dict(re.findall(r"^│ (--[a-z-]+)[^│]*\(default (\w+)\)", pages("run"), re.MULTILINE))
    known = {one.flag: str(one.kind.show(one.default)) for one in settings().values()}
    assert told == {flag: known[flag] for flag in told}
    assert "--sleep" in told


def test_a_page_is_as_wide_as_the_terminal_is_now(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "60")
    assert call(["receipt", "replay"]) == 2
    monkeypatch.setenv("COLUMNS", "800")
    assert {len(line) for line in pages("receipt replay").splitlines() if line.startswith("│")} == {800}


def test_a_switch_that_a_setting_may_have_on_can_be_put_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "--no-allow-unverified", "nosuch.yaml"]) == 2
    assert "nosuch.yaml" in capsys.readouterr().err
    assert call(["status", "--no-json"]) == 2
    assert "--no-json" in capsys.readouterr().err


def test_run_names_the_permission_modes_that_there_are(pages: Pages) -> None:
    modes = settings()["permission_mode"].kind.schema["enum"]
    assert f"What the agent may do by itself: {', '.join(modes)}." in pages("run")
