"""Which files steer a gate."""

from tests.cases import each_case

from loopwright.core.integrity.gate_files import (
    Kind,
    Rules,
    declared,
    is_named_like_a_library,
    is_restored_if_permitted,
    kind_of,
    takes_a_place,
)
from loopwright.core.integrity.gate_scripts import scripts_in
from loopwright.core.values.policy import GateCommand


def kind(path: str, *patterns: str, existed: bool = True, scripts: tuple[str, ...] = ()) -> Kind | None:
    return kind_of(path, Rules(patterns=patterns, scripts=frozenset(scripts)), existed=existed)


@each_case(
    "path",
    [
        "tests/test_app.py",
        "pkg/app_test.py",
        "tests/data/golden.json",
        "src/app.test.ts",
        "src/__tests__/app.js",
        "web/app.spec.jsx",
        "pkg/limits_test.go",
        "testdata/in.txt",
        "spec/models/user_spec.rb",
        "src/test/java/AppTest.java",
        "e2e/login.ts",
        "internal/testutil/assert.go",
        "src/test-helpers.ts",
        *("test.js", "calc-test.js", "calc_test.mjs", "test-calc.cjs", "lib/test.ts", "calc_test.ts"),
        *("spec/calcSpec.js", "specs/unit/calc-spec.ts", "features/login.feature", "features/steps/login.py"),
        *("CalcSpec.groovy", "app/CalcIT.java", "src/CalcTestCase.java", "spec/lib/CalcSpec.scala"),
        *("test_calc.cpp", "calc_test.c", "src/test_calc.c", "calc_test.cc", "lib/calc_test.rb"),
        *("fixtures/sums.json", "app/__fixtures__/a.js", "golden/out.txt", "golden-files/a.html"),
        *("data/snapshots/page.html", "goldens/x", "test_data/in.csv", "test-data/in.csv"),
    ],
)
def test_tests_are_known_by_name_or_folder(path: str) -> None:
    assert kind(path) is Kind.TEST


@each_case(
    "path",
    [
        "conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        "tox.ini",
        "sitecustomize.py",
        "hooks.pth",
        "jest.config.js",
        "vitest.config.mts",
        "jest.setup.ts",
        "src/setupTests.tsx",
        "__mocks__/axios.js",
        ".eslintrc.json",
        "tsconfig.build.json",
        "build/rules.mk",
        "node_modules/jest/index.js",
        "node_modules/jest/package.json",
        "__pycache__/calc.cpython-311.pyc",
        "x.egg-info/entry_points.txt",
        "x-1.dist-info/METADATA",
        "babel.config.js",
        ".babelrc",
        "bunfig.toml",
        ".mvn/maven.config",
        "gradle.properties",
        "spec/spec_helper.rb",
        "mise.toml",
        ".mise.local.toml",
        ".rubocop.yml",
        "web/.stylelintrc.json",
        "prettier.config.mjs",
        ".prettierignore",
        "phpstan.neon.dist",
        "psalm-baseline.xml",
        "rustfmt.toml",
        ".clang-tidy",
        ".swiftlint.yml",
        "config/detekt.yml",
        ".yamllint",
        ".shellcheckrc",
        "docker-compose.override.yml",
        *("ci/allowed.txt", ".ci/run", "ci/lib/rules.py"),
    ],
)
def test_configuration_plugins_and_what_takes_a_runners_place_steer_it(path: str) -> None:
    assert kind(path) is Kind.STEERING


@each_case(
    "path",
    [
        "pytest.py",
        "src/unittest/__init__.py",
        "pkg/_pytest/runner.py",
        "traceback.py",
        "src/inspect/__init__.py",
        "tests/re.py",
        "hypothesis.py",
        "tests/freezegun/__init__.py",
        "typing.py",
        "shutil.so",
        "tests/json.py",
        "subprocess/__init__.py",
    ],
)
def test_a_new_file_in_the_place_of_a_module_that_runners_load_steers(path: str) -> None:
    assert kind(path, existed=False) is Kind.STEERING
    assert kind(path, existed=True) is not Kind.STEERING, "the project has had one all along"


@each_case(
    "path",
    [
        *("pkg/traceback.py", "src/pkg/types.py", "app/responses.py"),
        *("src/queue/worker.py", "email/sender.py", "src/calendar.py", "__init__.py"),
    ],
)
def test_a_module_of_a_package_takes_nobodys_place(path: str) -> None:
    assert kind(path, existed=False) is None


@each_case("path", ["pyproject.toml", "web/package.json", "setup.cfg", "Makefile", "Cargo.toml"])
def test_some_files_steer_among_other_things(path: str) -> None:
    assert kind(path) is Kind.MIXED


@each_case(
    "path",
    [
        *("pom.xml", "build.gradle.kts", "setup.py", "gradle/test.gradle", "deno.json"),
        *("build.sbt", "project/plugins.sbt", "apps/web/project.json", "Earthfile"),
        *("loopwright.toml", "services/api/loopwright.toml"),
    ],
)
def test_of_some_files_no_part_can_be_told_apart(path: str) -> None:
    assert kind(path) is Kind.BUILD


@each_case(
    "path",
    [
        *("src/app.py", "README.md", "src/contest.py", "docs/testing.md", "latest.py", "src/latest.js"),
        *("src/snapshots/create.py", "fixtures/load.js", "src/features/login.tsx", "src/JobSpec.java"),
        *("src/openapi-spec.ts", "app/ci/pipeline.py", "Audit.java", "src/golden_ratio.py"),
    ],
)
def test_everything_else_steers_nothing(path: str) -> None:
    assert kind(path) is None


