"""Which scripts a gate runs, and which these run in turn."""

import json

import pytest

from loopwright.core.gate_scripts import first_looks, new_scripts, run_by, scripts_in
from loopwright.core.policy import GateCommand


def command(text: str) -> GateCommand:
    return GateCommand(name="x", command=text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("timeout 60 sh ci/run.sh", {"ci/run.sh"}),
        ("timeout -k 5s 1.5m ./ci/run.sh", {"ci/run.sh"}),
        ("env -i sh ci/run.sh", {"ci/run.sh"}),
        ("uv run ci/check.py", {"ci/check.py"}),
        ("uv run --frozen python ci/check.py --all", {"ci/check.py"}),
        ("poetry run python ci/check.py", {"ci/check.py"}),
        ("poetry run pytest", set()),
        ("uv pip install x.py", set()),
        ("npx tsx tools/check.ts", {"tools/check.ts"}),
        ("npm exec tsx tools/check.ts", {"tools/check.ts"}),
        ("deno run -A tools/check.ts", {"tools/check.ts"}),
        ("uv run a.py && sh b.sh", {"a.py", "b.sh"}),
        ("python -m py_compile calc.py", set()),
        ("grep -q x out.txt", set()),
    ],
)
def test_programs_that_run_others_are_seen_through(text: str, found: set[str]) -> None:
    assert scripts_in([command(text)]) == found


def test_what_has_to_be_read_is_only_what_may_run_something() -> None:
    assert first_looks([command("python -B -m pytest -q"), command("grep -q x y")]) == set()
    assert "tools/verify.py" in first_looks([command("python -B -m tools.verify")])
    assert "src/tools/verify/__main__.py" in first_looks([command("python3 -m tools.verify")])
    assert first_looks([], [command("python -m main")]) == set(), "it may be the work itself"
    assert "Makefile" in first_looks([command("cd x && make test")])
    assert first_looks([], [command("npm run check")]) == {"package.json"}


def test_a_makefile_leads_to_the_scripts_of_the_targets_that_are_asked_for() -> None:
    text = "check: lint\n\t@sh ci/all.sh\n\nlint:\n\tpython -m tools.lint\n\nrun:\n\tsh start.sh\n"
    assert {"ci/all.sh", "tools/lint.py"} <= run_by("Makefile", text, ["make check"], [])
    assert "start.sh" not in run_by("Makefile", text, ["make check"], [])
    assert run_by("Makefile", text, ["pytest"], []) == set()
    assert run_by("Makefile", text, [], ["make run"]) == set(), "acceptance may run the work itself"


def test_package_json_leads_to_the_scripts_that_are_called() -> None:
    scripts = {
        "test": "npm run unit && node scripts/e2e.js",
        "pretest": "sh ci/a.sh",
        "unit": "node u.js",
        "dev": "node d.js",
    }
    text = json.dumps({"scripts": scripts})
    assert run_by("package.json", text, ["npm test"], []) == {"scripts/e2e.js", "ci/a.sh", "u.js"}
    assert run_by("package.json", text, ["npm t"], []) == {"scripts/e2e.js", "ci/a.sh", "u.js"}
    assert run_by("package.json", text, ["npm run dev"], []) == {"d.js"}
    assert run_by("package.json", "[", ["npm test"], []) == set()
    assert run_by("package.json", '{"scripts": 3}', ["npm test"], []) == set()


def test_a_shell_script_leads_to_others_from_the_top_or_from_beside_it() -> None:
    assert run_by("ci/all.sh", "set -e\n. lib.sh\nsh ci/a.sh\n", [], []) == {
        *("lib.sh", "ci/lib.sh", "ci/a.sh", "ci/ci/a.sh")
    }


def test_a_script_leads_to_what_it_imports_from_folders_for_checking_alone() -> None:
    python = "import calc\nfrom tools import rules\nimport sums\n"
    found = run_by("tools/verify.py", python, [], [])
    assert {"tools/rules.py", "tools/sums.py"} <= found
    assert "calc.py" not in found, "that is the work"
    assert run_by("verify.py", "import calc\n", [], []) == set()
    assert "ci/lib.js" in run_by(
        "ci/check.js", "const lib = require('./lib');\nrequire('../calc');\n", [], []
    )
    assert "calc.js" not in run_by("ci/check.js", "require('../calc');\n", [], [])


def test_a_script_of_package_json_that_is_new_and_called_is_told() -> None:
    old, new = ({"scripts": {"test": "x"}}, {"scripts": {"test": "x", "check": "true", "other": "true"}})
    assert new_scripts(json.dumps(old), json.dumps(new), ["npm run check"]) == ["check"]
    assert new_scripts(None, json.dumps(new), ["npm test"]) == ["test"]
    assert new_scripts(json.dumps(new), json.dumps(new), ["npm run check"]) == []
    assert new_scripts("{", json.dumps(new), ["npm run check"]) == []
