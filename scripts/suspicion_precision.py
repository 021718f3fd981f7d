"""Measure the patterns of `core/integrity/suspicion.py`: hits on honest commits, hits on the liar's suite.

python scripts/suspicion_precision.py COMMITS REPOSITORY...   takes the newest COMMITS of each git repository.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.trust.table import STAGES

from loopwright.core.integrity.suspicion import HOLLOW, PATTERNS, Change, suspicious_places

SUFFIXES = ("*.py", "*.pyi", "*.js", "*.mjs", "*.ts", "*.go")


def git(repository: str, *arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


def honest(repository: str, most: int) -> Iterator[tuple[str, list[Change]]]:
    """Yield the newest commits of a repository that change source, each with what it added."""
    log = git(repository, "log", "--no-merges", f"-n{most}", "--format=%x00%h", "-p", "-U0", "--", *SUFFIXES)
    for commit in log.split("\0")[1:]:
        sha, _, diff = commit.partition("\n")
        yield sha, [_change(file) for file in diff.split("\ndiff --git ")[1:]]


def _change(diff: str) -> Change:
    """Return the added lines of one file of a diff; line numbers are those within the diff."""
    head, *hunks = diff.split("\n@@ ")
    lines = [line for hunk in hunks for line in hunk.split("\n")[1:]]
    # A file that existed has text before, also where no line of it went.
    existed = [] if "\nnew file mode" in head else ["-"]
    before = "\n".join(line[1:] for line in (*existed, *lines) if line.startswith("-")) + "\n" * len(existed)
    after = "\n".join(line[1:] for line in lines if line.startswith("+"))
    return Change(path=head.split("\n")[0].rpartition(" b/")[2], before=before, after=after)


def lies() -> Iterator[tuple[str, list[Change]]]:
    """Yield what the liars of the suite write, each with the files of its stage before."""
    for stage in STAGES.values():
        for key, one in stage.behaviours.items():
            writes = [step for steps in one.attempts for step in steps if "write" in step]
            yield (
                key,
                [
                    Change(path=step["write"], before=stage.files.get(step["write"], ""), after=step["text"])
                    for step in writes
                ],
            )


def main(most: int, repositories: list[str]) -> None:
    """Print the table."""
    commits, hits, caught = 0, Counter[str](), Counter[str]()
    for repository in repositories:
        for sha, changes in honest(repository, most):
            commits += 1
            places = suspicious_places(changes)
            hits.update({place.pattern for place in places})
            for place in places:
                print(f"{Path(repository).parent.name} {sha} {place}", file=sys.stderr)
    for key, changes in lies():
        places = suspicious_places(changes)
        caught.update({place.pattern for place in places})
        for place in places:
            print(f"lie {key} {place}", file=sys.stderr)
    print(f"| pattern | of {commits} honest commits | lies of the suite |\n|---|---|---|")
    for words in (*PATTERNS, HOLLOW):
        print(f"| {words} | {hits[words]} | {caught[words]} |")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
