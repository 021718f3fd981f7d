"""Files that steer the gate among other things."""

import json

from tests.cases import each_case

from loopwright.core.integrity.makefiles import file_targets, make_steering
from loopwright.core.integrity.mixed_files import only_redirects, pinned_text, steers_differently

TOML = """\
[project]
name = "calc" # a comment
dependencies = []

[tool.pytest.ini_options]
addopts = "-q"

[tool.poetry]
packages = []

[[tool.mypy.overrides]]
module = "x"
"""
NEW_DEPENDENCY = TOML.replace("dependencies = []", 'dependencies = ["requests"]')
NEW_OPTIONS = TOML.replace('"-q"', '"-q --ignore tests"')
BOTH = NEW_DEPENDENCY.replace('"-q"', '"-q --ignore tests"')


def steers(path: str, before: str | None, after: str | None, *commands: str) -> bool:
    return steers_differently(path, before, after, commands)


@each_case(
    ("after", "differs"),
    [
        (NEW_DEPENDENCY, False),
        (TOML.replace("packages = []", "packages = [1]"), False),
        (NEW_OPTIONS, True),
        (TOML.replace('module = "x"', 'module = "y"'), True),
        (TOML + "\n[tool.ruff]\nselect = []\n", True),
        (TOML + '\n[project.entry-points.pytest11]\nx = "x"\n', True),
        ("not [ toml", True),
        (None, True),
    ],
)
def test_pyproject_steers_by_the_tables_of_its_tools(after: str | None, differs: bool) -> None:
    assert steers("pyproject.toml", TOML, after) is differs


def test_a_new_pyproject_steers_only_if_it_has_such_tables() -> None:
    assert not steers("pyproject.toml", None, '[project]\nname = "x"\n')
    assert steers("pyproject.toml", None, TOML)
    assert not steers("pyproject.toml", '[project]\nname = "x"\n', None)


def test_tools_in_an_odd_shape_are_not_mistaken() -> None:
    assert not steers("pyproject.toml", "tool = 1\n", "tool = 2\n")
    assert not steers("Cargo.toml", "[workspace]\nx = 1\n", "[workspace]\nx = 2\n")
    assert steers("Cargo.toml", "[lib]\nx = 1\n", "[lib]\ntest = false\n")


def test_the_old_settings_are_put_beside_the_new_dependency() -> None:
    text = pinned_text("pyproject.toml", TOML, BOTH)
    assert text is not None
    assert '"requests"' in text
    assert "--ignore" not in text
    assert not steers("pyproject.toml", TOML, text)


def test_settings_that_were_not_there_are_taken_out() -> None:
    assert (
        pinned_text("pyproject.toml", None, TOML)
        == TOML.split("[tool.pytest")[0] + "[tool.poetry]\npackages = []\n\n"
    )


def test_where_the_parts_cannot_be_told_apart_the_file_is_what_it_was() -> None:
    dotted = '[tool]\npytest.ini_options.addopts = "-q"\n'
    assert pinned_text("pyproject.toml", dotted, dotted.replace("-q", "-x")) == dotted
    assert pinned_text("pyproject.toml", TOML, "not [ toml") == TOML
    assert pinned_text("package.json", "{}", "not json") == "{}"
    assert pinned_text("package.json", "[]", "{}") == "[]"
    assert pinned_text("Makefile", "a:\n", "b:\n") == "a:\n"
    assert pinned_text("Makefile", None, "b:\n") is None
    assert pinned_text("pyproject.toml", TOML, None) == TOML
    row = TOML.replace('addopts = "-q"', "addopts = [\n[1, 2]\n]")
    assert pinned_text("pyproject.toml", row, NEW_DEPENDENCY) == row, "a row of a list looks like a header"
    in_text = '[project]\nx = """\n[tool.pytest]\n"""\n'
    assert pinned_text("pyproject.toml", TOML, in_text) == TOML


PACKAGE = {"scripts": {"test": "jest", "build": "tsc"}, "dependencies": {}, "jest": {"bail": 1}}


def package(**changes: object) -> str:
    return json.dumps({**PACKAGE, **changes})


