"""Runs the product's command line and counts what it asks of the database, of git and of the system.

`python -m bench.counted RESULT ARGUMENTS...` hooks into Python's audit events, has SQLite tell each statement, and
calls the command line in the same process. Nothing of the product is changed; its time is not taken here.
"""

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GIT_OPTION = "-c"
ENDS = ("COMMIT", "ROLLBACK")


class Counts:
    """What was seen."""

    def __init__(self) -> None:
        self.statements: Counter[str] = Counter()
        self.git: Counter[str] = Counter()
        self.programs: Counter[str] = Counter()

    def statement(self, sql: str) -> None:
        """Count a statement by what it does and to which table; the end of a transaction is part of its beginning."""
        if sql not in ENDS:
            self.statements[shape(sql)] += 1

    def started(self, argv: Sequence[str]) -> None:
        """Count a program."""
        if argv and argv[0].rpartition("/")[2] == "git":
            self.git[git_command(argv)] += 1
        elif any(word.endswith("keeper/__main__.py") for word in argv):
            self.programs["keeper"] += 1
        else:
            self.programs[argv[0] if argv else "?"] += 1


def git_command(argv: Sequence[str]) -> str:
    """Return the git command of an argument list with `-c name=value` in front."""
    words = iter(argv[1:])
    for word in words:
        if word == GIT_OPTION:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return "?"


def shape(sql: str) -> str:
    """Return a statement's verb and table."""
    words = sql.replace("(", " ").split()
    if not words:
        return "?"
    verb = words[0].upper()
    if verb == "BEGIN":
        return " ".join(words).upper()
    marks = {"SELECT": "FROM", "DELETE": "FROM", "INSERT": "INTO", "UPDATE": "UPDATE"}
    mark = marks.get(verb)
    upper = [word.upper() for word in words]
    if mark is None or mark not in upper or upper.index(mark) + 1 >= len(words):
        return verb
    return f"{verb} {words[upper.index(mark) + 1]}"


def main(result: Path, arguments: Sequence[str]) -> int:
    """Run the command line and write down what was counted."""
    counts = Counts()

    def audit(event: str, given: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            counts.started([str(word) for word in given[1]])

    sys.addaudithook(audit)
    connect: Any = sqlite3.connect

    def told(*where: Any, **how: Any) -> Any:
        connection = connect(*where, **how)
        connection.set_trace_callback(counts.statement)
        return connection

    sqlite3.connect = told
    from loopwright.cli.main import main as product

    sys.argv = ["loopwright", *arguments]
    code: object = 0
    try:
        product()
    except SystemExit as end:
        code = end.code
    result.write_text(
        json.dumps({"statements": counts.statements, "git": counts.git, "programs": counts.programs})
    )
    return code if isinstance(code, int) else 0 if code is None else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
