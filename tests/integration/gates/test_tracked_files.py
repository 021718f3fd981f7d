"""What a command changes among the files that git has in the tree is known, whoever tries to hide it."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.gates.desks import Desk, command, ended

from loopwright.adapters.gates.commands import CommandGate
from loopwright.core.values.findings import Verdict
from loopwright.ports import Tracked

FILES = {"calc.py": "one\n", "ci/check.sh": "true\n", "notes.txt": "two\n"}


@pytest.fixture
def own(desk: Desk, tmp_path: Path) -> Tracked:
    """A tree with files, and a git dir and an index beside it."""
    for name, text in FILES.items():
        path = desk.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (desk.tree / "link").symlink_to("calc.py")
    env = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(tmp_path / "own.git"),
        "GIT_WORK_TREE": str(desk.tree),
        "GIT_INDEX_FILE": str(tmp_path / "own.index"),
    }
    for args in (("init", "-q", "--bare", env["GIT_DIR"]), ("add", "-A")):
        subprocess.run(
            ["git", *args], env=env if args[0] == "add" else {"PATH": env["PATH"]}, cwd=desk.tree, check=True
        )
    return Tracked(top=desk.tree, git=("git",), env=env)


def judged(desk: Desk, own: Tracked, *commands: str, laid: tuple[str, ...] = ()) -> Verdict:
    gate = CommandGate(term_grace_s=1.0)
    asked = replace(desk.request(*(command(text) for text in commands)), tracked=own, laid=laid)
    with desk.start(gate, asked) as process:
        out, err = process.communicate(timeout=60)
    assert err == b"", out
    return gate.verdict(asked, ended(process.returncode))


def changed(desk: Desk, own: Tracked, *commands: str) -> list[tuple[str, ...]]:
    return [one.changed for one in judged(desk, own, *commands).commands]


@pytest.mark.parametrize(
    ("does", "path"),
    [
        ("echo x >> calc.py", "calc.py"),
        ("rm ci/check.sh", "ci/check.sh"),
        ("rm -r ci && touch ci", "ci/check.sh"),
        ("chmod +x ci/check.sh", "ci/check.sh"),
        ("ln -sf notes.txt link", "link"),
        ("rm calc.py && ln -s /dev/zero calc.py", "calc.py"),
        ("rm calc.py && mkfifo calc.py", "calc.py"),
        (
            "touch -r calc.py @before && echo six > calc.py && touch -r @before calc.py && rm @before",
            "calc.py",
        ),
    ],
)
def test_a_file_that_a_command_changed_is_told_with_that_command(
    desk: Desk, own: Tracked, does: str, path: str
) -> None:
    assert changed(desk, own, "true", does, "true") == [(), (path,), ()]


def test_a_file_that_was_written_and_is_what_it_was_is_told_apart(desk: Desk, own: Tracked) -> None:
    same = "touch calc.py && cp notes.txt new && mv new notes.txt && rm link && ln -s calc.py link"
    hidden = (
        "touch -r ci/check.sh t && echo no > ci/check.sh && echo true > ci/check.sh && touch -r t ci/check.sh"
    )
    verdict = judged(desk, own, f"{same} && echo new > made.txt", hidden, "cat calc.py notes.txt link")
    assert [one.changed for one in verdict.commands] == [(), (), ()]
    assert [one.touched for one in verdict.commands] == [
        ("calc.py", "link", "notes.txt"),
        ("ci/check.sh",),
        (),
    ]


def test_a_file_that_git_writes_in_another_form_is_compared_in_that_form(desk: Desk, own: Tracked) -> None:
    (desk.tree / ".gitattributes").write_text("*.txt eol=crlf\n")
    subprocess.run(["git", "add", "-A"], env=own.env, cwd=desk.tree, check=True)
    (desk.tree / "notes.txt").write_bytes(b"two\r\n")
    subprocess.run(["git", "add", "-A"], env=own.env, cwd=desk.tree, check=True)
    assert changed(desk, own, "touch notes.txt", "printf 'six\\r\\n' > notes.txt") == [(), ("notes.txt",)]


def test_what_was_laid_over_the_tree_for_its_checks_is_no_change(desk: Desk, own: Tracked) -> None:
    (desk.tree / "notes.txt").write_text("held out\n")
    verdict = judged(desk, own, "touch notes.txt", "echo more >> notes.txt", laid=("notes.txt",))
    assert [one.changed for one in verdict.commands] == [(), ("notes.txt",)]


def test_nothing_that_a_command_does_to_the_git_of_the_tree_hides_it(desk: Desk, own: Tracked) -> None:
    hides = "git init -q . && git add -A && git config core.fsmonitor true && echo x > calc.py && git add -A"
    assert changed(desk, own, hides) == [("calc.py",)]


def test_where_git_cannot_say_what_is_in_the_tree_nothing_is_known_of_it(desk: Desk, own: Tracked) -> None:
    broken = replace(own, env={**own.env, "GIT_DIR": str(desk.tree / "nowhere")})
    gate = CommandGate()
    asked = replace(desk.request(command("true")), tracked=broken)
    with desk.start(gate, asked) as process:
        process.communicate(timeout=60)
    verdict = gate.verdict(asked, ended(process.returncode))
    assert verdict.status == "inconclusive"