@each_case(
    ("changes", "differs"),
    [
        ({"dependencies": {"left-pad": "1"}}, False),
        ({"scripts": {**PACKAGE["scripts"], "docs": "typedoc"}}, False),
        ({"scripts": {**PACKAGE["scripts"], "test": "true"}}, True),
        ({"scripts": {**PACKAGE["scripts"], "pretest": "rm -r test"}}, True),
        ({"scripts": {**PACKAGE["scripts"], "postinstall": "x"}}, True),
        ({"scripts": {"test": "jest"}}, True),
        ({"scripts": []}, True),
        ({"jest": {"testMatch": []}}, True),
        ({"mocha": {}}, True),
    ],
)
def test_package_json_steers_by_its_scripts_and_its_runners_settings(
    changes: dict[str, object], differs: bool
) -> None:
    assert steers("package.json", package(), package(**changes)) is differs


@each_case("name", ["babel", "stylelint", "prettier", "xo", "standard", "wireit"])
def test_settings_of_tools_in_package_json_steer(name: str) -> None:
    assert steers("package.json", package(**{name: {"a": 1}}), package(**{name: {"a": 2}}))


def test_the_tasks_of_pixi_in_pyproject_steer() -> None:
    text = '[tool.pixi.tasks]\ntest = "pytest"\n\n[tool.pixi.dependencies]\npython = "*"\n'
    assert steers("pyproject.toml", text, text.replace("pytest", "true"))
    assert not steers("pyproject.toml", text, text.replace('"*"', '">=3.11"'))


def test_old_scripts_are_put_beside_new_dependencies() -> None:
    after = package(dependencies={"left-pad": "1"}, scripts={"test": "true", "docs": "typedoc"})
    text = pinned_text("package.json", package(), after)
    assert text is not None
    assert json.loads(text) == {
        "dependencies": {"left-pad": "1"},
        "jest": {"bail": 1},
        "scripts": {"test": "jest", "build": "tsc", "docs": "typedoc"},
    }
    assert pinned_text("package.json", None, '{"jest": {}, "name": "x"}') == '{\n  "name": "x"\n}\n'


INI = "[metadata]\nname = x\n\n[tool:pytest]\naddopts = -q\n"


def test_setup_cfg_steers_by_the_sections_of_its_tools() -> None:
    assert not steers("setup.cfg", INI, INI.replace("name = x", "name = y"))
    assert steers("setup.cfg", INI, INI.replace("-q", "-q --ignore tests"))
    assert steers("setup.cfg", INI, "no section\n")
    both = INI.replace("-q", "--co").replace("name = x", "name = y")
    assert pinned_text("setup.cfg", INI, both) == INI.replace("name = x", "name = y")


MAKE = """\
PYTHON = python
.PHONY: test
# a comment

test: build | folder ; echo x
\t$(PYTHON) -m pytest
\t$(MAKE) -C . lint

build:
\tcc a.c \\
\t  b.c

lint: # only this
\truff check

folder:
\tmkdir x

docs: test
\techo docs
"""


@each_case(
    ("change", "differs"),
    [
        (("echo docs", "echo more"), False),
        (("# a comment", "# another"), False),
        (("docs: test", "docs: test\n\nnew:\n\ttrue\n\nold: test"), False),
        (("PYTHON = python", "PYTHON = true"), True),
        (("-m pytest", "-m pytest || true"), True),
        (("ruff check", "true"), True),
        (("b.c", "c.c"), True),
        (("mkdir x", "mkdir y"), True),
        (("docs: test", "SHELL = /bin/true\ndocs: test"), True),
        (("docs: test", ".IGNORE:\n\ndocs: test"), True),
        (("docs: test", "%: \n\ttrue\ndocs: test"), True),
        (("docs: test", "include other.mk\ndocs: test"), True),
        (("docs: test", "ifdef X\ntest:\n\ttrue\nendif\ndocs: test"), True),
    ],
)
def test_a_makefile_steers_by_what_the_gate_reaches(change: tuple[str, str], differs: bool) -> None:
    assert change[0] in MAKE
    assert steers("Makefile", MAKE, MAKE.replace(*change), "make -s test X=1") is differs


FIRST = ".PHONY: ci\n\n.c.o:\n\tcc $<\n\nci: unit\n\tpytest\n\nunit:\n\tsh u.sh\n\nother:\n\techo 1\n"


