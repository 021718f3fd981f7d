"""Whether containers of an image hold on this machine: one really tries to get out. Known until the next boot."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.machine.files import delete
from loopwright.adapters.sandbox import boxed
from loopwright.adapters.sandbox.container import NOTES, Container, Engine, client_environment
from loopwright.adapters.sandbox.proof import Proof, known, outsider, remember, stamp_of, what_is_wrong
from loopwright.core.values.containment import HomeView
from loopwright.keeper import places
from loopwright.keeper.processes import Tree, numbers_of
from loopwright.ports import Reach

FILE: Final = "sandbox-container.json"
INSTALL: Final = "install the package podman, or docker; or set sandbox.engine to where one is"
_PATIENCE_S: Final = 60.0
_HIDDEN: Final = "no process inside may read this"
_NAMES: Final = ("podman", "docker")
_MARK: Final = "container-proof"

_ATTEMPTS: Final = """
try() { name=$1; shift; if why=$("$@" 2>&1); then echo "$name="; else echo "$name=${why:-refused}"; fi; }
put() { echo written from inside >> "$1"; }
link() { ln -s "$2" "$1" && put "$1"; }
try workspace put "$1/made"
try temporary put "$TMPDIR/made"
try outside put "$2"
try link link "$1/link" "$2"
try secret cat "$3"
try signal kill -9 "$4"
try root ls "/proc/$4/root/"
echo "network=$(readlink /proc/self/ns/net)"
read over
"""
"""A shell and the plainest programs are all that can be counted on in an image."""

_ADVICE: Final = (
    (
        "no such image|image not known|no such object",
        "get it with `{kind} pull {image}`, or make it with `{kind} build -t {image} .`",
    ),
    (
        r"docker daemon|docker\.sock",
        "start the docker daemon and see that you may use it (the group docker), or install podman",
    ),
    (
        "subuid|subgid|newuidmap|newgidmap|user namespace",
        "install uidmap, run `sudo usermod -v 100000-165535 -w 100000-165535 $USER`, then `podman system migrate`",
    ),
    (
        "container-init|catatonit|docker-init",
        "install the package catatonit (for podman) or docker-init: it is the first process of each container",
    ),
    (
        "cgroup",
        'another runtime may know these cgroups: put `runtime = "runc"` below [engine] into containers.conf',
    ),
    (
        "/bin/sh",
        "name an image with a shell and the usual small programs: gates are run by /bin/sh",
    ),
)
"""What to do about what an engine complains of."""


class Unusable(Exception):
    """An engine or an image cannot be used; the text says why."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    id: str
    path: str


def container_proof(
    program: str, image: str, home: Path, env: Mapping[str, str]
) -> tuple[Proof, Container | None]:
    """Return whether containers of an image hold here, and the sandbox if they do; `auto` is podman, else docker."""
    proven = Proof(holds=False, why_not="neither podman nor docker was found", fix=INSTALL)
    for name in _NAMES if program == "auto" else (program,):
        found = shutil.which(os.path.expanduser(name), path=env.get("PATH"))
        if found is None:
            if program != "auto":
                proven = Proof(holds=False, why_not=f"the program {name!r} was not found", fix=INSTALL)
            continue
        tried, container = _proof(found, image, home, env)
        if container is not None:
            return tried, container
        # What is wrong with the first is told: it is the one that would be used.
        proven = tried if not proven.program else proven
    return proven, None


def _proof(program: str, image: str, home: Path, env: Mapping[str, str]) -> tuple[Proof, Container | None]:
    says = ""
    try:
        engine, says = _engine(program, client_environment(env))
        found = _inspected(engine, image)
        container = Container(
            engine=engine,
            says=says,
            image=image,
            image_id=found.id,
            image_path=found.path,
            notes=home / NOTES,
        )
        stamp = stamp_of(program, says, found.id)
        proven = known(home / FILE, stamp)
        if proven is None:
            proven = _try(container, says, home)
            remember(home / FILE, stamp, proven)
    except Unusable as trouble:
        return Proof(holds=False, program=program, says=says, why_not=str(trouble), fix=trouble.fix), None
    return proven, container


def _engine(program: str, client: Mapping[str, str]) -> tuple[Engine, str]:
    says = _asked([program, "--version"], client, "podman", "")
    # A docker may be podman by another name.
    kind: Literal["podman", "docker"] = "podman" if "podman" in says.lower() else "docker"
    rootless = False
    if kind == "docker":
        told = _asked([program, "info", "--format", "{{json .SecurityOptions}}"], client, kind, "")
        rootless = "rootless" in told
    return Engine(program=program, kind=kind, client=client, rootless=rootless), says


