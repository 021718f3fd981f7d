"""The completion scripts, tried in the shells that are installed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.cli.main import call
from loopwright.cli.shell.command_table import COMMANDS, HIDDEN

TRIED = [
    ("loopwright sta", ["stats", "status"]),
    ("loopwright stats quo", ["quota"]),
    ("loopwright stats quota o", ["open"]),
    ("loopwright take-over --d", ["--done", "--drop"]),
    ("loopwright completion ", ["bash", "fish", "zsh"]),
    ("loopwright ques", []),
]
"""What is typed in front of the tab key, and what the shell offers. The last one is a hidden name."""
EVERY = {*COMMANDS, *HIDDEN, "quota", "open", "--done", "--drop", "bash", "fish", "zsh"}

BASH = """
source {script}
COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_loopwright
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT= LISTMAX=0; stty columns 200; autoload -Uz compinit; compinit -u -D'
zpty -w shell 'source {script}; echo ready-$((1+1))'
while zpty -r shell said; do [[ $said == *ready-2* ]] && break; done
zpty -n -w shell {line!r}$'\\C-d'
zpty -w shell $'\\C-u\\nexit'
while zpty -r shell said; do print -r -- $said; done
"""
ENV = {**os.environ, "TERM": "dumb"}
WORD = re.compile(r"[\w-]+")


def offered(shell: str, script: Path, line: str) -> list[str]:
    """Return what a shell offers behind a line, sorted."""
    match shell:
        case "bash":
            words = " ".join(repr(one) for one in line.split(" "))
            code = ["bash", "--norc", "-c", BASH.format(script=script, line=line, words=words)]
        case "fish":
            code = ["fish", "--no-config", "-c", f"source {script}; complete -C {line!r}"]
        case _:
            code = ["zsh", "-f", "-c", ZSH.format(script=script, line=line)]
    said = subprocess.run(code, capture_output=True, text=True, timeout=60, cwd=script.parent, env=ENV)
    if shell == "zsh":
        # It draws a list of what it offers, each with its description.
        drawn = {word for one in said.stdout.splitlines() for word in WORD.findall(one.partition(" -- ")[0])}
        return sorted(drawn & EVERY - set(line.split()))
    return sorted({one.partition("\t")[0] for one in said.stdout.splitlines() if one} - {script.name})


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_shell_completes_commands_and_options(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert call(["completion", shell]) == 0
    script = tmp_path / f"complete.{shell}"
    script.write_text(capsys.readouterr().out)
    assert {line: offered(shell, script, line) for line, _ in TRIED} == dict(TRIED)


@each_case("shell", ["bash", "fish", "zsh"])
def test_a_script_lists_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert [one for one in COMMANDS if one not in said] == []


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
