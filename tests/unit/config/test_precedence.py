"""Who decides a setting: flag, environment, plan, loop, project file, your own file, default."""

import json
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.config.gates import TEST_RUNNERS
from loopwright.config.layers import Level, from_environment, from_flags, from_plan, from_toml, loop_from_toml
from loopwright.config.publish import toml_value
from loopwright.config.resolve import load, resolve
from loopwright.config.settings import setting_of, settings
from loopwright.core.gates.dependencies import READY
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.policy import GateCommand, HealPolicy, Limits, Policy, ReviewPolicy, RoundsPolicy
from loopwright.ports import PlannedTask, PlannedWork

# Seven different values for each setting: one for each level that may set it, in order.
SAMPLES: dict[str, list[object]] = {
    "agent": ["a1", "a2", "a3", "a4", "a5", "a6"],
    "model": ["m1", "m2", "m3", "m4", "m5", "m6"],
    "permission_mode": ["sandboxed-all", "read-only", "edit", "sandboxed-all", "read-only", "edit"],
    "parallel": [3, 4, 5, 6, 7, 8],
    "agent_slots": [[f"claude {n}", f"claude/work {n}"] for n in range(1, 7)],
    "project_slots": [1, 2, 3, 4, 5, 6],
    "max_attempts": [4, 5, 6, 7, 8, 9],
    "max_call_retries": [0, 1, 2, 3, 4, 6],
    "fix_cycles": [0, 1, 2, 4, 5, 6],
    "landing.parallel_gates": [1, 3, 4, 5, 6, 7],
    "allow_unverified": [True, False, True, False, True, False],
    "wait_for_limits": [False, True, False, True, False, True],
    "longest_wait": ["1m", "2m", "3m", "4m", "5m", "6m"],
    "fallback": [["a"], ["b:m"], ["c"], ["d"], ["e"], ["f"]],
    "auto_heal": [True, False, True, False, True, False],
    "auto_refine": [True, False, True, False, True, False],
    "heal.max_steps": [1, 2, 3, 5, 6, 7],
    "heal.investigator": ["a", "b:m", "c", "d", "e", "f"],
    "heal.stronger": ["a", "b:m", "c", "d", "e", "f"],
    "manager.agent": ["a", "b:m", "c", "d", "e", "f"],
    "manager.every": ["1m", "2m", "3m", "4m", "5m", "6m"],
    "manager.on_events": [True, False, True, False, True, False],
    "manager.per_day": [1, 2, 3, 4, 5, 6],
    "manager.max_cost": [str(n) for n in range(1, 7)],
    "manager.spending": [str(n) for n in range(1, 7)],
    "orchestrator.agent": ["a", "b:m", "c", "d", "e", "f"],
    "orchestrator.max_cost": [str(n) for n in range(1, 7)],
    "orchestrator.spending": [str(n) for n in range(1, 7)],
    "webhook_networks": [[f"10.{n}.0.0/16"] for n in range(1, 7)],
    "notify": [[f"json://h{n}"] for n in range(1, 7)],
    "monitor.every": ["10s", "20s", "40s", "50s", "1m", "2m"],
    "monitor.hung": ["1m", "2m", "3m", "4m", "6m", "7m"],
    "monitor.stuck": [2, 3, 4, 5, 6, 7],
    "autonomy": ["manual", "supervised", "auto", "manual", "supervised", "auto"],
    "on_task_error": ["fail", "hold", "fail", "hold", "fail", "hold"],
    "finish": ["squash", "leave", "fast-forward", "squash", "leave", "pull-request"],
    "finish_sign": [True, False, True, False, True, False],
    "state_folder": [".claude/state", ".loopwright"] * 3,
    "max_unreviewed": [1, 2, 3, 4, 5, 6],
    "dependencies": ["d1", "d2", "d3", "d4", "d5", "d6"],
    "dependency_files": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "setup": ["s1", "s2", "s3", "s4", "s5", "s6"],
    "setup_timeout": ["1m", "2m", "3m", "4m", "5m", "6m"],
    "copy_files": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "gate_files": [["a"], ["!b"], ["c/"], ["d"], ["e"], ["f"]],
    "may_change": [["a"], ["b::t"], ["c/"], ["d/**"], ["e"], ["f"]],
    "test_changes": ["allow", "ask", "allow", "ask", "allow", "ask"],
    "test_runners": [
        [
            {
                "command": f"c{n}",
                "tests": "tap",
                "file": "{name}",
                "passes": "p",
                "fails": "f",
                "run": "r {name}",
            }
        ]
        for n in range(6)
    ],
    "installed_gates": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "check_base": [False, True, False, True, False, True],
    "red_proof": ["off", "fixes", "off", "fixes", "off", "fixes"],
    "qa_mode": ["lite", "full", "lite", "full", "lite", "full"],
    "business_docs": [True, False, True, False, True, False],
    "business_documents": [["a"], ["b: c"], ["c"], ["d"], ["e"], ["f"]],
    "unseen_proof": [True, False, True, False, True, False],
    "allowed_commands": [["a *"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "answer_within": [60.0, 61.0, 62.0, 63.0, 64.0, 65.0],
    "environment": [["A"], ["B"], ["C"], ["D"], ["E"], ["F"]],
    "environment_plain": [["A"], ["B"], ["C"], ["D"], ["E"], ["F"]],
    "max_cost": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    "max_cost_per_run": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    "max_cost_per_task": [2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    "max_cost_per_loop": [2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    "max_cost_per_project": [4.5, 5.5, 6.5, 7.5, 8.5, 9.5],
    "max_cost_per_day": [3.5, 4.5, 5.5, 6.5, 7.5, 8.5],
    "prices": [["m 1 2"], ["m 2 2"], ["m 3 2"], ["m 4 2 0.5"], ["m 5 2"], ["m* 6 2 1 1.25"]],
    "host_lost_after": ["11s", "12s", "13s", "14s", "15s", "16s"],
    "lease": ["1s", "2s", "3s", "4s", "5s", "6s"],
    "home": ["/h1", "/h2", "/h3", "/h4", "/h5", "/h6"],
    "database": [f"postgresql://h{n}/d" for n in range(6)],
    "limits.hard": ["1m", "2m", "off", "4m", "5m", "off"],
    "limits.idle": ["1m", "2m", "off", "4m", "5m", "off"],
    "disk.min_free": ["1MB", "2MB", "3MB", "off", "5MB", "6MB"],
    "disk.max_workspace": ["1GB", "2GB", "3GB", "off", "5GB", "6GB"],
    "disk.keep_recordings": ["1GB", "2GB", "3GB", "off", "5GB", "6GB"],
    "user_folder.private": [False, True, False, True, False, True],
    "user_folder.show": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "user_folder.hide": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]],
    "sandbox.level": ["none", "auto", "bubblewrap", "container", "auto", "bubblewrap"],
    "sandbox.program": ["b1", "b2", "b3", "b4", "b5", "b6"],
    "sandbox.required": [True, False, True, False, True, False],
    "sandbox.image": ["i1", "i2", "i3", "i4", "i5", "i6"],
    "sandbox.engine": ["podman", "docker", "auto", "/opt/podman", "docker", "podman"],
    "sandbox.write": [["/a"], ["~/b"], ["/c"], ["/d"], ["/e"], ["/f"]],
    "sandbox.read": [["/a"], ["~/b"], ["/c"], ["/d"], ["/e"], ["/f"]],
    "sandbox.network": ["off", "on", "agents", "off", "on", "agents"],
    "review.mode": ["risky", "always", "off", "complex", "always", "off"],
    "review.agent": ["a1", "a2", "a3", "a4", "a5", "a6"],
    "review.model": ["m1", "m2", "m3", "m4", "m5", "m6"],
    "review.max_turns": [1, 2, 3, 4, 5, 0],
    "review.max_share": [10, 20, 30, 40, 50, 0],
    "review.lines": [1, 2, 3, 4, 5, 0],
    "review.paths": [["a"], ["!b"], ["c/"], ["d"], ["e"], ["f"]],
    "rounds.max": [1, 2, 3, 4, 5, 6],
    "rounds.sleep": ["1s", "2s", "3s", "4s", "5s", "0s"],
    "rounds.until": ["green", "quiet", "auto", "green", "quiet", "auto"],
    "rounds.unchanged": [1, 2, 3, 4, 5, 6],
    "rounds.stop_after": ["1h", "2h", "off", "4h", "5h", "off"],
    "planner.agent": ["a1", "a2", "a3", "a4", "a5", "a6"],
    "planner.model": ["m1", "m2", "m3", "m4", "m5", "m6"],
    "evaluator.mode": ["complex", "always", "off", "complex", "always", "off"],
    "evaluator.agent": ["a1", "a2", "a3", "a4", "a5", "a6"],
    "evaluator.model": ["m1", "m2", "m3", "m4", "m5", "m6"],
    "forge.remote": ["r1", "r2", "r3", "r4", "r5", "r6"],
    "forge.hosts": [[f"h{n} gitlab"] for n in range(5)] + [["h github https://h/api"]],
    "forge.issues": ["l1", "l2", "l3", "l4", "l5", "l6"],
    "forge.every": ["1s", "2s", "3s", "4s", "5s", "6s"],
    "secrets_from": ["keyring", "a", "b", "c", "d", "e"],
    "otlp_endpoint": [f"http://h{n}:4318" for n in range(6)],
    "env_file": ["/a", "/b", "/c", "/d", "/e", "/f"],
    "forge.token_file": ["/a", "/b", "/c", "/d", "/e", "/f"],
    "gates": [[{"name": f"g{n}", "run": f"run {n}"}] for n in range(6)],
    "agents.claude.binary": ["b1", "b2", "b3", "b4", "b5", "b6"],
}


def as_tree(key: str, value: object) -> dict[str, object]:
    tree: object = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    assert isinstance(tree, dict)
    return tree


def as_toml(key: str, value: object) -> str:
    table, _, name = key.rpartition(".")
    header = f"[{table}]\n" if table else ""
    return f"# a comment\n{header}{name} = {toml_value(value)}\n"


NIGHTLY = "plans/nightly.yaml"


def of_loop(key: str, value: object, source: str = NIGHTLY) -> str:
    table, _, name = key.rpartition(".")
    header = ".".join(filter(None, ("loops", f'"{source}"', table)))
    return f"# a comment\n[{header}]\n{name} = {toml_value(value)}\n"


def as_text(value: object) -> str:
    return json.dumps(value) if not isinstance(value, str) else value


@pytest.mark.capability("C002", "C007")
@each_case("key", SAMPLES)
def test_each_level_beats_the_ones_below_it_for_every_setting(key: str) -> None:
    setting = setting_of(key)
    assert setting is not None
    user, project, loop, plan, environment, flag = SAMPLES[key]
    variable = "LOOPWRIGHT_" + key.upper().replace(".", "__")
    layers = [
        (from_toml(as_toml(key, user), "config.toml", Level.USER), user, "config.toml:"),
        (from_toml(as_toml(key, project), "loopwright.toml", Level.PROJECT), project, "loopwright.toml:"),
        (loop_from_toml(of_loop(key, loop), "loopwright.toml", NIGHTLY), loop, "loopwright.toml:"),
        (from_plan(as_tree(key, plan), "plan.yaml"), plan, "plan plan.yaml"),
        (from_environment({variable: as_text(environment)}), environment, f"environment {variable}"),
        (from_flags({key: flag}), flag, f"flag {setting.flag}"),
    ]
    if setting.machine:
        layers = [layers[0], layers[4], layers[5]]
    for upto in range(1, len(layers) + 1):
        # The order in which layers are handed over decides nothing.
        settled = resolve(layer for layer, _, _ in reversed(layers[:upto]))
        _, value, origin = layers[upto - 1]
        assert settled.get(key) == setting.kind.read(value)
        assert settled.origin(key).startswith(origin)


def test_the_samples_cover_every_setting() -> None:
    assert set(SAMPLES) - {"agents.claude.binary"} == set(settings())


@each_case("level", [Level.PROJECT, Level.LOOP, Level.PLAN])
@each_case("key", [key for key, setting in settings().items() if setting.machine])
def test_a_setting_of_the_machine_cannot_come_from_a_project(key: str, level: Level) -> None:
    value = SAMPLES[key][0]
    layer = {
        Level.PROJECT: lambda: from_toml(as_toml(key, value), "loopwright.toml", Level.PROJECT),
        Level.LOOP: lambda: from_toml(of_loop(key, value), "loopwright.toml", Level.PROJECT),
        Level.PLAN: lambda: from_plan(as_tree(key, value), "plan.yaml"),
    }[level]()
    with raises_code("settings_wrong"):
        resolve([layer])


@each_case("path", ["relative", "/a/../b", "~someone/x", ""])
def test_what_a_sandbox_lets_through_is_a_whole_path(path: str) -> None:
    with raises_code("settings_wrong"):
        resolve([from_toml(as_toml("sandbox.write", [path]), "config.toml", Level.USER)])


def test_without_any_layer_the_defaults_are_those_of_the_model() -> None:
    settled = resolve([])
    assert settled.policy() == Policy()
    assert settled.gates == ()
    assert {settled.origin(key) for key in settings()} == {"default"}


def test_a_policy_carries_everything_that_was_set() -> None:
    layer = from_flags({key: values[0] for key, values in SAMPLES.items()})
    assert resolve([layer]).policy() == Policy(
        agent="a1",
        model="m1",
        permission_mode="sandboxed-all",
        parallel=3,
        max_attempts=4,
        max_call_retries=0,
        fix_cycles=0,
        parallel_gates=1,
        wait_for_limits=False,
        longest_wait=60.0,
        fallback=("a",),
        allow_unverified=True,
        auto_heal=True,
        auto_refine=True,
        sandbox_required=True,
        heal=HealPolicy(max_steps=1, investigator="a", stronger="a"),
        autonomy="manual",
        on_task_error="fail",
        finish="squash",
        finish_sign=True,
        remote="r1",
        max_unreviewed=1,
        dependencies="d1",
        dependency_files=("a",),
        setup="s1",
        setup_timeout=60,
        copy_files=("a",),
        gate_files=("a",),
        installed_gates=("a",),
        may_change=("a",),
        test_changes="allow",
        test_runners=TEST_RUNNERS.read(SAMPLES["test_runners"][0]),
        red_proof="off",
        qa_mode="lite",
        business_docs=True,
        business_documents=("a",),
        unseen_proof=True,
        review=ReviewPolicy(
            mode="risky", agent="a1", model="m1", max_turns=1, max_share=10, lines=1, paths=("a",)
        ),
        rounds=RoundsPolicy(max=1, sleep=1, until="green", unchanged=1, stop_after=3600),
        allowed_commands=("a *",),
        answer_within=60.0,
        environment=("A",),
        environment_plain=("A",),
        limits=Limits(hard=60, idle=60, done_grace=30),
        max_cost=1_500_000,
        max_cost_per_run=1_500_000,
        max_cost_per_task=2_500_000,
        max_cost_per_loop=2_500_000,
        max_cost_per_project=4_500_000,
        max_cost_per_day=3_500_000,
        prices=("m 1 2",),
        host_lost_after=11,
        agents={"claude": {"binary": "b1"}},
    )


def test_the_options_of_an_agent_are_combined_one_by_one() -> None:
    settled = resolve(
        [
            from_toml('[agents.claude]\nbinary = "x"\nmax_turns = 5', "config.toml", Level.USER),
            from_environment({"LOOPWRIGHT_AGENTS__CLAUDE__MAX_TURNS": "9"}),
        ]
    )
    assert settled.policy().agents == {"claude": {"binary": "x", "max_turns": 9}}


def test_the_gates_of_a_plan_replace_those_of_the_project() -> None:
    gate = GateCommand(name="own", command="make own", timeout_s=5, junit="out/report.xml")
    work = PlannedWork(
        title="t", tasks=(PlannedTask(key="a", title="A"),), gates=(gate,), settings={"model": "m"}, sha256=""
    )
    project = 'model = "other"\ngates = ["make test"]\n'
    settled = load(
        {"HOME": "/somewhere"}, platform="linux", plan=work, plan_name="plan.yaml", project_text=project
    )
    assert settled.gates == (gate,)
    assert settled.values.model == "m"
    assert settled.origin("gates") == "plan plan.yaml"


@each_case(
    ("project", "commands", "origin"),
    [
        (None, ["make check"], "the baseline checks of orchestrator"),
        ('model = "m"\n', ["make check"], "the baseline checks of orchestrator"),
        ('gates = ["make test"]\n', ["make test"], "loopwright.toml:1"),
        ("gates = []\n", [], "loopwright.toml:1"),
    ],
)
def test_checks_that_a_source_names_for_all_count_where_nobody_has_named_gates(
    project: str | None, commands: list[str], origin: str
) -> None:
    gate = GateCommand(name="check", command="make check")
    work = PlannedWork(title="t", tasks=(PlannedTask(key="a", title="A"),), baseline=(gate,), sha256="")
    settled = load(
        {"HOME": "/somewhere"}, platform="linux", plan=work, plan_name="orchestrator", project_text=project
    )
    assert ([one.command for one in settled.gates], settled.origin("gates")) == (commands, origin)


def test_an_origin_names_the_line_of_the_file() -> None:
    text = 'agent = "x"\n\n[limits]\n# why\nhard = "5m"\n\n[[gates]]\nrun = "make"\n'
    settled = resolve([from_toml(text, "loopwright.toml", Level.PROJECT)])
    assert settled.origin("limits.hard") == "loopwright.toml:5"
    assert settled.origin("gates") == "loopwright.toml:7"
    assert settled.origin("limits.idle") == "default"


def test_lines_inside_a_long_text_are_not_taken_for_keys() -> None:
    text = 'setup = """\nagent = "no"\n"""\nagent = "yes"\n'
    settled = resolve([from_toml(text, "loopwright.toml", Level.PROJECT)])
    assert settled.values.agent == "yes"
    assert settled.origin("agent") == "loopwright.toml:4"


def test_the_users_own_file_is_read_and_named_without_the_home_folder(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "loopwright" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('\nhome = "~/data"\n')
    settled = load({"HOME": str(tmp_path)}, platform="linux")
    assert settled.home == tmp_path / "data"
    assert settled.origin("home") == "~/.config/loopwright/config.toml:2"


def test_a_users_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "loopwright" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe")
    with raises_code("settings_wrong"):
        load({"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}, platform="linux")


def test_an_empty_variable_counts_as_not_set() -> None:
    assert resolve([from_environment({"LOOPWRIGHT_AGENT": " "})]).origin("agent") == "default"


def test_no_variable_that_runs_are_given_is_taken_for_a_setting() -> None:
    """A gate may run Loopwright itself."""
    names = ("PLAN", "TASK", "TASK_NAME", "ATTEMPT", "RUN", "PORT_BASE", "PORT_COUNT")
    layer = from_environment(dict.fromkeys((READY, *(f"LOOPWRIGHT_{name}" for name in names)), "1"))
    assert (layer.values, layer.problems) == ({}, ())


def test_a_flag_that_was_not_given_counts_as_not_set() -> None:
    assert resolve([from_flags({"agent": None})]).origin("agent") == "default"


def test_a_loop_and_a_flag_are_part_of_what_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "loopwright" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(of_loop("model", "mine") + "[loops.\"plans/nightly.yaml\".limits]\nidle = '1m'\n")
    env = {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}
    text = 'agent = "codex"\nmodel = "plain"\n' + of_loop("model", "m")
    settled = load(env, platform="linux", flags={"parallel": 9}, loop=NIGHTLY, project_text=text)
    assert (settled.values.model, settled.origin("model")) == ("m", "loopwright.toml:5")
    assert settled.values.limits.idle == 60, "your own file may know the loop too"
    assert (settled.values.agent, settled.values.parallel) == ("codex", 9)
    other = load(env, platform="linux", loop="plan.md", project_text=text)
    assert (other.values.model, other.origin("model")) == ("plain", "loopwright.toml:2")


@each_case("name", ["thoughts", "./thoughts", "thoughts/"])
def test_a_loop_is_known_however_its_source_is_spelt(name: str) -> None:
    text = f'[loops."{name}"]\nmodel = "m"\n'
    settled = load({"HOME": "/nowhere"}, platform="linux", loop="thoughts", project_text=text)
    assert (settled.values.model, settled.origin("model")) == ("m", "loopwright.toml:2")


@each_case(
    ("text", "told"),
    [
        (
            of_loop("permision_mode", "edit"),
            "loopwright.toml:3: loops.plans/nightly.yaml.permision_mode: unknown",
        ),
        (of_loop("parallel", "many"), "loopwright.toml:3: loops.plans/nightly.yaml.parallel: "),
        ('loops = "all"', "loopwright.toml:1: loops: expected a table for each work source"),
        ('[loops]\n"plan.md" = 3\n', "loopwright.toml:2: loops.plan.md: expected a table for each"),
    ],
)
def test_what_is_wrong_in_the_settings_of_a_loop_is_said_whichever_runs(text: str, told: str) -> None:
    with pytest.raises(BadConfig) as wrong:
        load({"HOME": "/nowhere"}, platform="linux", loop="plan.md", project_text=text)
    assert str(wrong.value).startswith(told)
