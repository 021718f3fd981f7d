"""Reading the setting `test_runners`: how a test runner that is not known is watched."""

import re
from collections.abc import Mapping
from typing import Any, Final

from loopwright.config.kinds import MAX_TEXT, Kind, WrongValue, is_inside, json_list
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.core.values.policy import ConfiguredRunner

RUNNER_KEYS: Final[Mapping[str, str]] = {
    "command": "A part of the commands that start it, in gates and in acceptance.",
    "tests": "How its output names tests: tap, or a regular expression with the groups id, passed, failed and skipped, "
    "tried on each line. Left out: the gate's JUnit report names them.",
    "file": "Where a canary is written, relative to the project; {name} is its name, a new one for each run.",
    "passes": "The text of the canary that has to pass.",
    "fails": "The text of the canary that has to fail.",
    "run": "The command that runs the canary alone.",
}
_OPTIONAL: Final = frozenset({"tests"})
_NAME: Final = "{name}"
_TAP: Final = (
    r"^\s*(?:(?P<passed>ok)|(?P<failed>not ok))\b\s*\d*\s*(?:- )?(?P<id>[^#]*[^#\s])\s*"
    r"(?P<skipped># *(?i:skip|todo)\b.*)?$"
)
_GROUPS: Final = frozenset({"id", "passed", "failed"})


def _read_runner(entry: object) -> ConfiguredRunner:
    if not isinstance(entry, Mapping):
        raise WrongValue("a list of tables with command, tests, file, passes, fails and run", entry)
    for key in entry:
        if key not in RUNNER_KEYS:
            raise WrongValue(
                f"no other keys than {', '.join(RUNNER_KEYS)}{did_you_mean(str(key), RUNNER_KEYS)}", key
            )
    for key, meaning in RUNNER_KEYS.items():
        value = entry.get(key)
        if value is None and key in _OPTIONAL:
            continue
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT or "\0" in value:
            raise WrongValue(f"{key} in each test runner. {meaning}", value)
    if not is_inside(entry["file"]) or _NAME not in entry["file"]:
        raise WrongValue(
            "file as a path relative to the project, without .., with {name} in it", entry["file"]
        )
    if _NAME not in entry["run"] and _NAME not in entry["passes"]:
        raise WrongValue(
            "{name} in run or in passes, so that no other test is taken for the canary", entry["run"]
        )
    tests = entry.get("tests")
    return ConfiguredRunner(
        **{**entry, "tests": _TAP if tests == "tap" else _pattern(tests) if tests else None}
    )


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex.keys()
    except re.error as error:
        raise WrongValue(f"tests as tap or a regular expression ({error})", text) from error
    if missing := sorted(_GROUPS - groups):
        raise WrongValue(
            f"tests with the named groups id, passed and failed; {quoted(missing[0])} is missing", text
        )
    return text


def _read(value: object) -> tuple[ConfiguredRunner, ...]:
    entries = json_list(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        raise WrongValue("a list of test runners", value)
    return tuple(_read_runner(entry) for entry in entries)


def _table(runner: ConfiguredRunner) -> dict[str, Any]:
    table = {key: getattr(runner, key) for key in RUNNER_KEYS}
    table["tests"] = "tap" if runner.tests == _TAP else runner.tests
    return {key: value for key, value in table.items() if value is not None}


_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
TEST_RUNNERS: Final = Kind(
    name="list of test runners",
    expected="a list of test runners, each a table with command, tests, file, passes, fails and run",
    read=_read,
    show=lambda runners: [_table(runner) for runner in runners],
    schema={
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": [key for key in RUNNER_KEYS if key not in _OPTIONAL],
            "properties": {key: {**_TEXT, "description": words} for key, words in RUNNER_KEYS.items()},
        },
    },
)
