"""The shapes of the files about loops."""

import jsonschema
import pytest
from tests.cases import each_case

from loopwright.core.rows.loop_files import LOOP_CONFIG, LOOP_FILES

MINIMAL = {"name": "critical-path", "specs_dir": "specs", "test_state_file": "test-state.json"}


@pytest.mark.capability("C003")
def test_the_configuration_of_a_loop_is_a_draft_07_schema_with_its_defaults() -> None:
    jsonschema.Draft7Validator.check_schema(LOOP_CONFIG)
    check = jsonschema.Draft7Validator(LOOP_CONFIG)
    check.validate(MINIMAL)
    for missing in MINIMAL:
        assert not check.is_valid({key: value for key, value in MINIMAL.items() if key != missing})
    assert not check.is_valid({**MINIMAL, "priority": "high"})
    defaults = {key: one["default"] for key, one in LOOP_CONFIG["properties"].items() if "default" in one}
    assert defaults == {
        "model": "claude-opus-4-5-20251101",
        "max_attempts": 3,
        "priority": 5,
        "auto_heal": False,
    }


@each_case("name", list(LOOP_FILES))
def test_every_schema_is_one(name: str) -> None:
    jsonschema.validators.validator_for(LOOP_FILES[name]).check_schema(LOOP_FILES[name])
