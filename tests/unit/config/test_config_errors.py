"""Wrong configuration: each message says where, what, and what is expected."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.config.layers import Level, from_environment, from_flags, from_toml
from loopwright.config.resolve import load, resolve
from loopwright.config.settings import CONSTANTS, setting_of
from loopwright.core.values.errors import BadConfig


def message_of(text: str) -> str:
    with pytest.raises(BadConfig) as caught:
        resolve([from_toml(text, "loopwright.toml", Level.PROJECT)])
    return str(caught.value)


@each_case(
    ("text", "expected"),
    [
        ('agnt = "x"', 'loopwright.toml:1: agnt: unknown setting (did you mean "agent"?)'),
        ('\nhard = "1m"', 'loopwright.toml:2: hard: unknown setting (did you mean "limits.hard"?)'),
        (
            "[limits]\nhrd = 3",
            'loopwright.toml:2: limits.hrd: unknown setting (did you mean "limits.hard"?)',
        ),
        ('[limits]\nhard = "soon"', "loopwright.toml:2: limits.hard: expected a duration"),
        ("[limits]\nhard = true", "loopwright.toml:2: limits.hard: expected a duration"),
        ('[limits]\nhard = "0s"', "more than zero"),
        ('[limits]\nhard = "900d"', "at most a year"),
        ('setup_timeout = "off"', "loopwright.toml:1: setup_timeout: expected a duration"),
        ('limits = "1m"', "loopwright.toml:1: limits: expected a table with limits.hard"),
        (
            '[limits]\noutput = "1MB"',
            "loopwright.toml:2: limits.output: is not a setting any more (64MB): remove it",
        ),
        ("parallel = 0", "loopwright.toml:1: parallel: expected a whole number from 1 to 256, got 0"),
        ("parallel = 1.5", "expected a whole number"),
        ("parallel = true", "expected a whole number from 1 to 256, got True"),
        ("parallel = nan", "expected a whole number"),
        ("parallel = []", "expected a whole number"),
        ("max_cost = -1", "expected an amount in dollars"),
        ("max_cost = 0", "expected an amount in dollars"),
        ('max_cost = "1.0000001"', "expected an amount in dollars"),
        ('max_cost = "lots"', "expected an amount in dollars"),
        ("max_cost = inf", "expected an amount in dollars"),
        ("max_cost = [1]", "expected an amount in dollars"),
        (
            'permission_mode = "edi"',
            'expected one of "auto", "read-only", "edit", "sandboxed-all" (did you mean "edit"?)',
        ),
        ("permission_mode = 1", "expected one of"),
        ('allow_unverified = "perhaps"', "expected true or false"),
        ('agent = ""', "expected the name of an agent"),
        ('agent = "../x"', "expected the name of an agent"),
        ('copy_files = ["/etc/passwd"]', "expected a list of paths relative to the project"),
        ('copy_files = ["../x"]', "expected a list of paths relative to the project"),
        ('copy_files = ["~/x"]', "expected a list of paths relative to the project"),
        ("copy_files = 3", "expected a list of paths"),
        ('environment = ["A B"]', "expected a list of names of environment variables"),
        ('[[gates]]\nname = "a"', "loopwright.toml:1: gates[0].run: missing"),
        (
            '[[gates]]\nrun = "a"\n[[gates]]\nrun = "b"\nrn = 1',
            'loopwright.toml:5: gates[1].rn: unknown key (did you mean "run"?)',
        ),
        (
            '[[gates]]\nrun = "a"\nagent = "command"',
            "gates[0].agent: unknown key: agent belongs to no table: put it above the first [table]",
        ),
        ('[limits]\nagent = "command"', "limits.agent: unknown setting: agent belongs to no table"),
        ('[[gates]]\nrun = "a"\ntimeout = "x"', "loopwright.toml:3: gates[0].timeout: expected a duration"),
        ('[[gates]]\nrun = "a"\ntimeout = 0', "expected a duration of more than zero"),
        ('[[gates]]\nrun = "a"\njunit = "/x"', "gates[0].junit: expected a path relative to the tree"),
        ('[[gates]]\nrun = ""', "gates[0].run: expected a shell command"),
        ('gates = ["a", "a"]', "loopwright.toml:1: gates[1]: the same command twice"),
        ('gates = [{name = "x", run = "a"}, {name = "x", run = "b"}]', "a second gate with the name"),
        ('gates = [{name = "x\\ny", run = "a"}]', "gates[0].name: expected a name on one line"),
        ("gates = [3]", "gates[0]: expected a command, or a table with run"),
        ("gates = 3", "expected a list of gates"),
        ("agents = 3", "expected a table for each agent"),
        ("[agents]\nclaude = 3", "loopwright.toml:2: agents.claude: expected a table for each agent"),
        ("[agents.claude]\nx = {y = 1}", "loopwright.toml:2: agents.claude.x: expected a text, a number"),
        ("[agents.claude]\nx = nan", "expected a text, a number"),
        ("agent = \n", "loopwright.toml:1: Invalid value (this is not TOML)"),
        ("a = 1\na = 2", "(this is not TOML)"),
        ("agent = '", "(this is not TOML)"),
        ("agent = " + "[" * 5000, "loopwright.toml: nested too deeply"),
        ('"" = 1', "loopwright.toml: : unknown setting"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_what_is_expected(text: str, expected: str) -> None:
    assert expected in message_of(text)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(BadConfig) as caught:
        load(
            {"HOME": "/x", "LOOPWRIGHT_PARALLEL": "many"},
            platform="linux",
            flags={"max_attempts": "few"},
            project_text="agnt = 1\nsetp = 2\n",
        )
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "flag --max-attempts",
        "environment LOOPWRIGHT_PARALLEL",
        "loopwright.toml:1",
        "loopwright.toml:2",
    ]
    assert caught.value.hint is not None


@each_case(
    ("variable", "guess"),
    [
        ("LOOPWRIGHT_LIMIT__HARD", "LOOPWRIGHT_LIMITS__HARD"),
        ("LOOPWRIGHT_LIMITS", "LOOPWRIGHT_LIMITS__HARD"),
        ("LOOPWRIGHT_MAX_ATTEMPT", "LOOPWRIGHT_MAX_ATTEMPTS"),
    ],
)
def test_a_mistyped_variable_is_refused(variable: str, guess: str) -> None:
    with raises_code("settings_wrong"):
        resolve([from_environment({variable: "5m"})])


def test_a_variable_of_another_program_or_of_our_own_processes_is_left_alone() -> None:
    env = {"LOOPWRIGHT_SOMETHING_ELSE": "1", "LOOPWRIGHT_MODEL_": "x"}
    assert resolve([from_environment(env, ours=frozenset({"LOOPWRIGHT_MODEL_"}))]).origins == {}


@each_case(
    "name",
    ["PLAN", "TASK", "ATTEMPT", "RUN", "RUN_ID", "PORT_BASE", "PORT_COUNT", "FAILPOINT", "FAILPOINT_TRACE"],
)
def test_the_program_can_be_used_inside_an_attempt(name: str) -> None:
    assert resolve([from_environment({f"LOOPWRIGHT_{name}": "x"})]).origins == {}


def test_a_gate_in_the_environment_is_one_command_or_a_json_list() -> None:
    def names(text: str) -> list[str]:
        return [gate.command for gate in resolve([from_environment({"LOOPWRIGHT_GATES": text})]).gates]

    assert names("make test") == ["make test"]
    assert names('["make a", {"run": "make b"}]') == ["make a", "make b"]
    assert names("[ -f README.md ]") == ["[ -f README.md ]"]


def test_a_database_that_is_not_postgresql_is_refused() -> None:
    with raises_code("settings_wrong"):
        resolve([from_environment({"LOOPWRIGHT_DATABASE": "sqlite:///x.db"})])


def test_a_list_in_the_environment_is_separated_by_commas_or_json() -> None:
    for text in (".env, .env.local,", '[".env", ".env.local"]'):
        settled = resolve([from_environment({"LOOPWRIGHT_COPY_FILES": text})])
        assert settled.values.copy_files == (".env", ".env.local")


def test_long_commands_without_a_name_still_get_names_of_their_own() -> None:
    start = "x" * 100
    gates = resolve([from_flags({"gates": [start + "a", start + "b"]})]).gates
    assert len({gate.name for gate in gates}) == 2
    assert all(len(gate.name) <= 80 for gate in gates)


def test_the_origin_of_an_unknown_setting_is_refused_with_a_guess() -> None:
    settled = resolve([])
    for ask in (settled.origin, settled.get):
        with raises_code("setting_unknown"):
            ask("limits.hrd")


_TEXT = st.text(alphabet=string.printable, max_size=8)
_TOML = st.recursive(
    st.one_of(st.integers(), st.floats(), st.booleans(), _TEXT, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["agent", "limits", "gates", "agents", "ports", "max_cost", "copy_files", "home", "limits.hard"]
)


@settings(deadline=None)
@given(st.dictionaries(st.one_of(_KEYS, _TEXT), _TOML, max_size=4))
def test_any_values_give_settings_or_a_located_refusal(tree: dict[str, object]) -> None:
    try:
        settled = resolve([from_flags(tree)])
    except BadConfig as refused:
        words = str(refused)
    else:
        settled.policy()
        words = f"flag {len(settled.shown())}"
    assert words.startswith("flag ")


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_as_a_file_gives_settings_or_a_refusal(text: str) -> None:
    words = "loopwright.toml"
    try:
        resolve([from_toml(text, "loopwright.toml", Level.PROJECT)])
    except BadConfig as refused:
        words = str(refused)
    assert "loopwright.toml" in words


@each_case("key", CONSTANTS)
def test_a_setting_that_became_a_constant_is_named_with_what_holds_now(key: str) -> None:
    variable = "LOOPWRIGHT_" + key.upper().replace(".", "__")
    assert setting_of(key) is None
    for layer in (
        from_environment({variable: "1"}),
        from_toml(f"{key} = 1", "loopwright.toml", Level.PROJECT),
    ):
        (problem,) = layer.problems
        assert problem.endswith(f"is not a setting any more ({CONSTANTS[key]}): remove it")
