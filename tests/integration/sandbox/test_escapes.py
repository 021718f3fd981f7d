"""Attempts to get out of a sandbox. Each is judged from outside, by what really happened."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.keeper.conftest import keeper_of, text_of
from tests.integration.sandbox.conftest import PATH, MakeContained
from tests.waiting import eventually
from tests.wording_plugin import Wording

from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.app import chosen_sandbox
from loopwright.config.resolve import load
from loopwright.keeper import places
from loopwright.ports import Exit, Reach, RunSpec


async def run(keepers: ProcessKeepers, spec: RunSpec) -> Exit:
    await keepers.start(spec)
    return await keepers.wait(spec.directory)


@pytest.fixture
def outsider() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the same user, outside of every sandbox."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file that the user could write, in a folder where nothing is hidden: not where the tests' own files are."""
    with tempfile.TemporaryDirectory(dir=Path(sys.prefix)) as folder:
        path = Path(folder) / "precious"
        path.write_text("precious")
        yield path


WRITES = {
    "by its absolute path": "echo bent > {outside}",
    "through a link in the workspace": "ln -s {outside} link; echo bent > link",
    "through a link to its folder": "ln -s {folder} link; echo bent > link/precious",
    "by removing it": "rm -f {outside}",
    "by renaming another over it": "echo bent > made; mv -f made {outside}",
    "by another name of it": "ln {outside} twin; echo bent > twin",
    "by mounting it anew": "mount -o remount,rw,bind / ; echo bent > {outside}",
    "in namespaces of its own": "unshare -Urm sh -c 'mount -o remount,rw,bind / ; echo bent > {outside}'",
    "through the root of the first process": "echo bent > /proc/1/root{outside}",
    "through the root of a process outside": "echo bent > /proc/{pid}/root{outside}",
    "through the working directory of its parent": "echo bent > /proc/$PPID/cwd/../../../../../../{outside}",
    "by changing its rights": "chmod 777 {outside}; chown 1:1 {outside}; echo bent > {outside}",
}


@pytest.mark.parametrize("how", WRITES)
async def test_what_lies_outside_cannot_be_written(
    how: str,
    keepers: ProcessKeepers,
    contained: MakeContained,
    outside: Path,
    outsider: "subprocess.Popen[bytes]",
) -> None:
    before = outside.stat()
    script = WRITES[how].format(outside=outside, folder=outside.parent, pid=outsider.pid)
    spec = contained(sh=f"({script}); echo over")
    assert (await run(keepers, spec)).code == 0
    said = await text_of(keepers, spec)
    assert "over" in said, said
    assert len(said) > 1, "it was refused with a word"
    assert outside.read_text() == "precious"
    after = outside.stat()
    assert (after.st_mode, after.st_uid, after.st_nlink) == (before.st_mode, before.st_uid, before.st_nlink)


READS = {
    "a secret": "cat {real}/.ssh/id",
    "a document": "cat {real}/Documents/diary",
    "a secret beside a tool chain": "grep . {real}/.cargo/credentials.toml",
    "a document through its HOME": "cat ~/Documents/diary",
    "what is left of HOME": "ls -A {real}/Documents",
    "the root of a process outside": "ls /proc/{pid}/root/",
    "the environment of a process outside": "cat /proc/{pid}/environ",
    "the home of Loopwright": "cat {own}/loopwright.db",
    "its own output": "ls {own}/runs/*/output",
    "the keeper's socket": "ls {own}/runs/*/socket",
    "the temporary files of others": "cat {tmp}/others",
}


@pytest.mark.parametrize("what", READS)
async def test_what_is_hidden_cannot_be_read(
    what: str,
    keepers: ProcessKeepers,
    contained: MakeContained,
    real: Path,
    tmp_path: Path,
    outsider: "subprocess.Popen[bytes]",
) -> None:
    (tmp_path / "own" / "loopwright.db").write_text("rows")
    (tmp_path / "others").write_text("theirs")
    script = READS[what].format(real=real, own=tmp_path / "own", tmp=tmp_path, pid=outsider.pid)
    spec = contained(sh=f"{script} && echo seen")
    assert (await run(keepers, spec)).code != 0
    assert "seen" not in await text_of(keepers, spec)


