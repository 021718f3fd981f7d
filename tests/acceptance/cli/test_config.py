"""`loopwright config`: every setting with its origin, and the schemas."""

from pathlib import Path

import pytest
from tests.acceptance.cli.program import Program, repository
from tests.acceptance.sandbox import Sandbox, task

from loopwright.adapters.store.sql import SqlStore
from loopwright.config.settings import settings
from loopwright.core.rows.model import Plan


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.capability("C002")
def test_every_setting_is_shown_with_the_place_that_set_it(program: Program, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"loopwright.toml": 'parallel = 7\nmodel = "small"\n'})
    mine = program.user / ".config" / "loopwright" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text("max_attempts = 9\n")
    said = program("config", "show", "--json", cwd=project, env={"LOOPWRIGHT_MODEL": "large"})
    shown = {one["key"]: one for one in said.document["settings"]}
    assert said.code == 0
    assert list(shown) == list(settings())
    assert (shown["parallel"]["value"], shown["parallel"]["origin"]) == (7, "loopwright.toml:1")
    assert (shown["model"]["value"], shown["model"]["origin"]) == ("large", "environment LOOPWRIGHT_MODEL")
    assert shown["max_attempts"]["origin"] == "~/.config/loopwright/config.toml:1"
    assert shown["agent"]["origin"] == "default"
    assert all(one["description"] for one in shown.values())


def test_the_settings_are_readable_lines_for_people(program: Program, tmp_path: Path) -> None:
    said = program("config", "show", cwd=tmp_path)
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.out.splitlines()}
    assert said.code == 0
    assert list(lines) == list(settings())
    assert [part.strip() for part in lines["agent"]] == ['"claude"', "default"]
    assert lines["home"] == [f'"{program.home}"', "environment LOOPWRIGHT_HOME"]


def test_the_password_of_a_database_is_not_shown(program: Program, tmp_path: Path) -> None:
    env = {"LOOPWRIGHT_DATABASE": "postgresql://me:hush-hush@localhost/loops"}
    said = program("config", "show", cwd=tmp_path, env=env)
    assert "postgresql://me:***@localhost/loops" in said.out
    assert "hush-hush" not in said.out + said.err


def test_a_table_of_a_loop_whose_source_is_not_there_is_named(program: Program, tmp_path: Path) -> None:
    text = 'parallel = 2\n\n[loops."plans/nigthly.yaml"]\nparallel = 1\n\n[loops."./plans/"]\nparallel = 1\n'
    files = {"loopwright.toml": text, "plans/nightly.yaml": "title: x\n"}
    project = repository(tmp_path / "project", files)
    said = program("config", "check", "--json", cwd=project)
    assert said.code == 0
    [note] = said.document["notes"]
    assert note.startswith('loopwright.toml:3: there is no work source "plans/nigthly.yaml"')
    assert '(did you mean "plans/nightly.yaml"?)' in note
    assert note in " ".join(program("config", "check", cwd=project).out.split())


def test_every_command_reads_the_committed_settings_unless_it_is_given_a_file(sandbox: Sandbox) -> None:
    project = sandbox.repository
    (project / "loopwright.toml").write_text("max_attempts = 4\n")
    sandbox.git("add", ".")
    sandbox.git("commit", "-qm", "settings")
    (project / "loopwright.toml").write_text("max_attempts = 5\n")
    sandbox.play({"one": [[{"write": "one", "text": "1\n"}]]})
    plan = str(sandbox.plan("one", [task("one", "test -s one")]))
    said = "loopwright.toml has uncommitted changes; commit them or pass --settings FILE"
    calls = (
        ("config", "show"),
        ("config", "check"),
        ("doctor",),
        ("plan", "check", plan, "--no-run"),
        ("run", plan),
    )
    for call in calls:
        assert said in " ".join(sandbox(*call).out.split()), call
    given = ("--settings", "loopwright.toml")
    for call in (*calls[:-1], ("run", plan, "--new")):
        assert said not in " ".join(sandbox(*call, *given).out.split()), call

    def value(*more: str) -> tuple[object, str]:
        shown = sandbox("config", "show", "--json", *more).document["settings"]
        return next((one["value"], one["origin"]) for one in shown if one["key"] == "max_attempts")

    assert value() == (4, "loopwright.toml:1")
    (project / "other.toml").write_text("\nmax_attempts = 6\n")
    assert value("--settings", "other.toml") == (6, "other.toml:2")
    store = SqlStore.open(sandbox.home / "loopwright.db", create=False)
    plans = store.read_sync(lambda tx: tx.find(Plan, order_by=("created_at",)))
    store.close_sync()
    assert [one.policy.max_attempts for one in plans] == [4, 5]
    refused = sandbox("config", "check", "--settings", "nowhere.toml")
    assert (refused.code, "nowhere.toml cannot be read" in refused.err) == (2, True)


@pytest.mark.capability("C004")
def test_a_wrong_setting_is_one_error_that_names_its_line(program: Program, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"loopwright.toml": "parallel = 2\nmax_atempts = 3\n"})
    said = program("config", "show", cwd=project)
    assert said.code == 2
    assert 'loopwright.toml:2: max_atempts: unknown setting (did you mean "max_attempts"?)' in said.err
    assert "to do:" in said.err
    assert program("config", "show", "--json", cwd=project).document["error"]["code"] == "settings_wrong"


@pytest.mark.parametrize(
    ("what", "title", "has_tasks", "has_home"),
    [
        ("config", "a project's loopwright.toml", False, False),
        ("user", "your own config.toml", False, True),
        ("plan", "a plan", True, False),
    ],
)
def test_the_published_schemas_can_be_printed(
    program: Program, tmp_path: Path, what: str, title: str, has_tasks: bool, has_home: bool
) -> None:
    said = program("config", "schema", what, cwd=tmp_path)
    schema = said.document
    assert said.code == 0
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert title in schema["title"]
    assert schema["$id"].startswith("urn:loopwright:schema:")
    assert ("tasks" in schema["properties"], "home" in schema["properties"]) == (has_tasks, has_home)


def test_an_unknown_schema_is_refused_with_the_known_ones(program: Program, tmp_path: Path) -> None:
    said = program("config", "schema", "loop", cwd=tmp_path)
    assert said.code == 2
    assert "config" in said.err
    assert "plan" in said.err


@pytest.mark.parametrize("columns", [80, 40])
def test_a_long_path_does_not_tear_the_lines_of_other_settings(sandbox: Sandbox, columns: int) -> None:
    sandbox.program.env["LOOPWRIGHT_HOME"] = str(sandbox.place / ("long" * 20))
    lines = sandbox.on_terminal("config", "show", columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    row = next(n for n, line in enumerate(lines) if line.startswith("  max_attempts "))
    told = lines[row] if columns == 80 else " ".join(lines[row : row + 2])
    assert told.split() == ["max_attempts", "3", "default"]