@each_case(
    ("command", "change", "differs"),
    [
        ("make", ("pytest", "true"), True),
        ("make", ("u.sh", "v.sh"), True),
        ("make", ("ci: unit", "quick:\n\ttrue\n\nci: unit"), True),
        ("make", ("echo 1", "echo 2"), False),
        ("cd x && make -k", ("pytest", "true"), True),
        ("make -j 4", ("pytest", "true"), True),
        ("make -j4 -l 2.5", ("pytest", "true"), True),
        ("make -j other", ("echo 1", "echo 2"), True),
        ("make -j other", ("pytest", "true"), False),
        ("make -C other", ("pytest", "true"), True),
        ("make -C other", ("echo 1", "echo 2"), False),
        ("make -sC . unit", ("u.sh", "v.sh"), True),
        ("make -sC . unit", ("pytest", "true"), False),
        ("make -Cx unit", ("pytest", "true"), False),
        ("make --directory x --jobs 2", ("pytest", "true"), True),
        ("make -f Makefile -I other", ("pytest", "true"), True),
        ("make other; make", ("pytest", "true"), True),
        ("make other", ("echo 1", "$(MAKE)"), True),
        ("./gate", ("pytest", "true"), False),
    ],
)
def test_without_a_goal_a_makefile_steers_by_its_first_target(
    command: str, change: tuple[str, str], differs: bool
) -> None:
    assert change[0] in FIRST
    assert steers("Makefile", FIRST, FIRST.replace(*change), command) is differs


@each_case("said", [".DEFAULT_GOAL := other", ".DEFAULT_GOAL=other", "include rules.mk"])
def test_a_makefile_may_say_what_is_made_without_a_goal(said: str) -> None:
    text = f"{said}\n{FIRST}"
    assert steers("Makefile", text, text.replace("echo 1", "echo 2"), "make")
    assert not steers("Makefile", text, text.replace("echo 1", "echo 2"), "make ci")


def test_a_target_that_a_call_without_a_goal_reaches_counts() -> None:
    text = FIRST.replace("echo 1", "$(MAKE)")
    assert steers("Makefile", text, text.replace("pytest", "true"), "make other")


def test_without_a_goal_the_usual_ones_count_and_a_variable_hides_where_it_leads() -> None:
    assert steers("Makefile", MAKE, MAKE.replace("-m pytest", "-m x"), "./gate")
    hidden = "test: $(NEEDS)\n\nother:\n\techo 1\n"
    assert steers("Makefile", hidden, hidden.replace("echo 1", "echo 2"), "make test")
    quoted = make_steering("a:\n\tx\n\nb:\n\ty\n", ["sh -c 'make a' x"])
    assert quoted == ("", "a:", "\tx"), "the call itself stands in quotes"


@each_case(
    ("before", "after"),
    [
        ({"name": "calc"}, {"name": "tiny-expect", "exports": {".": "./lib/e.js"}}),
        ({}, {"name": "tiny-expect", "exports": "./lib/e.js"}),
        ({"imports": {"#sut": "./calc.js"}}, {"imports": {"#sut": "./lib/sut.js"}}),
        ({"exports": "./calc.js"}, {"exports": {".": "./lib/sut.js"}}),
        ({"exports": {"import": "./a.mjs"}}, {"exports": {"import": "./b.mjs"}}),
    ],
)
def test_what_a_package_leads_others_to_is_as_it_was(before: object, after: object) -> None:
    old, new = json.dumps(before), json.dumps(after)
    assert steers_differently("package.json", old, new, ())
    text = pinned_text("package.json", old, new)
    assert text is not None
    assert not steers_differently("package.json", old, text, ())


@each_case(
    ("before", "after"),
    [
        ({"name": "calc"}, {"name": "calc", "exports": {".": "./calc.js"}}),
        (
            {"name": "calc", "exports": "./a.js"},
            {"name": "calc", "exports": {".": "./a.js", "./mul": "./m.js"}},
        ),
        ({"imports": {"#a": "./a.js"}}, {"imports": {"#a": "./a.js", "#b": "./b.js"}}),
        ({}, {"name": "calc", "version": "1"}),
        ({"name": "calc"}, {"name": "calculator"}),
    ],
)
def test_a_package_that_leads_to_more_than_before_changes_nothing_for_its_tests(
    before: object, after: object
) -> None:
    assert not steers_differently("package.json", json.dumps(before), json.dumps(after), ())


