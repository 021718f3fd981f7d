"""Which scripts a gate runs, and which these run in turn."""

import json
import shlex

from tests.cases import each_case

from loopwright.core.integrity.command_lines import calls_in
from loopwright.core.integrity.gate_scripts import (
    LARGEST,
    calls_make,
    first_looks,
    made_by,
    run_by,
    scripts_in,
)
from loopwright.core.values.policy import GateCommand


def command(text: str) -> GateCommand:
    return GateCommand(name="x", command=text)


@each_case(
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
        ("pip install git+https://host/tool#egg=tool && sh ci/run.sh", {"ci/run.sh"}),
        ("echo ';#' ;# it's the rest\nsh ci/run.sh", {"ci/run.sh"}),
        ("diff <(sh ci/run.sh) expected.txt", {"ci/run.sh"}),
    ],
)
def test_programs_that_run_others_are_seen_through(text: str, found: set[str]) -> None:
    assert scripts_in([command(text)]) == found


@each_case(
    ("text", "found"),
    [
        ("cd app && sh check.sh", {"app/check.sh"}),
        ("cd app; cd ../ci && ./all && cd .. && sh b.sh", {"ci/all", "b.sh"}),
        ("(cd app && sh a.sh); sh b.sh", {"app/a.sh", "b.sh"}),
        ("cd app\nsh a.sh  # it's the first\nsh b.sh", {"app/a.sh", "app/b.sh"}),
        ("cd app && \\\n  sh a.sh", {"app/a.sh"}),
        ('cd "$HERE" && sh a.sh', {"a.sh"}),
        ("cd - ; sh a.sh", {"a.sh"}),
        ("cd .. && sh a.sh", set()),
        ("sh -c './ci/check.sh'", {"ci/check.sh"}),
        ("bash -lc 'cd app && sh check.sh'", {"app/check.sh"}),
        ("timeout 9 bash -euo pipefail -c 'sh ci/a.sh && sh ci/b.sh'", {"ci/a.sh", "ci/b.sh"}),
        ("bash -eo pipefail ci/run.sh", {"ci/run.sh"}),
        ("cd app && sh -c \"bash -c './x.sh'\"", {"app/x.sh"}),
        ("sh -c", set()),
        (". ci/env.sh && pytest", {"ci/env.sh"}),
        ("source env.sh; cd app && . ./more.sh", {"env.sh", "app/more.sh"}),
        ("env -C app sh check.sh", {"app/check.sh"}),
        ("uv run --directory app ci/check.py", {"app/ci/check.py"}),
        ("uv --directory=app run python ci/check.py --directory src", {"app/ci/check.py"}),
        ("poetry -C app run python check.py", {"app/check.py"}),
        ("pdm run pytest -p no:x && sh a.sh", {"a.sh"}),
        ("make -C api -f rules/ci.make test", {"api/rules/ci.make"}),
        ("make -fci.make", {"ci.make"}),
        ("make -f Makefile", set()),
    ],
)
def test_where_a_command_goes_its_scripts_are_looked_for(text: str, found: set[str]) -> None:
    assert scripts_in([command(text)]) == found


@each_case(
    ("text", "found"),
    [
        ("cd web && npm test", "web/package.json"),
        ("npm --prefix web test", "web/package.json"),
        ("npm test --prefix=web", "web/package.json"),
        ("yarn --cwd web/app test", "web/app/package.json"),
        ("pnpm -C web test", "web/package.json"),
        ("make -C api test", "api/Makefile"),
        ("make -sC api", "api/Makefile"),
        ("make -Capi", "api/Makefile"),
        ("timeout 60 make test --directory api", "api/Makefile"),
        ("bash -lc 'cd api && make'", "api/Makefile"),
        ("cd app && docker compose run --rm tests", "app/compose.yaml"),
        ("docker build --target test .", "Dockerfile"),
        ("cd app && python -m tools.verify", "app/tools/verify.py"),
    ],
)
def test_what_says_what_a_command_runs_is_read_where_the_command_goes(text: str, found: str) -> None:
    assert found in first_looks([command(text)])


def test_what_a_makefile_or_package_json_of_a_folder_runs_lies_there() -> None:
    make = "test:\n\tsh all.sh\n"
    assert "api/all.sh" in run_by("api/Makefile", make, ["make -C api test"], [])
    assert "api/all.sh" in run_by("api/Makefile", make, ["sh -c 'make -C api test'"], [])
    package = json.dumps({"scripts": {"test": "node check.js"}})
    assert "web/check.js" in run_by("web/package.json", package, ["cd web && npm test"], [])


