"""The tutorial works as it is printed: every file is written and every command is typed, in order."""

import re
import subprocess
from pathlib import Path

from tests.acceptance.cli.program import Program

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-plan.md"
BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```', re.MULTILINE | re.DOTALL
)
FOLDER = "greeter"


def script(page: str) -> str:
    """Return the tutorial as a shell script: files are written, commands are typed."""
    lines = ["set -eu"]
    for block in BLOCK.finditer(page):
        if block["file"]:
            lines.append(f"cat > {block['file']} <<'END OF FILE'\n{block['text']}END OF FILE")
        elif block["kind"] == "console":
            lines.append(block["text"])
    return "\n".join(lines)


def test_the_tutorial_works_as_it_is_printed(tmp_path: Path) -> None:
    program = Program(tmp_path)
    (program.user / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.invalid\n")
    text = script(PAGE.read_text(encoding="utf-8"))
    assert text.count("END OF FILE") == 8
    done = subprocess.run(
        ["sh", "-c", text], cwd=tmp_path, env=program.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "french: verified, landed as" in done.stdout
    assert (tmp_path / FOLDER / "shout.py").is_file(), "accept brought the work into the checkout"