def test_a_project_adds_files_and_takes_out_others_and_the_last_pattern_decides() -> None:
    assert kind("rules/limit", "rules/") is Kind.STEERING
    assert kind("tests/data/x", "!tests/data/") is None
    assert kind("src/app.py", "rules/") is None
    assert kind("tests/test_a.py", "tests/") is Kind.TEST, "a test stays a test, and new ones are welcome"
    assert kind("rules/free/x", "rules/", "!rules/free") is None
    assert kind("rules/free/x", "!rules/free", "rules/") is Kind.STEERING


def test_what_a_command_runs_steers_it() -> None:
    assert kind("build/all", scripts=("build/all",)) is Kind.STEERING


def test_what_a_forge_reads_judges_nothing_here() -> None:
    for path in (".github/workflows/test.yml", ".github/ISSUE_TEMPLATE/bug.md"):
        assert kind(path) is kind(path, existed=False) is None
    assert kind("ci/allowed.d/mine.txt", existed=False) is Kind.STEERING, "a script may read the folder"


@each_case("path", ["checks/subprocess.py", "checks/json/__init__.py", "checks/hypothesis.py"])
def test_a_new_module_beside_a_script_of_the_gate_is_taken_before_the_real_one(path: str) -> None:
    assert kind(path, existed=False, scripts=("checks/run.py",)) is Kind.STEERING
    assert kind(path, existed=False, scripts=("checks/run.sh",)) is None, "only Python searches there"
    assert kind(path, existed=True, scripts=("checks/run.py",)) is None, "the project has had one all along"


def test_a_new_file_in_the_place_of_a_target_steers() -> None:
    rules = Rules(targets=frozenset({"lint", "app/check"}))
    for path in ("lint", "lint/a.txt", "app/check"):
        assert kind_of(path, rules, existed=False) is Kind.STEERING
        assert kind_of(path, rules, existed=True) is None
    assert kind_of("linter", rules, existed=False) is None
    assert takes_a_place("lint", rules)


def test_a_new_module_takes_a_place_unless_its_package_was_there_before() -> None:
    own = Rules(packages=frozenset({"src/pluggy"}))
    assert kind_of("src/pluggy/_hooks.py", own, existed=False) is None
    assert kind_of("src/pluggy/_hooks.py", Rules(), existed=False) is Kind.STEERING
    assert kind_of("mypy.py", own, existed=False) is Kind.STEERING
    assert [takes_a_place(path, own) for path in ("src/pluggy/_hooks.py", "mypy.py", "ci/new.py")] == [
        False,
        True,
        False,
    ]


def test_the_names_that_pytest_is_configured_with_make_a_file_a_test() -> None:
    rules = Rules(test_names=("check_*.py",))
    for existed in (True, False):
        assert kind_of("checks/check_a.py", rules, existed=existed) is Kind.TEST
        assert kind_of("checks/a.py", rules, existed=existed) is None


@each_case(
    ("path", "existed", "expected"),
    [
        ("vendor/github.com/stretchr/testify/assert/assertions.go", True, Kind.BUILD),
        ("vendor/github.com/stretchr/testify/assert/more.go", False, Kind.BUILD),
        ("third_party/json/parse.c", True, Kind.BUILD),
        ("vendor/github.com/some/library/new.go", False, None),
    ],
)
def test_a_library_that_was_taken_in_is_named_where_it_changes(
    path: str, existed: bool, expected: Kind | None
) -> None:
    assert kind(path, existed=existed) is expected


@each_case(
    ("command", "found"),
    [
        ("./ci/check.sh --fast", {"ci/check.sh"}),
        ("sh ci/check.sh", {"ci/check.sh"}),
        ("X=1 env bash -e ci/check.sh && node tools/lint.mjs src/a.js", {"ci/check.sh", "tools/lint.mjs"}),
        ("python -B -m pytest tests/test_a.py", set()),
        ("python3 -c 'print(1)' x.py", set()),
        ("cat out.txt | grep -q x", set()),
        ("/usr/bin/env python3 -B gate.py", {"gate.py"}),
        ("/usr/bin/true", set()),
        ("python3 ../outside.py", set()),
        ("python3 'unclosed", {"'unclosed"}),
        ("(sh a.sh; sh b.sh)", {"a.sh", "b.sh"}),
    ],
)
def test_the_scripts_of_a_gate_are_found_in_its_command(command: str, found: set[str]) -> None:
    assert scripts_in([GateCommand(name="x", command=command)]) == found


def test_what_a_tasks_acceptance_runs_may_be_the_work_itself() -> None:
    made = [GateCommand(name="x", command="python main.py && sh scripts/check_it.sh")]
    assert scripts_in([], made) == {"scripts/check_it.sh"}


def test_a_scope_declares_the_files_that_it_names() -> None:
    assert declared("tests/test_a.py", ["src/", "tests/"])
    assert declared("tests/test_a.py", ["**/test_*.py"])
    assert not declared("tests/test_a.py", ["src/"])
    assert not declared("tests/test_a.py", ["**", "*"]), "everything is no declaration"


@each_case(
    ("path", "shadows"),
    [
        ("json.py", True),
        ("src/hypothesis/__init__.py", True),
        ("lib/json.so", True),
        ("src/shop.py", False),
        ("json.txt", False),
    ],
)
def test_a_module_may_be_named_like_a_library(path: str, shadows: bool) -> None:
    assert is_named_like_a_library(path) is shadows


@each_case(
    "path, restored",
    [
        ("tests/test_a.py", True),
        ("tests/a.test.js", True),
        ("tests/conftest.py", False),
        ("pkg/a_test.go", False),
        ("tests/__snapshots__/a.snap", False),
    ],
)
def test_a_file_that_holds_only_tests_is_restored_even_if_it_may_change(path: str, restored: bool) -> None:
    assert is_restored_if_permitted(path) is restored