def test_a_script_that_goes_elsewhere_leads_to_what_lies_there() -> None:
    found = run_by("ci/all.sh", "cd app\nsh check.sh\n(cd web; ./e2e.sh)\n", [], [])
    assert {"app/check.sh", "app/web/e2e.sh", "web/e2e.sh"} <= found


def test_what_is_read_in_can_be_left_out() -> None:
    assert scripts_in([command(". ./.env; sh a.sh")], sourced=False) == {"a.sh"}


def test_what_has_to_be_read_is_only_what_may_run_something() -> None:
    assert first_looks([command("python -B -m pytest -q"), command("grep -q x y")]) == set()
    assert "tools/verify.py" in first_looks([command("python -B -m tools.verify")])
    assert "src/tools/verify/__main__.py" in first_looks([command("python3 -m tools.verify")])
    assert first_looks([], [command("python -m main")]) == set(), "it may be the work itself"
    assert "Makefile" in first_looks([command("cd x && true; cd .. && make test")])
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


@each_case(
    ("text", "path"),
    [
        ("just check", "justfile"),
        ("tox -e py311", "tox.ini"),
        ("python -m tox", "tox.ini"),
        ("nox -s tests", "noxfile.py"),
        ("task check", "Taskfile.yml"),
        ("pre-commit run --all-files", ".pre-commit-config.yaml"),
        ("inv check", "tasks.py"),
        ("cd app && just", "app/justfile"),
    ],
)
def test_what_a_task_runner_reads_is_looked_at(text: str, path: str) -> None:
    assert path in first_looks([command(text)])


@each_case(
    ("path", "text"),
    [
        ("justfile", "check:\n    @sh ci/all.sh\n"),
        ("tox.ini", "[testenv]\ncommands = sh ci/all.sh\n"),
        ("tox.ini", "[testenv]\ncommands =\n    pytest\n    sh ci/all.sh\n"),
        ("noxfile.py", 'def tests(session):\n    session.run("sh", "ci/all.sh", external=True)\n'),
        ("tasks.py", '@task\ndef check(c):\n    c.run("sh ci/all.sh")\n'),
        ("Taskfile.yml", "tasks:\n  check:\n    cmds:\n      - sh ci/all.sh\n"),
        ("Taskfile.yml", "tasks:\n  check:\n    cmds:\n      - cmd: sh ci/all.sh\n"),
        ("Taskfile.yml", "tasks:\n  check: sh ci/all.sh\n"),
        (".pre-commit-config.yaml", "      - id: all\n        entry: sh ci/all.sh\n"),
    ],
)
def test_scripts_are_followed_from_the_files_of_task_runners(path: str, text: str) -> None:
    assert "ci/all.sh" in run_by(path, text, ["x"], [])


def test_where_make_would_find_something_made_already_depends_on_the_folder() -> None:
    text = "lint:\n\truff check\n"
    assert made_by("Makefile", text, ["make lint"]) == {"lint"}
    assert made_by("app/Makefile", text, ["make -C app lint"]) == {"app/lint"}
    assert made_by("Makefile", text, ["ruff check"]) == set()
    assert made_by("ci/check.sh", text, ["make lint"]) == set()


def test_a_file_that_is_too_large_is_not_read() -> None:
    assert run_by("check.sh", "sh other.sh\n", ["sh check.sh"], []) == {"other.sh"}
    assert run_by("check.sh", "sh other.sh\n" + "#" * LARGEST, ["sh check.sh"], []) == frozenset()


@each_case(("command", "calls"), [("make test", True), ("cd a && make", True), ("pytest", False)])
def test_a_command_that_calls_make_is_known(command: str, calls: bool) -> None:
    assert calls_make([command]) is calls


def test_options_behind_two_dashes_do_not_move_a_command() -> None:
    assert [call.folder for call in calls_in("make -C a test")] == ["a"]
    assert [(call.words, call.folder) for call in calls_in("make -- -C a")] == [
        (("make", "--", "-C", "a"), "")
    ]


def test_shells_in_shells_are_read_to_a_certain_depth() -> None:
    command = "make test"
    for _ in range(3):
        command = f"sh -c {shlex.quote(command)}"
    assert ("make", "test") in [call.words for call in calls_in(command)]
    for _ in range(3):
        command = f"sh -c {shlex.quote(command)}"
    assert ("make", "test") not in [call.words for call in calls_in(command)]
