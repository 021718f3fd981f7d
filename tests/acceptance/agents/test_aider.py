"""aider as the page on agents sets it up: with a program that takes the same arguments and leaves what aider would."""

import re
import sys
from pathlib import Path

from tests.acceptance.cli.program import executable
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "use-your-own-program.md"

AIDER = """
import argparse, os, pathlib, subprocess
known = argparse.ArgumentParser()
for name in ("--model", "--message-file", "--map-tokens"):
    known.add_argument(name, required=True)
# Where aider keeps its histories unless it is told otherwise: in the repository.
known.add_argument("--input-history-file", default=".aider.input.history")
known.add_argument("--chat-history-file", default=".aider.chat.history.md")
for name in ("yes-always", "no-stream", "no-pretty", "no-check-update", "analytics-disable", "no-show-model-warnings"):
    known.add_argument("--" + name, action="store_true", required=True)
known.add_argument("--no-auto-commits", action="store_true")
known.add_argument("--no-gitignore", action="store_true")
asked = known.parse_args()
assert os.environ["OPENAI_API_KEY"] == "a key that only it may see"
assert "Task: a" in pathlib.Path(asked.message_file).read_text()
for history in (asked.input_history_file, asked.chat_history_file):
    pathlib.Path(history).write_text("what was said")
if not asked.no_gitignore:
    pathlib.Path(".gitignore").write_text(".aider*")
pathlib.Path("a").write_text("made by " + asked.model)
if not asked.no_auto_commits:
    subprocess.run(["git", "commit", "-qam", "aider: made it"], check=True)
"""


def test_what_the_page_says_leaves_nothing_of_it_in_the_work(shop: Workshop) -> None:
    (block,) = re.findall(r"```toml\n(agent = \"command\"\n[^`]*aider [^`]*)```", DOCS.read_text("utf-8"))
    (shop.repository / "loopwright.toml").write_text(block)
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "settings")
    script = shop.place / "aider.py"
    script.write_text(AIDER)
    folder = executable(shop.place / "bin" / "aider", f'exec {sys.executable} -S -I {script} "$@"').parent
    shop.program.env["PATH"] = f"{folder}:{shop.program.env['PATH']}"
    shop.program.env["OPENAI_API_KEY"] = "a key that only it may see"
    for name in ("LOOPWRIGHT_AGENT", "LOOPWRIGHT_MODEL"):
        shop.program.env.pop(name, None)
    said = shop.run(shop.plan("made", [task("a", "grep -q 'made by openai/' a")]))
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    changed = shop.git("diff", "--name-only", plan.base_sha or "", plan.branch or "").split()
    assert changed == ["a"], "neither a history nor a changed .gitignore"
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.agent == "command"
