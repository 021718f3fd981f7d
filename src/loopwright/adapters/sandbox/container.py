"""A sandbox made by podman or docker: the process has the file system of an image, and of this machine only its own."""

import fcntl
import json
import logging
import os
import re
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.sandbox import boxed
from loopwright.adapters.sandbox.bubblewrap import only_tool_chains
from loopwright.adapters.sandbox.mounts import Mount, Table, covering, denied, is_within, mounts, ordered
from loopwright.core.values.containment import Containment, HomeView, MadeWith
from loopwright.core.values.errors import CannotRun
from loopwright.keeper import places
from loopwright.ports import Reach

NOTES: Final = "containers"
"""The folder of the home that names each container that may be there."""
CLIENT_VARIABLES: Final = (
    *("HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "LANG", "DBUS_SESSION_BUS_ADDRESS"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE"),
    *("CONTAINERS_STORAGE_CONF", "STORAGE_DRIVER"),
)
"""What a client is told of the user's environment: where its storage or its daemon is."""
_ALWAYS: Final = (
    # The image has to be there: what a run starts in is never fetched behind the user's back.
    *("--pull", "never"),
    *("--read-only", "--interactive", "--log-driver", "none"),
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    # Files of the user keep the label that they have.
    *("--security-opt", "label=disable"),
    # The image's own way of starting is for what it was made for; and a process has to reap what agents leave behind.
    *("--entrypoint", "", "--init"),
)
_NOT_FOUND: Final = re.compile(r"catatonit\S*: failed to exec pid1: |\[FATAL tini \(\d+\)\] exec .* failed: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A podman or docker that was found here."""

    program: str
    kind: Literal["podman", "docker"]
    client: Mapping[str, str] = field(default_factory=dict)
    """Its own environment."""
    rootless: bool = False
    """Who is root in its containers is this user outside of them."""

    def user(self, uid: int, gid: int) -> tuple[str, ...]:
        """Return the words that have files belong to this user outside, whatever the user is inside."""
        if self.kind == "docker" and self.rootless:
            return ("--user", "0:0")
        kept = ("--userns", "keep-id") if self.kind == "podman" and uid != 0 else ()
        return (*kept, "--user", f"{uid}:{gid}")


def client_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a client of an engine needs."""
    return {name: env[name] for name in CLIENT_VARIABLES if name in env}


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Contains processes with podman or docker."""

    engine: Engine
    image: str
    """As the user calls it."""
    image_id: str = ""
    """What the name meant when it was tried."""
    image_path: str = ""
    """Where the image has its programs."""
    notes: Path
    own: tuple[Path, ...] = ()
    """Folders of Loopwright itself, which no run sees."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """What the user lets every run read or write besides."""
    says: str = ""
    """What the engine says that it is; its kind where it says nothing."""
    level: Containment = Containment.CONTAINER

    @property
    def made_with(self) -> MadeWith:
        """Return the engine with its version, and the image by its name and by what that meant."""
        return MadeWith(program=self.says or self.engine.kind, image=self.image, image_id=self.image_id)

    def view(self, home: HomeView | None) -> HomeView | None:
        """Show tool chains only, and what was shown or kept by name: agents may be installed there."""
        return only_tool_chains(home)

    def prefix(self, reach: Reach) -> tuple[str, ...]:
        """Return the words to put before a command's own."""
        job = {
            "engine": {"program": self.engine.program, "kind": self.engine.kind},
            "client": dict(self.engine.client),
            "notes": str(self.notes),
            "image": self.image_id or self.image,
            "image_path": self.image_path,
            "path": reach.env.get("PATH", ""),
            "options": [
                *_ALWAYS,
                *self.engine.user(os.getuid(), os.getgid()),
                *("--network", "host" if reach.network else "none"),
                *_limits(),
                *("--workdir", str(reach.cwd)),
            ],
            "mounts": [
                entry for at, mount in ordered(self._table(reach)) for entry in _entries(at, mount, reach)
            ],
        }
        return (sys.executable, "-I", "-S", boxed.__file__, json.dumps(job), "--")

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:
        """Return which refusal of the sandbox a program's last words complain of, and the setting that allows it."""
        table = self._table(reach)
        for line in output:
            if line.startswith("container: "):
                return f"the container could not be started ({line}): `loopwright doctor` says more"
            if _NOT_FOUND.search(line):
                what = reach.argv[0] if reach.argv else "its program"
                return (
                    f"{what} is not in the image {self.image}: put it into the image that sandbox.image names, or add "
                    "the folder that it is installed in to sandbox.read"
                )
        show = "add it to sandbox.read, or put it into the image that sandbox.image names"
        return denied(output, table, reach, is_hidden=_is_left_out, show=show)

    def _table(self, reach: Reach) -> Table:
        return mounts(
            reach,
            own=map(os.fspath, self.own),
            readable=map(os.fspath, self.readable),
            writable=map(os.fspath, self.writable),
            bare=True,
        )


def _entries(at: str, mount: Mount, reach: Reach) -> list[tuple[str, str, str]]:
    """Return how something is mounted in a container, if it is."""
    match mount.kind:
        # What is the run's own may be written only when it starts.
        case "read" if os.path.exists(mount.source) or is_within(mount.source, (str(reach.directory),)):
            return [("read", mount.source, at)]
        case "write":
            return [("write", mount.source, at)]
        case "empty":
            return [("empty", "", at)]
        case "mask":
            return [("read", os.devnull, at)]
        # A container begins without any links. Only that to HOME is missed; what others lead to is not to be seen.
        case "link" if mount.source == os.path.join(reach.directory, places.HOME):
            return [("write", mount.source, at)]
        case _:
            return []


def _is_left_out(table: Table, path: str) -> bool:
    mount = covering(table, path)
    return mount is None or mount.kind in {"empty", "mask"}


def _limits() -> tuple[str, ...]:
    """Return the limits that this process has itself: an engine's own may be more than it can give."""
    words: list[str] = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        soft, hard = resource.getrlimit(number)
        most = _most_processes() if name == "nproc" else hard
        if hard == resource.RLIM_INFINITY and name == "nofile":
            continue
        hard = most if hard == resource.RLIM_INFINITY else min(hard, most)
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
        words += ["--ulimit", f"{name}={soft}:{hard}"]
    return tuple(words)


def _most_processes() -> int:
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 32768


# Containers without a process in charge: of killed runs, and of before a crash of the machine.

log = logging.getLogger(__name__)


def remove_of_run(notes: Path, run_id: str, tries: int = boxed.TRIES) -> int:
    """Remove the containers of a run, whichever process is in charge of them; return how many there may have been.

    Raise `CannotRun` when one may be there still: its workspace may be in use.
    """
    found = list(notes.glob(f"loopwright-{run_id}-*"))
    stay = [note.name for note in found if not _remove(note, tries)]
    if stay:
        raise CannotRun(f"a container could not be removed: {', '.join(stay)}")
    return len(found)


def remove_abandoned(notes: Path) -> int:
    """Remove the containers without a process in charge; return how many there may have been.

    One that stays keeps its note, and is removed the next time.
    """
    found = [note for note in notes.glob("loopwright-*") if _is_abandoned(note)]
    for note in found:
        if not _remove(note, boxed.TRIES):
            log.warning("container not removed", extra={"container": note.name})
    return len(found)


def _is_abandoned(note: Path) -> bool:
    """Return whether both processes that look after a container are gone: either would hold its note."""
    try:
        fd = os.open(note, os.O_RDONLY)
    except OSError:
        return False  # removed just now
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _remove(note: Path, tries: int) -> bool:
    try:
        job = json.loads(note.read_text())
    except FileNotFoundError:
        return True
    except ValueError:
        # It is written before anything is made, so there was nothing to remove.
        note.unlink(missing_ok=True)
        return True
    if not boxed.remove(job, note.name, tries):
        return False
    note.unlink(missing_ok=True)
    return True
