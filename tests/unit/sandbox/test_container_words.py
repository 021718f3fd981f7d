"""How a container is asked for, and what is made of what was refused in it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters.sandbox import boxed
from loopwright.adapters.sandbox.container import Container, Engine, client_environment, remove_of_run
from loopwright.adapters.sandbox.mounts import mounts
from loopwright.core.values.containment import HomeView
from loopwright.keeper import places
from loopwright.ports import Reach


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    for name in ("run", "workspace", "user/.cargo", "lent", "given"):
        (tmp_path / name).mkdir(parents=True)
    return Reach(
        directory=tmp_path / "run",
        cwd=tmp_path / "workspace",
        env={"PATH": "/home/me/bin:/usr/bin", "TOKEN": "secret"},
        argv=("agent",),
        writable=(tmp_path / "workspace",),
        readable=(tmp_path / "lent",),
        home=HomeView(place=str(tmp_path / "home"), real=str(tmp_path / "user"), shown=(".cargo",)),
    )


def container(tmp_path: Path, kind: Any = "podman", **more: Any) -> Container:
    engine = Engine(program=f"/usr/bin/{kind}", kind=kind, **more)
    return Container(engine=engine, image="mine:1", image_path="/image/bin", notes=tmp_path / "notes")


def job_of(sandbox: Container, reach: Reach) -> dict[str, Any]:
    *start, job, end = sandbox.prefix(reach)
    assert (start[1:], end) == (["-I", "-S", boxed.__file__], "--")
    told: dict[str, Any] = json.loads(job)
    return told


def test_no_value_of_a_variable_is_among_the_words(tmp_path: Path, reach: Reach) -> None:
    assert "secret" not in " ".join(container(tmp_path).prefix(reach))


def test_the_run_has_its_own_things_at_their_own_paths_and_of_the_rest_nothing(
    tmp_path: Path, reach: Reach
) -> None:
    entries = [tuple(entry) for entry in job_of(container(tmp_path), reach)["mounts"]]
    workspace, lent, run = (str(tmp_path / name) for name in ("workspace", "lent", "run"))
    private, view = f"{run}/{places.TMP}", f"{run}/{places.HOME}"
    assert {
        ("write", workspace, workspace),
        ("read", lent, lent),
        ("write", private, private),
        ("write", private, "/tmp"),
        ("write", view, str(tmp_path / "home")),
        ("empty", "", str(tmp_path / "user")),
        ("read", str(tmp_path / "user/.cargo"), str(tmp_path / "user/.cargo")),
    } <= set(entries)
    assert not [at for _, _, at in entries if at == "/" or at.startswith(("/usr", "/etc", "/bin", "/lib"))]
    assert str(tmp_path / "given") not in {at for _, _, at in entries}


def test_what_the_user_names_is_brought_along_wherever_it_lies(tmp_path: Path, reach: Reach) -> None:
    table = mounts(reach, own=(), readable=("/usr/share",), writable=(), bare=True)
    assert table["/usr/share"].kind == "read"
    assert "/usr/share" not in mounts(reach, own=(), readable=("/usr/share",), writable=())


@pytest.mark.parametrize("network", [True, False])
def test_it_has_the_network_of_the_machine_or_none(network: bool, tmp_path: Path, reach: Reach) -> None:
    made = Reach(directory=reach.directory, cwd=reach.cwd, network=network)
    options = job_of(container(tmp_path), made)["options"]
    assert options[options.index("--network") + 1] == ("host" if network else "none")
    assert options[options.index("--pull") + 1] == "never"
    assert options[options.index("--cap-drop") + 1] == "ALL"


def test_what_is_written_belongs_to_the_user(tmp_path: Path, reach: Reach) -> None:
    podman, docker = Engine(program="p", kind="podman"), Engine(program="d", kind="docker")
    assert podman.user(1234, 99) == ("--userns", "keep-id", "--user", "1234:99")
    assert docker.user(1234, 99) == ("--user", "1234:99")
    assert Engine(program="d", kind="docker", rootless=True).user(1234, 99) == ("--user", "0:0")
    assert podman.user(0, 99) == ("--user", "0:99")
    options = job_of(container(tmp_path, "docker"), reach)["options"]
    assert options[options.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"


def test_a_client_is_told_where_its_daemon_is_and_no_more() -> None:
    env = {"DOCKER_HOST": "unix:///d", "HOME": "/home/me", "AWS_SECRET_ACCESS_KEY": "x"}
    assert client_environment(env) == {"DOCKER_HOST": "unix:///d", "HOME": "/home/me"}


def test_refusals_name_the_path_and_the_setting(tmp_path: Path, reach: Reach, wording: Wording) -> None:
    sandbox = container(tmp_path)
    given = "/usr/share"  # of the machine, and not of this image

    def told(line: str) -> str | None:
        return sandbox.denial(["working", line], reach)

    assert told(f"touch: {given}/x: Read-only file system") == (
        f"the sandbox kept it from writing {given}/x: to allow it, add the folder to sandbox.write"
    )
    wording(told(f"cat: {given}: No such file or directory"))
    assert told("cat: /nowhere/at/all: No such file or directory") is None
    assert told(f"cat: {reach.cwd}/x: No such file or directory") is None
    assert told("container: Error: no such image") == (
        "the container could not be started (container: Error: no such image): `loopwright doctor` says more"
    )
    for line in (
        "ERROR (catatonit:2): failed to exec pid1: No such file or directory",
        "[FATAL tini (7)] exec agent failed: No such file or directory",
    ):
        wording(told(line) or "")
    assert told("curl: (6) Could not resolve host: example.invalid") is None


@each_case(
    ("now", "found"),
    [
        ("/home/me/bin:/usr/bin", "/image/bin:/home/me/bin:/usr/bin"),
        ("/door:/home/me/bin:/usr/bin", "/door:/image/bin:/home/me/bin:/usr/bin"),
        ("/other", "/other:/image/bin"),
    ],
)
def test_programs_of_the_image_come_first_but_for_what_was_put_before_all(now: str, found: str) -> None:
    assert boxed.path_inside(now, "/home/me/bin:/usr/bin", "/image/bin") == found


def test_a_path_with_a_comma_is_one_path() -> None:
    assert boxed.mount_words("write", "/a,b", "/a,b") == 'type=bind,"source=/a,b","target=/a,b"'


@each_case(
    ("said", "gone"),
    [
        ("Error: No such container: x", True),
        ('no container with name or ID "x" found: no such container', True),
        ("dial unix /run/podman.sock: connect: no such file or directory", False),
    ],
)
def test_a_container_is_gone_when_its_engine_says_so_and_not_when_there_is_no_engine(
    said: str, gone: bool, tmp_path: Path
) -> None:
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 125\n")
    program.chmod(0o755)
    notes = tmp_path / "notes"
    notes.mkdir()
    note = notes / "loopwright-run_1-x"
    note.write_text(json.dumps({"engine": {"program": str(program), "kind": "docker"}, "client": {}}))
    if gone:
        assert remove_of_run(notes, "run_1", tries=1) == 1
    else:
        with raises_code("cannot_run"):
            remove_of_run(notes, "run_1", tries=1)
    assert note.exists() is not gone
