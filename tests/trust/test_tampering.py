"""Whatever byte of the stored evidence is changed, verifying the receipt finds it."""

import asyncio
import json
import random
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.sandbox import Sandbox, task

from loopwright.core.receipts.verify import verify_receipt
from loopwright.core.values.errors import LoopwrightError
from loopwright.services.receipts.files import load_receipt
from loopwright.services.receipts.receipts import look_again

CHANGES = 2
"""In each of the five parts; a hundred in the long version."""
PARTS = ("receipt", "recordings", "git", "rows", "events")

ROWS = {
    "plans": ("title", "branch", "base_ref", "base_sha", "result_sha", "source_sha256", "policy"),
    "tasks": ("key", "title", "description", "landed_sha", "depends_on", "acceptance", "scope", "held_out"),
    "attempts": (
        "agent",
        "base_sha",
        "tip_sha",
        "candidate_sha",
        "candidate_tree",
        "verdict_id",
        "gate_files",
    ),
    "runs": (
        "agent",
        "permission_mode",
        "prompt_sha256",
        "template",
        "output_sha256",
        "files_sha256",
        "ended_by",
        "exit_code",
    ),
    "verdicts": ("tree", "gate_key", "verdict"),
    "reviews": ("agent", "patch_sha256", "candidate_sha", "summary", "findings", "reasons", "state"),
    "finishes": ("how", "source_sha", "target_sha", "commit_sha", "tree", "receipt_sha256"),
    "events": ("type", "actor", "payload", "prev_hash", "hash", "id"),
}
"""What of each table a receipt tells, or what chains it."""

LIVE = {"lock", "status.json", "keeper.log", "progress.json"}
"""What is written of a run only to say how it is going."""

KEYS = ("one", "two", "three")
TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n"
REPORT = '<testsuite name="s"><testcase name="a" classname="c"/></testsuite>'
WATCHED = f"python3 -B -m unittest -q test_it && echo '{REPORT}' > report.xml"

Undo = Callable[[], None]


@dataclass(frozen=True)
class Scene:
    """A verified plan with all its evidence, and something that changes one byte of it."""

    sandbox: Sandbox
    plan: str

    @property
    def receipt(self) -> Path:
        return self.sandbox.repository / ".loopwright" / "receipts" / f"{self.plan}.json"

    def agrees(self) -> tuple[bool, str]:
        """Verify as the command does, in this process: five hundred starts of it would take minutes."""
        try:
            receipt = load_receipt(self.receipt)
            facts = asyncio.run(look_again(receipt, self.sandbox.repository, self.receipt))
        except LoopwrightError as refused:
            return False, str(refused)
        found = verify_receipt(receipt, facts)
        return not found, "\n".join((*map(str, found), *facts.unchecked))

    def files(self, part: str) -> list[Path]:
        """Return the files that are evidence of one part."""
        runs, objects = self.sandbox.home / "runs", self.sandbox.repository / ".git" / "objects"
        match part:
            case "receipt":
                ended = sorted(self.receipt.parent.glob("finish_*.json"))
                return [self.receipt, self.receipt.with_suffix(".sh"), *ended]
            case "recordings":
                kept = [path for path in runs.rglob("*") if path.is_file() and path.name not in LIVE]
                beside = [self.sandbox.home / "patches", self.sandbox.home / "held_out"]
                return [*kept, *(path for folder in beside for path in folder.iterdir())]
            case "git":
                receipt = load_receipt(self.receipt)
                tips = [one.tip_sha for task in receipt.tasks for one in task.attempts if one.tip_sha]
                line = [receipt.plan.result_sha or "", *tips, f"^{receipt.plan.base_sha}"]
                named = self.sandbox.git("rev-list", "--objects", *line).splitlines()
                found = [objects / one[:2] / one[2:40] for one in named]
                return [path for path in found if path.exists()]
        raise AssertionError(part)

    def change_file(self, chance: random.Random, part: str) -> tuple[str, Undo]:
        path = chance.choice([one for one in sorted(self.files(part)) if one.stat().st_size])
        before, mode = path.read_bytes(), path.stat().st_mode
        at, after = _flipped(before, chance)
        while part == "git" and _says(after) == _says(before):
            at, after = _flipped(before, chance)
        path.chmod(0o600)
        path.write_bytes(after)

        def undo() -> None:
            path.write_bytes(before)
            path.chmod(mode)

        return f"{path} at {at}", undo

    def change_row(self, chance: random.Random, table: str) -> tuple[str, Undo]:
        with closing(sqlite3.connect(self.sandbox.home / "loopwright.db")) as database:
            # Events of the home or the project are no part of a plan's chain.
            where = "where plan is not null" if table == "events" else ""
            cells = [
                (row, column, value)
                for column in ROWS[table]
                for row, value in database.execute(f"select rowid, {column} from {table} {where}")
                if value not in (None, "", "{}", "[]")
            ]
            row, column, value = chance.choice(sorted(cells, key=str))
            self._set(database, table, column, row, _changed(value, chance))

        def undo() -> None:
            with closing(sqlite3.connect(self.sandbox.home / "loopwright.db")) as database:
                self._set(database, table, column, row, value)

        return f"{table}.{column} of row {row}: {value!r}", undo

    @staticmethod
    def _set(database: sqlite3.Connection, table: str, column: str, row: int, value: object) -> None:
        database.execute(f"update {table} set {column} = ? where rowid = ?", (value, row))
        database.commit()


