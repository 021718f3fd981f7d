"""A calculator with tests, and the ways in which an agent hides that it broke it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.acceptance.cli.program import git
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.gates.bare_python import bare_python
from tests.acceptance.sandbox import task
from tests.loaded import Said

from loopwright.core.rows.model import Plan

CALC = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return 0\n\n\ndef mul(a, b):\n    return a * b\n"
RIGHT = f"{CALC}\n\ndef mul(a, b):\n    return a * b\n"
TESTS = """from calc import add


def test_add():
    assert add(2, 2) == 4


def test_zero():
    assert add(0, 0) == 0
"""
NOT_OURS = " ".join(
    f"-p no:{name}"
    for name in (
        "anyio",
        "cacheprovider",
        "hypothesispytest",
        "randomly",
        "timeout",
        "xdist",
        "xdist.looponfail",
    )
)
"""The tools of the tests that this Python has, too: loading them takes longer than all the rest of a small gate."""
PYTEST = f"python -B -m pytest {NOT_OURS}"
PYPROJECT = '[project]\nname = "calc"\nversion = "1"\ndependencies = []\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'
FILES = {
    "calc.py": CALC,
    "tests/test_calc.py": TESTS,
    "pyproject.toml": PYPROJECT,
    "Makefile": f"VERBOSE =\n\ntest:\n\t{PYTEST} $(VERBOSE)\n\nclean:\n\trm -rf build\n",
    "ci/check.sh": f"set -e\n{PYTEST}\n",
    ".gitignore": "__pycache__/\n.loopwright/\n",
}
WORKS = "python -B -c 'from calc import mul; assert mul(2, 3) == 6'"


def write(path: str, text: str) -> Mapping[str, Any]:
    """Return the step that writes a file."""
    return {"write": path, "text": text}


class Calculator(Workshop):
    """The project, one task, and what its agent does in each attempt."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.program.env["PATH"] = f"{bare_python(place / 'bare')}:{self.program.env['PATH']}"
        for name, text in FILES.items():
            file = self.repository / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "-m", "a calculator")

    def carry_out(
        self,
        *attempts: Sequence[Mapping[str, Any]],
        gate: str = PYTEST,
        flags: Sequence[str] = (),
        **more: Any,
    ) -> Said:
        """Let an agent add `mul`, attempt by attempt, and return what the program said."""
        self.play({"mul": [list(steps) for steps in attempts]})
        gates = [{"name": "tests", "run": gate}]
        plan = self.plan("calculator", [task("mul", WORKS, **more)], gates=gates)
        return self.run(plan, *flags)

    def receipt(self) -> dict[str, Any]:
        """Return the receipt of the newest plan, after it was verified as a stranger would."""
        path = self.place / "receipt.json"
        self("receipt", "show", self.rows(Plan)[-1].id, "--output", str(path))
        verified = self("receipt", "verify", str(path))
        assert verified.code == 0, verified.out + verified.err
        return dict(json.loads(path.read_text()))

    def gate_files(self, n: int = 1) -> dict[str, Any]:
        """Return what is on the record of the gate's files in one attempt."""
        facts = self.attempts("mul")[n - 1].gate_files
        assert facts is not None
        return asdict(facts)
