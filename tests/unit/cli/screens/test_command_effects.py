"""One table says what each command does to running agents; each command prints its line of it."""

import pytest

from loopwright.cli.screens.command_effects import EFFECTS, effects_table, print_effect
from loopwright.cli.shell.command_table import COMMANDS


def test_every_line_is_of_a_command_and_each_is_printed_as_the_table_has_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {name.split()[0] for name in EFFECTS} - {"Ctrl-C"} <= set(COMMANDS)
    asked = {"pause", "stop", "Ctrl-C", "reject", "take-over --done", "rollback", "answer", "retry", "accept"}
    assert asked <= set(EFFECTS)
    for name, effect in EFFECTS.items():
        print_effect(name)
        out = capsys.readouterr().out
        assert out.lower() == f"{effect.agents}. {effect.work}.\n".lower()
        assert out[0].isupper()
        assert f"| `{name}` | {effect.agents} | {effect.work} |" in effects_table()
    print_effect("reviewed")
    assert capsys.readouterr().out == ""
