"""A real podman and a real docker for tests, and an image of this machine's own programs: no registry is asked."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.fakes.agent_binaries import bundled_claude
from tests.waiting import eventually

from loopwright.adapters.sandbox.container import Container
from loopwright.adapters.sandbox.container_proof import container_proof

IMAGE = f"localhost/loopwright-tests:{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}"
SIGN = "/etc/made-for-tests"
"""Only the image has this."""
_PROGRAMS = (
    *(
        "sh",
        "bash",
        "cat",
        "cp",
        "chmod",
        "chown",
        "echo",
        "env",
        "false",
        "find",
        "git",
        "grep",
        "head",
        "id",
        "ln",
    ),
    *(
        "ls",
        "mkdir",
        "mount",
        "mv",
        "python3",
        "readlink",
        "rm",
        "sed",
        "seq",
        "setsid",
        "sleep",
        "sort",
        "stat",
    ),
    *("tail", "test", "touch", "tr", "true", "umount", "uname", "unshare", "wc"),
)


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What podman has to be told by its environment on this machine; the image `IMAGE` is there."""
    assert shutil.which("podman"), "`make test-containers` installs podman"
    place = tmp_path_factory.mktemp("podman")
    env = client_environment(place)
    with (Path(tempfile.gettempdir()) / f"loopwright-image-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes want it too
        make_image(place, {**os.environ, **env})
    return env


@pytest.fixture(scope="session")
def podman_container(tmp_path_factory: pytest.TempPathFactory, podman: dict[str, str]) -> Container:
    """A sandbox of real containers, proven to hold."""
    found, made = container_proof("podman", IMAGE, tmp_path_factory.mktemp("proof"), {**os.environ, **podman})
    assert made is not None, found
    return made


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory, podman: dict[str, str]) -> Iterator[dict[str, str]]:
    """What docker has to be told to use a daemon of the tests' own, which has the same image."""
    if shutil.which("dockerd") is None or os.getuid() != 0:
        pytest.skip("no dockerd that may be started: install the package docker.io, and be root")
    place = tmp_path_factory.mktemp("docker")
    address = f"unix://{place}/socket"
    daemon = ["dockerd", "--iptables=false", "--bridge=none", "--host", address]
    for option in ("data-root", "exec-root", "pidfile"):
        daemon += [f"--{option}", str(place / option)]
    client = {"DOCKER_HOST": address}
    packed = place / "image.tar"
    saved = ["podman", "save", "--quiet", "--format", "docker-archive", "--output", packed, IMAGE]
    subprocess.run(saved, env={**os.environ, **podman}, check=True)
    with (place / "log").open("w") as log, subprocess.Popen(daemon, stdout=log, stderr=log) as process:
        try:
            call = {"env": {**os.environ, **client}, "capture_output": True}
            eventually(lambda: subprocess.run(["docker", "version"], **call).returncode == 0, timeout=60)
            subprocess.run(["docker", "load", "--input", packed], **call, check=True)
            packed.unlink()
            yield client
        finally:
            process.terminate()
            process.wait(timeout=60)
            # It leaves this mounted, and so nobody could remove the folder.
            subprocess.run(["umount", place / "exec-root" / "netns" / "default"], capture_output=True)


@pytest.fixture(scope="session")
def docker_container(tmp_path_factory: pytest.TempPathFactory, docker: dict[str, str]) -> Container:
    """The same sandbox, made by docker."""
    found, made = container_proof("docker", IMAGE, tmp_path_factory.mktemp("proof"), {**os.environ, **docker})
    assert made is not None, found
    return made


def client_environment(place: Path) -> dict[str, str]:
    """Return how podman is told to work on a machine whose cgroups are mixed: only one of its runtimes can do that."""
    mixed = Path("/sys/fs/cgroup/unified").is_dir() and shutil.which("runc") is not None
    settings = place / "containers.conf"
    settings.write_text('[engine]\nruntime = "runc"\n' if mixed else "")
    return {"CONTAINERS_CONF": str(settings)}


def make_image(place: Path, env: Mapping[str, str]) -> None:
    """Make the image, unless it is there already."""
    if subprocess.run(["podman", "image", "exists", IMAGE], env=env).returncode == 0:
        return
    root = place / "root"
    for folder in ("tmp", "run", "proc", "sys", "dev", "etc", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    for path in sorted(set(_files())):
        _copy(path, root)
    # A machine whose programs are all below /usr has links to there.
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(Path("/", name).readlink())
    (root / SIGN.lstrip("/")).touch()
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    change = "ENV PATH=/usr/local/bin:/usr/bin:/bin"
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as packed:
        imported = ["podman", "import", "--quiet", "--change", change, "-", IMAGE]
        subprocess.run(imported, stdin=packed.stdout, stdout=subprocess.DEVNULL, env=env, check=True)
    assert packed.returncode == 0


def _files() -> Iterator[Path]:
    for name in _PROGRAMS:
        found = shutil.which(name, path="/usr/bin:/bin")
        if found is not None:
            yield from _with_libraries(Path(found))
    system = Path(found).resolve() if (found := shutil.which("python3", path="/usr/bin:/bin")) else None
    if system is not None:
        library = Path("/usr/lib") / system.name
        yield library
        for module in library.glob("lib-dynload/*.so"):
            yield from _libraries(module)
    for module in Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so"):
        yield from _libraries(module)
    yield from _libraries(Path(sys.executable))
    # Which is not in the image itself: it is seen where it is installed.
    if (claude := bundled_claude()) is not None:
        yield from _libraries(claude)
    yield Path("/usr/lib/git-core")


def _with_libraries(path: Path) -> Iterator[Path]:
    yield path
    yield path.resolve()
    yield from _libraries(path)


@cache
def _libraries(path: Path) -> tuple[Path, ...]:
    said = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return tuple(Path(found) for found in re.findall(r"(?:=> |^\s+)(/\S+)", said, re.MULTILINE))


def _copy(path: Path, root: Path) -> None:
    """Copy a file, or a folder without what only tests of Python need, to where it belongs below a root."""
    inside = path.parent.resolve() / path.name
    if not inside.exists() or str(inside).startswith(str(Path.home())):
        return
    target = root / str(inside).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if inside.is_dir():
        left_out = shutil.ignore_patterns(
            "test", "tests", "__pycache__", "idlelib", "ensurepip", "dist-packages"
        )
        shutil.copytree(inside, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    elif not target.is_symlink() and not target.exists():
        shutil.copy2(inside, target, follow_symlinks=False)
        if inside.is_symlink():
            _copy(inside.resolve(), root)
