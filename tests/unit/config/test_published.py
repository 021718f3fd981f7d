"""What is made from the settings is up to date: documentation, schemas, the commented file."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args, get_type_hints

import jsonschema
import pytest
from tests.cases import each_case
from tests.unit.config.published import ROOT, main, published
from tests.unit.config.test_precedence import SAMPLES, as_tree

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.cli.commands.maintain.config import schema
from loopwright.config.layers import Level, check_values, from_toml, loop_from_toml
from loopwright.config.publish import commented_toml, configuration_schema, toml_value
from loopwright.config.resolve import resolve
from loopwright.config.settings import settings
from loopwright.core.receipts.schemas import document_schemas
from loopwright.core.rows.loop_files import LOOP_FILES


@pytest.mark.capability("C006")
@each_case("path", published(), ids=lambda path: path.name)
def test_a_published_file_says_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == published()[path], "run `make docs`"


def test_checking_the_published_files_notices_a_stale_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "schemas" / "new.json"
    old.write_text("old\n")
    files = {old: "right\n", new: "new\n"}
    assert main(["--check"], files) == 1
    assert "old.json, new.json" in capsys.readouterr().err
    assert old.read_text() == "old\n"
    assert main([], files) == 0
    assert (old.read_text(), new.read_text()) == ("right\n", "new\n")
    assert main(["--check"], files) == 0


@pytest.mark.capability("C006")
@each_case("name", ["project", "user", *source_schemas(), *document_schemas(), *LOOP_FILES])
def test_a_schema_is_valid_and_ships_with_the_package(name: str) -> None:
    schema = json.loads((files("loopwright") / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.capability("C006")
def test_every_shipped_schema_has_its_own_id() -> None:
    shipped = [one for one in (files("loopwright") / "schemas").iterdir() if one.name.endswith(".json")]
    ids = {one.name: json.loads(one.read_text(encoding="utf-8"))["$id"] for one in shipped}
    assert ids == {name: f"urn:loopwright:schema:{name.removesuffix('.schema.json')}" for name in ids}


def test_every_published_schema_can_be_printed() -> None:
    (choices, *_) = get_args(get_type_hints(schema, include_extras=True)["what"])
    assert sorted(get_args(choices)) == sorted(
        ["config", "user", *source_schemas(), *document_schemas(), *LOOP_FILES]
    )


@each_case("key", SAMPLES)
def test_the_schema_accepts_what_the_program_accepts(key: str) -> None:
    validator = jsonschema.Draft202012Validator(configuration_schema(machine=True))
    for value in SAMPLES[key]:
        tree = as_tree(key, value)
        assert check_values(tree, Level.USER)[1] == ()
        validator.validate(tree)


@pytest.mark.capability("C003")
@each_case(
    "text",
    [
        'agnt = "x"', 'home = "/x"', "parallel = 0", '[limits]\nhard = "soon"', '[limits]\nhrd = 1', 'caches = "red"',
        '[[gates]]\nname = "x"', 'gates = [{run = "x", tmeout = 3}]', 'environment = ["A B"]', "max_cost = -1",
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_program_refuses(text: str) -> None:
    tree = tomllib.loads(text)
    assert check_values(tree, Level.PROJECT)[1] != ()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree, configuration_schema(machine=False), jsonschema.Draft202012Validator)


def test_the_examples_in_the_documentation_work() -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    texts = [path.read_text(encoding="utf-8") for path in pages]
    # What begins with `[project.` is for the pyproject.toml of a package with an adapter.
    examples = [
        one for text in texts for one in re.findall(r"```toml\n((?!\[project\.).*?)```", text, re.DOTALL)
    ]
    assert len(examples) > 10
    settings = [
        resolve([from_toml(one, "file.toml", Level.USER if one.startswith("# ~/.config") else Level.PROJECT)])
        for one in examples
    ]
    assert any(one.gates for one in settings)
    assert any(one.values.agent == "command" for one in settings)
    loops = [loop_from_toml(one, "file.toml", "plans/nightly.yaml").values for one in examples]
    assert {"permission_mode": "edit", "agent": "codex", "max_cost_per_loop": 5} in loops


def test_every_default_of_the_commented_file_is_the_default() -> None:
    text = commented_toml({})
    assert tomllib.loads(text) == {}
    asleep = [line.removeprefix("# ") for line in text.splitlines() if re.match(r"# [\w.]+ = ", line)]
    for line in asleep:  # each on its own, as a person takes one "#" away
        assert len(resolve([from_toml(line, "loopwright.toml", Level.PROJECT)]).origins) == 1, line
    awake = "\n".join(asleep)
    settled = resolve([from_toml(awake, "loopwright.toml", Level.PROJECT)])
    assert settled.values == resolve([]).values
    assert set(settled.origins) == {
        key for key, each in settings().items() if not each.machine and key != "gates"
    }


def test_chosen_settings_stand_uncommented_in_the_commented_file() -> None:
    text = commented_toml({"setup": "npm ci", "limits.hard": "5m"})
    assert tomllib.loads(text) == {"setup": "npm ci", "limits": {"hard": "5m"}}


@each_case("value", ['a"b\\c\nd\t\x7f\x1b é 🙂', 3, 2.5, True, ["a", "b"], {"a b": 1, "c": ["x"], "": False}])
def test_values_written_as_toml_read_back_as_themselves(value: object) -> None:
    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


@pytest.mark.capability("C001")
def test_nothing_published_names_a_path_of_this_machine() -> None:
    for path, text in published().items():
        assert str(ROOT) not in text, path
        assert str(Path.home()) + "/" not in text, path
