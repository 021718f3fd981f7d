"""What only containers have to show: what they leave behind, what they tell, and who reads along."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.cli.program import executable
from tests.containers import IMAGE
from tests.integration.keeper.conftest import all_lines, first_line, keeper_of
from tests.integration.sandbox.conftest import ENGINES, MakeContained, MakeWalls
from tests.waiting import eventually
from tests.wording_plugin import Wording

from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.sandbox.choosing import choose
from loopwright.adapters.sandbox.container import NOTES, Container, remove_abandoned
from loopwright.adapters.sandbox.container_proof import FILE, container_proof
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import UserError
from loopwright.keeper import places
from loopwright.ports import Exit, Reach, RunSpec

pytestmark = pytest.mark.containers

ContainersOf = Callable[[RunSpec], list[str]]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "own" / NOTES


@pytest.fixture
def containers_of(walls: MakeWalls) -> ContainersOf:
    """Ask the engine itself which containers of a run there are."""
    engine = walls().engine

    def ask(spec: RunSpec) -> list[str]:
        words = [engine.program, "ps", "--all", "--quiet", "--filter", f"label=loopwright.run={spec.run_id}"]
        done = subprocess.run(words, env=engine.client, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return ask


async def run(keepers: ProcessKeepers, spec: RunSpec) -> Exit:
    await keepers.start(spec)
    return await keepers.wait(spec.directory)


@pytest.mark.parametrize("walls", ENGINES, indirect=True)
async def test_a_run_tells_its_own_exit_code_and_output_and_leaves_nothing(
    keepers: ProcessKeepers, contained: MakeContained, notes: Path, containers_of: ContainersOf
) -> None:
    big = "import sys; [print('x' * 999) for _ in range(20000)]; print('last', file=sys.stderr)"
    spec = contained(
        sh=f'{sys.executable} -I -S -c "{big}"; printenv MINE 2>/dev/null || env | grep -A1 ^MINE; exit 126',
        env={"MINE": "one\ntwo"},
    )
    ended = await run(keepers, spec)
    lines = await all_lines(keepers, spec)
    out = [line.text for line in lines if line.stream == "out"]
    assert (ended.code, ended.ended_by) == (126, "itself"), "its own, not that of the engine"
    assert (
        hashlib.sha256("".join(out[:20000]).encode()).hexdigest()
        == hashlib.sha256(b"x" * 999 * 20000).hexdigest()
    )
    assert out[20000:] == ["MINE=one", "two"]
    assert [line.text for line in lines if line.stream == "err"] == ["last"]
    assert (containers_of(spec), list(notes.iterdir())) == ([], [])


@pytest.mark.parametrize("walls", ENGINES, indirect=True)
async def test_one_that_is_killed_with_all_who_look_after_it_is_removed_by_the_sweep(
    keepers: ProcessKeepers, contained: MakeContained, notes: Path, containers_of: ContainersOf
) -> None:
    spec = contained(sh="echo up; sleep 300")
    await keepers.start(spec)
    assert await first_line(keepers, spec) == "up"
    (name,) = containers_of(spec)
    assert remove_abandoned(notes) == 0, "somebody looks after it"
    await keepers.end(spec.directory, polite=False)
    assert containers_of(spec) == [name], "nobody was left to remove it"
    sweeping = ProcessKeepers(containers=notes)
    await sweeping.sweep(spec.run_id)
    assert (containers_of(spec), list(notes.iterdir())) == ([], [])


@pytest.mark.parametrize("walls", ENGINES, indirect=True)
async def test_one_that_a_crash_of_the_machine_left_is_removed_with_the_next_start(
    keepers: ProcessKeepers, contained: MakeContained, notes: Path, containers_of: ContainersOf
) -> None:
    spec = contained(sh="echo up; sleep 300")
    await keepers.start(spec)
    assert await first_line(keepers, spec) == "up"
    keeper = keeper_of(spec)
    for process in [keeper, *keeper.children(recursive=True)]:
        process.suspend()  # so that none of them can do anything when the others are gone
    for process in [*keeper.children(recursive=True), keeper]:
        process.kill()
    eventually(lambda: remove_abandoned(notes) == 1, timeout=60)
    assert (containers_of(spec), list(notes.iterdir())) == ([], [])


@pytest.mark.parametrize("walls", ENGINES, indirect=True)
async def test_a_container_ends_with_who_started_it(
    keepers: ProcessKeepers, contained: MakeContained, notes: Path, containers_of: ContainersOf
) -> None:
    spec = contained(sh="echo up; sleep 300")
    with subprocess.Popen(
        spec.argv,
        env={**spec.env, "LOOPWRIGHT_RUN": spec.run_id},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: not list(notes.iterdir()), timeout=60)
        assert containers_of(spec) == []


@pytest.mark.parametrize("walls", ENGINES, indirect=True)
def test_no_value_of_a_variable_is_in_a_command_line(walls: MakeWalls, tmp_path: Path) -> None:
    engine = walls().engine
    log = tmp_path / "log"
    noting = executable(tmp_path / "engine", f'echo "$*" >> {log}; exec {engine.program} "$@"')
    (tmp_path / "run" / places.TMP).mkdir(parents=True)
    env = {"PATH": os.defpath, "TOKEN": "tell-nobody"}
    reach = Reach(directory=tmp_path / "run", cwd=tmp_path, env=env, writable=(tmp_path,))
    words = walls(engine=replace(engine, program=str(noting))).prefix(reach)
    told = ["/bin/sh", "-c", 'echo "$TOKEN" > told']
    subprocess.run([*words, *told], env=env, check=True, start_new_session=True)
    assert (tmp_path / "told").read_text() == "tell-nobody\n"
    assert "--env TOKEN " in log.read_text()
    assert "tell-nobody" not in log.read_text() + " ".join(words)


def test_what_is_missing_is_told_with_what_to_do(
    tmp_path: Path, podman: dict[str, str], wording: Wording
) -> None:
    env = {**os.environ, **podman}
    absent, _ = container_proof("podman", "localhost/nobody-made-this:1", tmp_path, env)
    assert not absent.holds
    wording(absent.why_not)
    wording(absent.fix)
    none, _ = container_proof("auto", IMAGE, tmp_path, {**env, "PATH": str(tmp_path)})
    wording(none.why_not, none.fix.split(",")[0])
    strange = tmp_path / "containers.conf"
    strange.write_text('[engine]\nruntime = "nothing-of-that-name"\n')
    broken, _ = container_proof("podman", IMAGE, tmp_path, {**env, "CONTAINERS_CONF": str(strange)})
    assert not broken.holds
    assert "nothing-of-that-name" in broken.why_not
    assert not (tmp_path / FILE).exists(), "what does not hold is tried again each time"


def test_auto_is_a_container_only_with_an_image_and_a_name_is_insisted_on(
    tmp_path: Path, podman: dict[str, str]
) -> None:
    env = {**os.environ, **podman}
    common = {"program": "/nowhere/bwrap", "home": tmp_path, "own": (), "user": tmp_path, "env": env}
    assert choose("auto", **common).sandbox.level is Containment.NONE
    chosen = choose("auto", image=IMAGE, **common)
    assert (chosen.sandbox.level, chosen.proof.cuts_network) == (Containment.CONTAINER, True)
    fallen = choose("auto", image="nobody-made-this", **common)
    assert fallen.sandbox.level is Containment.NONE
    assert fallen.passed_over is not None
    with pytest.raises(UserError, match="no image is named"):
        choose("container", **common).check()


def test_a_program_that_the_image_does_not_have_is_named(
    podman_container: Container, tmp_path: Path, wording: Wording
) -> None:
    directory = tmp_path / "run"
    (directory / places.TMP).mkdir(parents=True)
    reach = Reach(directory=directory, cwd=tmp_path, argv=("no-such-agent",), writable=(tmp_path,))
    said = subprocess.run(
        [*replace(podman_container, notes=tmp_path / NOTES).prefix(reach), "no-such-agent"],
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert said.returncode != 0
    told = podman_container.denial(said.stderr.splitlines(), reach)
    assert told is not None
    wording(told)