GO = "module x\n\ngo 1.22\n\nrequire github.com/stretchr/testify v1.9.0\n"
GO_MORE = GO.replace(
    "require github.com/stretchr/testify v1.9.0\n",
    "require (\n\tgithub.com/stretchr/testify v1.9.0\n\tgithub.com/a/b v1.0.0\n)\n",
)


def test_what_go_takes_instead_of_a_module_is_as_it_was_beside_new_requirements() -> None:
    for line in ("replace github.com/stretchr/testify => ./fake\n", "replace (\n\ta/b => ./fake\n)\n"):
        assert steers_differently("go.mod", GO, GO_MORE + line, ())
        text = pinned_text("go.mod", GO, GO_MORE + line)
        assert text is not None
        assert "github.com/a/b v1.0.0" in text
        assert "./fake" not in text
    assert not steers_differently("go.mod", GO, GO_MORE, ())
    work = "go 1.22\n\nuse (\n\t./a\n\n\t./b\n)\n"
    assert steers_differently("go.work", work, work.replace("./b", "./c"), ())
    assert pinned_text("go.work", work, work.replace("./b", "./c")) == "go 1.22\n\nuse ./a\nuse ./b\n"


def test_what_cargo_takes_instead_of_a_crate_steers() -> None:
    patched = '[package]\nname = "x"\n\n[patch.crates-io]\nproptest = { path = "fake" }\n'
    assert steers_differently("Cargo.toml", '[package]\nname = "x"\n', patched, ())
    text = pinned_text("Cargo.toml", '[package]\nname = "x"\n', patched)
    assert text is not None
    assert "patch" not in text


@each_case(
    ("path", "before", "after"),
    [
        ("requirements.txt", "pytest==8\n", "./vendored/pytest\n"),
        ("requirements/dev.txt", "pytest\n", "-e ./pytest\n"),
        ("constraints.txt", "", "pytest @ file:///x\n"),
        ("dev-requirements.txt", "pytest\n", "--extra-index-url https://host\npytest\n"),
        ("package.json", "{}", '{"devDependencies": {"chai": "file:./fake"}}'),
        ("package.json", "{}", '{"overrides": {"chai": {"deep-eql": "./fake"}}}'),
        ("pyproject.toml", "", '[tool.uv.sources]\npytest = { path = "fake" }\n'),
        ("pyproject.toml", "", '[project]\ndependencies = ["pytest @ file:///x"]\n'),
        ("pyproject.toml", "", '[tool.poetry.group.dev.dependencies]\npytest = { path = "fake" }\n'),
    ],
)
def test_a_package_from_elsewhere_is_named_and_nothing_is_put_back(
    path: str, before: str, after: str
) -> None:
    assert steers_differently(path, before, after, ())
    assert only_redirects(path, before, after, ())


@each_case(
    ("path", "before", "after"),
    [
        ("requirements.txt", "pytest==8\n", "pytest==8.1  # newer\nrequests>=2\n"),
        ("requirements.txt", "-e .\n", "-e .\nrequests\n"),
        ("package.json", "{}", '{"dependencies": {"left-pad": "^1.0.0"}}'),
        ("pyproject.toml", "", '[project]\ndependencies = ["requests>=2"]\n'),
        ("pyproject.toml", "", '[tool.poetry.dependencies]\nrequests = "^2"\n'),
    ],
)
def test_a_package_from_the_registry_is_no_change_of_what_judges(path: str, before: str, after: str) -> None:
    assert not steers_differently(path, before, after, ())


def test_a_target_that_is_made_however_the_tree_is_stays_so() -> None:
    text = ".PHONY: lint docs\n\nlint:\n\truff check\n\ndocs:\n\tmkdocs\n"
    assert steers_differently("Makefile", text, text.replace("lint docs", "docs"), ["make lint"])
    assert not steers_differently("Makefile", text, text.replace("lint docs", "lint"), ["make lint"])


def test_targets_without_that_word_are_files() -> None:
    text = ".PHONY: all\n\nall: lint unit\n\nlint:\n\truff\n\nunit: x\n\tpytest\n\nother:\n\ttrue\n\n%.o: %.c\n\tcc\n"
    assert file_targets(text, ["make all"]) == {"lint", "unit"}
    assert file_targets(text, ["make -C . other"]) == {"other"}
    assert file_targets("a: $(X)\n\ttrue\n\nb:\n\ttrue\n", ["make a"]) == {"a", "b"}, (
        "nobody knows where it leads"
    )