def test_a_file_with_secrets_that_settings_name_cannot_be_read_wherever_it_lies(
    bwrap: str, outside: Path, tmp_path: Path
) -> None:
    def read(own: tuple[Path, ...], **more: tuple[Path, ...]) -> str:
        walls = Bubblewrap(program=bwrap, own=own)
        reach = Reach(directory=tmp_path / "run", cwd=Path("/"), env={"PATH": PATH}, **more)
        words = [*walls.prefix(reach), "sh", "-c", f"cat {outside}; echo over"]
        return subprocess.run(words, capture_output=True, text=True).stdout

    (tmp_path / "run" / places.TMP).mkdir(parents=True)
    folder = (outside.parent,)
    assert read(()) == "preciousover\n"
    assert [read((outside,)), read((outside,), readable=folder), read((outside,), writable=folder)] == [
        "over\n"
    ] * 3
    assert outside.read_text() == "precious"


def test_the_files_of_secrets_in_the_settings_are_hidden(bwrap: str, tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "LOOPWRIGHT_HOME": str(tmp_path / "own"),
        "LOOPWRIGHT_SANDBOX__PROGRAM": bwrap,
        "LOOPWRIGHT_FORGE__TOKEN_FILE": "~/forge.token",
        "LOOPWRIGHT_ENV_FILE": "/srv/secrets.env",
    }
    found = chosen_sandbox(load(env, platform="linux"), env).sandbox
    assert isinstance(found, Bubblewrap)
    assert {tmp_path / "forge.token", Path("/srv/secrets.env"), tmp_path / "own"} <= set(found.own)


async def test_what_tools_need_of_home_can_be_read_and_what_an_agent_has_there_is_a_copy(
    keepers: ProcessKeepers, contained: MakeContained, real: Path, wording: Wording
) -> None:
    spec = contained(
        sh="cat ~/.gitconfig ~/.cargo/config.toml; ls -A ~; echo '{}' > ~/new.json; mv ~/new.json ~/.agent.json;"
        f"cat {real}/.agent/settings; echo; ls {real}/.agent/talks; echo x > {real}/.agent/hooks;"
        "echo x > ~/.agent/settings; echo x > ~/dropped; echo x > ~/.cargo/config.toml"
    )
    assert (await run(keepers, spec)).code != 0
    said = await text_of(keepers, spec)
    assert said[:7] == ["[user]", "name = Someone", "[net]", ".agent", ".agent.json", ".cargo", ".gitconfig"]
    wording(said[-1])
    assert said[7] == "mine", "settings may name files by their whole path"
    assert [line for line in said if "Read-only file system" in line] == said[8:]
    assert (real / ".agent.json").read_text() == '{"login": 1}'
    assert (real / ".agent" / "settings").read_text() == "mine"
    assert (real / ".cargo" / "config.toml").read_text() == "[net]\n"
    assert not (real / "dropped").exists()


async def test_a_process_outside_is_neither_seen_nor_signalled_nor_traced(
    keepers: ProcessKeepers, contained: MakeContained, outsider: "subprocess.Popen[bytes]"
) -> None:
    attempts = (
        "import ctypes, os, signal\n"
        f"pid = {outsider.pid}\n"
        "for what in (lambda: os.kill(pid, signal.SIGKILL), lambda: os.kill(-1, signal.SIGSTOP)):\n"
        "    try: what()\n"
        "    except OSError as refused: print(type(refused).__name__)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.ptrace.restype = ctypes.c_long\n"
        "print('traced' if libc.ptrace(16, pid, 0, 0) == 0 else 'not traced')\n"
        "print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))\n"
    )
    spec = contained(py=attempts)
    assert (await run(keepers, spec)).code == 0
    said = await text_of(keepers, spec)
    assert said[:3] == ["ProcessLookupError", "ProcessLookupError", "not traced"]
    first, itself = json.loads(said[3])
    assert (first, itself < 10) == (1, True), "it sees itself, and who reaps what it leaves behind"
    assert outsider.poll() is None
    assert Path(f"/proc/{outsider.pid}/stat").read_text().split()[2] in "SR"