def _inspected(engine: Engine, image: str) -> _Image:
    told = _asked([engine.program, "image", "inspect", image], engine.client, engine.kind, image)
    try:
        about = json.loads(told)[0]
        entries = about["Config"].get("Env") or []
        path = next((entry.removeprefix("PATH=") for entry in entries if entry.startswith("PATH=")), "")
        return _Image(id=about["Id"], path=path)
    except (ValueError, LookupError, TypeError, AttributeError) as trouble:
        raise Unusable(
            f"what {engine.kind} says of the image {image} is not understood: {trouble!r}"
        ) from trouble


def _asked(words: list[str], client: Mapping[str, str], kind: str, image: str) -> str:
    try:
        said = subprocess.run(
            words,
            env=dict(client),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise Unusable(str(problem)) from problem
    if said.returncode != 0:
        raise _unusable(said.stderr, kind, image)
    return said.stdout.strip()


def _unusable(said: str, kind: str, image: str) -> Unusable:
    lines = [line for line in said.strip().splitlines() if boxed.NOT_STARTED not in line]
    last = (lines or ["it does not say why"])[-1]
    for words, fix in _ADVICE:
        if re.search(words, said, re.IGNORECASE):
            return Unusable(last, fix.format(kind=kind, image=image))
    return Unusable(last)


def _try(container: Container, says: str, home: Path) -> Proof:
    with tempfile.TemporaryDirectory(
        prefix="loopwright-proof-", dir=home if home.is_dir() else None, ignore_cleanup_errors=True
    ) as folder:
        place = Path(folder).resolve()
        container = replace(container, notes=place / NOTES)  # looking makes no home
        here = os.readlink("/proc/self/ns/net") if os.path.exists("/proc/self/ns/net") else ""
        try:
            done, wrong = _attempted(container, place / "on", network=True)
            if not wrong and done["network"] != here:
                wrong = "the network cannot be used in it"
            if wrong:
                raise _unusable(wrong, container.engine.kind, container.image)
            cut, trouble = _attempted(container, place / "off", network=False)
        except (OSError, subprocess.SubprocessError, KeyError) as problem:
            raise Unusable(f"it does not work here: {problem}") from problem
        cuts = not trouble and cut["network"] not in ("", here)
        return Proof(holds=True, program=container.engine.program, says=says, cuts_network=cuts)


def _attempted(container: Container, place: Path, *, network: bool) -> tuple[dict[str, str], str]:
    """Let a container try to get out; return what it says of each attempt, and what is wrong with it."""
    directory, workspace, user, shown = (place / name for name in ("run", "workspace", "user", "shown"))
    for folder in (directory / places.TMP, directory / places.HOME, workspace, user, shown):
        folder.mkdir(parents=True)
    outside, secret = shown / "outside", user / "secret"
    outside.write_text("")
    secret.write_text(_HIDDEN)
    home = container.view(HomeView(place=str(place / "home"), real=str(user)))
    mark = f"{_MARK}-{os.getpid()}"
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": str(directory / places.TMP),
        places.MARKER: mark,
    }
    reach = Reach(
        directory=directory,
        cwd=workspace,
        env=env,
        writable=(workspace,),
        readable=(shown,),
        home=home,
        network=network,
    )
    with outsider() as (pid, _):
        words = ("/bin/sh", "-c", _ATTEMPTS, "sh", str(workspace), str(outside), str(secret), str(pid))
        with subprocess.Popen(
            [*container.prefix(reach), *words],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            done, seen = _listened(process, mark)
            _, said = process.communicate(timeout=_PATIENCE_S)
        if "network" not in done:
            return {}, f"it does not work here: {said.strip() or f'exit code {process.returncode}'}"
        wrong = what_is_wrong(done, outside=outside, made=workspace / "made", pid=pid)
        if not seen:
            wrong = (
                wrong
                or "its processes cannot be seen from outside, so Loopwright could not end them for sure"
            )
    delete(place)
    return done, wrong


def _listened(process: "subprocess.Popen[str]", mark: str) -> tuple[dict[str, str], bool]:
    """Return what the attempts said, and whether more was seen of them from outside than who waits for them."""
    done: dict[str, str] = {}
    assert process.stdout is not None
    for line in process.stdout:
        name, found, why = line.rstrip("\n").partition("=")
        if found:
            done[name] = why
        if name == "network":
            ours = numbers_of(os.getpid())
            return done, any(numbers_of(one.pid) not in ("", ours) for one in Tree(mark).living())
    return done, False
