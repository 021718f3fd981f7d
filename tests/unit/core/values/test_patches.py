"""Reading changes: which lines they touch, and a hash that stays while the change does."""

import subprocess
from pathlib import Path

from tests.cases import each_case

from loopwright.core.values.patches import ChangedFile, Patch, file_of, read_patch

FLAGS = ("-r", "-p", "--full-index", "--no-renames", "--root")


def patch(text: str, shown: int = 100_000) -> Patch:
    return read_patch(text.encode().splitlines(keepends=True), shown=shown)


def change(*lines: str, at: str = "1,3 +1,3", path: str = "a.py", ids: str = "1..2") -> str:
    head = (f"diff --git a/{path} b/{path}", f"index {ids} 100644", f"--- a/{path}", f"+++ b/{path}")
    return "".join(f"{line}\n" for line in (*head, f"@@ -{at} @@ def f():", *lines))


ONE = (" x", "-old", "+new", " y")


def test_the_files_lines_and_counts_of_a_change_are_found() -> None:
    found = patch(change(*ONE, at="10,3 +12,3") + change("+only", at="0,0 +1", path="new file.txt"))
    assert found.files == (
        ChangedFile(path="a.py", spans=((12, 14),), added=1, removed=1),
        ChangedFile(path="new file.txt", spans=((1, 1),), added=1, removed=0),
    )
    assert found.lines == 3
    assert found.files[0].has(12)
    assert not found.files[0].has(15)
    assert found.is_whole


def test_a_change_keeps_its_hash_where_it_moves_and_loses_it_where_it_differs() -> None:
    same = patch(change(*ONE)).sha256
    assert patch(change(*ONE, at="70,3 +75,3", ids="8..9")).sha256 == same, "others landed something above it"
    for other in (
        change(" x", "-old", "+ new", " y"),
        change(" z", "-old", "+new", " y"),
        change(*ONE, path="b.py"),
        change(*ONE) + change(*ONE, path="b.py"),
    ):
        assert patch(other).sha256 != same, "white space is meaning, and so is what stands around it"


def test_lines_of_a_file_are_not_taken_for_marks_of_the_diff() -> None:
    found = patch(change("--- a/b.py", "+++ b/b.py", "+diff --git a/c b/c", "-@@ -1 +1 @@", at="1,2 +1,2"))
    assert [(one.path, one.added, one.removed) for one in found.files] == [("a.py", 2, 2)]


def test_a_file_without_lines_is_told_by_its_ids_and_is_not_shown() -> None:
    def binary(ids: str) -> Patch:
        return patch(
            f"diff --git a/x.png b/x.png\nindex {ids} 100644\nBinary files a/x.png and b/x.png differ\n"
        )

    assert binary("1..2").sha256 != binary("1..3").sha256
    assert not binary("1..2").is_whole
    assert binary("1..2").files == (ChangedFile(path="x.png"),)


def test_of_a_long_change_the_beginning_is_shown_and_all_of_it_counts() -> None:
    text = change(*ONE)
    found = patch(text, shown=20)
    assert (found.text, found.is_whole) == (text[:20], False)
    assert (found.sha256, found.files) == (patch(text).sha256, patch(text).files)


@each_case("name", ["a.py", "./a.py", "b/a.py", "a/a.py"])
def test_a_file_is_found_by_the_names_that_people_and_git_give_it(name: str) -> None:
    files = (ChangedFile(path="a.py"), ChangedFile(path="b.py"))
    assert file_of(files, name) == files[0]
    assert file_of(files, "c.py") is None


def test_what_git_itself_prints_is_read(tmp_path: Path) -> None:
    def git(*words: str) -> bytes:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True).stdout

    git("init", "-q")
    (tmp_path / "gone.txt").write_text("1\n2\n")
    (tmp_path / 'odd "ü".txt').write_text("no end of line")
    git("add", "-A")
    git("commit", "-qm", "one")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / 'odd "ü".txt').write_text("an end\n")
    git("add", "-A")
    git("commit", "-qm", "two")
    found = read_patch(git("diff-tree", *FLAGS, "HEAD~1", "HEAD").splitlines(keepends=True))
    assert found.files == (
        ChangedFile(path="gone.txt", spans=((1, 2),), added=0, removed=2),
        ChangedFile(path='odd "ü".txt', spans=((1, 1),), added=1, removed=1),
    )