@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_there_only_when_it_is_on(
    network: bool, keepers: ProcessKeepers, contained: MakeContained
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        spec = contained(
            py=f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('connected')",
            network=network,
        )
        ended = await run(keepers, spec)
    said = await text_of(keepers, spec)
    assert (ended.code == 0, "connected" in said) == (network, network)


async def test_sockets_of_the_machine_are_out_of_reach(
    keepers: ProcessKeepers, contained: MakeContained
) -> None:
    spec = contained(sh="find /run /var/run/ -type s 2>/dev/null | head; echo over")
    await run(keepers, spec)
    assert await text_of(keepers, spec) == ["over"]


async def test_the_user_can_let_more_through(
    keepers: ProcessKeepers, contained: MakeContained, tmp_path: Path, real: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    spec = contained(
        sh=f"echo x > {more}/made; cat {real}/Documents/diary; echo x > {real}/Documents/diary",
        write=(more,),
        read=(real / "Documents",),
    )
    await run(keepers, spec)
    assert any(line.startswith("dear diary") for line in await text_of(keepers, spec))
    assert (more / "made").read_text() == "x\n"
    assert (real / "Documents" / "diary").read_text() == "dear diary"


async def test_ending_it_takes_its_own_time_to_clean_up_and_nothing_stays(
    keepers: ProcessKeepers, contained: MakeContained, workspace: Path
) -> None:
    spec = contained(
        sh="trap 'echo asked > asked; exit 7' TERM; (setsid sleep 300 &) ; echo up; while :; do sleep 0.05; done",
        limits={"term_grace": 20.0},
    )
    await keepers.start(spec)
    async for line in keepers.follow(spec.directory):
        assert line.text == "up"
        break
    ended = await keepers.end(spec.directory)
    assert (ended.ended_by, ended.code) == ("asked", 7)
    assert (workspace / "asked").exists(), "the program itself was asked, not only the sandbox"
    assert _marked(spec.run_id) == []


async def test_a_signal_that_asks_politely_reaches_the_program(
    keepers: ProcessKeepers, contained: MakeContained, workspace: Path
) -> None:
    spec = contained(
        py="import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (open('asked', 'w').close(), sys.exit(3)))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(0.05)\n",
        interrupt="SIGINT",
        limits={"term_grace": 20.0},
    )
    await keepers.start(spec)
    async for _ in keepers.follow(spec.directory):
        break
    assert (await keepers.end(spec.directory)).code == 3
    assert (workspace / "asked").exists()


async def test_a_killed_keeper_takes_everything_in_the_sandbox_with_it(
    keepers: ProcessKeepers, contained: MakeContained
) -> None:
    spec = contained(sh="(setsid sleep 300 &); echo up; sleep 300")
    await keepers.start(spec)
    async for _ in keepers.follow(spec.directory):
        break
    assert len(_marked(spec.run_id)) >= 4
    os.kill(keeper_of(spec).pid, signal.SIGKILL)
    eventually(lambda: not _marked(spec.run_id), timeout=60)
    assert (await keepers.end(spec.directory)).ended_by == "lost"


async def test_the_sweep_finds_what_runs_in_a_sandbox(
    keepers: ProcessKeepers, contained: MakeContained
) -> None:
    spec = contained(sh="(setsid sleep 300 &); echo up; sleep 300")
    await keepers.start(spec)
    async for _ in keepers.follow(spec.directory):
        break
    assert await keepers.sweep(spec.run_id) >= 1
    ended = await keepers.wait(spec.directory)
    assert ended.code not in (0, None)
    assert _marked(spec.run_id) == []


def _marked(run_id: str) -> list[int]:
    """Return the processes with a run's marker that are no zombies."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = f"LOOPWRIGHT_RUN={run_id}".encode() in (folder / "environ").read_bytes()
            if marked and (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(folder.name))
        except OSError:
            continue
    return found