def _flipped(before: bytes, chance: random.Random) -> tuple[int, bytes]:
    at = chance.randrange(len(before))
    return at, before[:at] + bytes([before[at] ^ (1 << chance.randrange(8))]) + before[at + 1 :]


def _says(packed: bytes) -> bytes | None:
    """Return the content of an object of git: some bits of how it is packed mean nothing."""
    try:
        return zlib.decompress(packed)
    except zlib.error:
        return None


def _changed(value: object, chance: random.Random) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    assert isinstance(value, str)
    if value[0] in "[{":
        return _changed_inside(value, chance)
    letters = [n for n, letter in enumerate(value) if letter.isalnum()]
    at = chance.choice(letters)
    other = chance.choice([one for one in "0123456789abcdef" if one != value[at].lower()])
    return value[:at] + other + value[at + 1 :]


def _changed_inside(text: str, chance: random.Random) -> str:
    """Change one fact of a JSON document; another name for one that is not set would be no other fact."""
    document = json.loads(text)
    places = list(_leaves(document))
    parent, key = chance.choice(places)
    parent[key] = _changed(parent[key], chance)
    return json.dumps(document, separators=(",", ":"))


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where the facts of a document are: what they are in, and under which key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from _leaves(inner)
        elif inner not in (None, ""):
            yield value, key


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    sandbox = Sandbox(tmp_path_factory.mktemp("tampering"))
    script = {
        "tasks": {
            key: [[{"say": f"I am at {key}."}, {"write": f"{key}.txt", "text": f"{key} is right\n"}]]
            for key in KEYS
        },
        "reviews": {
            "two": [[{"review": [{"file": "two.txt", "line": 1, "severity": "opinion", "text": "short"}]}]]
        },
    }
    stray = f"echo mine > {sandbox.repository}/stray.txt"
    script["tasks"]["three"].insert(
        0, [{"say": stray}, {"run": stray}, {"write": "three.txt", "text": "x\n"}]
    )
    sandbox.script.write_text(json.dumps(script))
    (sandbox.repository / "test_it.py").write_text(TEST)
    git(sandbox.repository, "add", "-A")
    git(sandbox.repository, "commit", "-q", "-m", "a test")
    (sandbox.place / "unseen.sh").write_text("grep -c right two.txt\n")
    unseen = {"name": "unseen", "run": "sh unseen.sh", "files": "unseen.sh", "hint": "look again"}
    tasks = [
        task("one", "cat one.txt && grep right one.txt", "seq 900000"),
        task("two", "cat two.txt && grep right two.txt", held_out=[unseen], scope=["two.txt"]),
        task("three", "cat three.txt && grep right three.txt"),
    ]
    gates = [{"name": "tests", "run": WATCHED, "junit": "report.xml"}]
    # A gate that is broken off because the branch moved is evidence of nothing.
    settings = {"review": {"mode": "always"}, "landing": {"parallel_gates": 1}}
    plan = sandbox.plan("evidence", tasks, gates=gates, settings=settings)
    said = sandbox.run(plan, "--finish", "squash")
    assert said.code == 0, said.out + said.err
    scene = Scene(sandbox, sandbox.newest_plan())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_HOME", str(sandbox.home))
        assert sandbox("receipt", "verify", str(scene.receipt)).code == 0
        yield scene
        agrees, out = scene.agrees()
    assert agrees, f"every change was taken back, so nothing but the changes was found: {out}"


# One test for all parts: each test process would carry the plan out for itself.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("changes", [CHANGES, pytest.param(100, marks=pytest.mark.long)])
def test_each_changed_byte_of_evidence_is_found(scene: Scene, changes: int) -> None:
    tables = {"rows": [one for one in ROWS if one != "events"], "events": ["events"]}
    missed = []
    for part in PARTS:
        chance = random.Random(f"tampering {part} {changes}")
        for _ in range(changes):
            if part in tables:
                what, undo = scene.change_row(chance, chance.choice(tables[part]))
            else:
                what, undo = scene.change_file(chance, part)
            try:
                agrees, out = scene.agrees()
            finally:
                undo()
            if agrees:
                missed.append(f"{part}: {what}\n{out}")
    assert not missed, f"{len(missed)} changes were not noticed:\n" + "\n".join(missed[:5])
