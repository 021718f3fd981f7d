"""Whether a sandbox holds on this machine: a child really tries to get out of it. Known until the next boot."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from loopwright import __version__
from loopwright.adapters.machine.files import delete, write_atomically
from loopwright.adapters.machine.host import boot_id
from loopwright.adapters.sandbox import attempts
from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.core.values.containment import HomeView
from loopwright.keeper import places
from loopwright.ports import Reach

FILE: Final = "sandbox.json"
_PATIENCE_S: Final = 20.0
_HIDDEN: Final = "no process inside may read this"
_MUST: Final = {"workspace": "write its workspace", "temporary": "write its TMPDIR"}
_MUST_NOT: Final = {
    "secret": "read a hidden file of HOME",
    "root": "look at a process outside",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was found out about a sandbox."""

    holds: bool
    program: str = ""
    """Where it is."""
    why_not: str = ""
    cuts_network: bool = False
    """It can also take the network away."""
    says: str = ""
    """What the program calls itself."""
    fix: str = ""
    """What to do where it does not hold, if that is known."""


def proof(program: str, home: Path) -> Proof:
    """Return whether bubblewrap holds here, from what was found since the machine was started, or by trying it."""
    found = shutil.which(os.path.expanduser(program))
    if found is None:
        return Proof(holds=False, why_not=f"the program {program!r} was not found")
    stamp = stamp_of(found)
    path = home / FILE
    kept = known(path, stamp)
    if kept is not None:
        return kept
    tried = _try(found, home)
    remember(path, stamp, tried)
    return tried


def stamp_of(program: str, *more: str) -> list[Any]:
    """Return what a proof is about: this boot, this program, this user, this version of Loopwright."""
    real = Path(program).resolve()
    about = real.stat()
    return [boot_id(), str(real), about.st_mtime_ns, about.st_size, os.getuid(), __version__, *more]


def known(path: Path, stamp: list[Any]) -> Proof | None:
    """Return what was found out before, if it is about the same."""
    try:
        kept = json.loads(path.read_text())
        return Proof(**kept) if kept.pop("stamp") == stamp else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # never tried, or written by another version: it is tried again


def remember(path: Path, stamp: list[Any], tried: Proof) -> None:
    """Keep what was found out, if it holds: what does not is tried again each time."""
    if tried.holds and path.parent.is_dir():
        try:
            write_atomically(path, json.dumps({**asdict(tried), "stamp": stamp}))
        except OSError:
            return  # a home that cannot be written is told of elsewhere; here it costs time only


def _try(program: str, home: Path) -> Proof:
    with tempfile.TemporaryDirectory(
        prefix="loopwright-proof-", dir=home if home.is_dir() else None, ignore_cleanup_errors=True
    ) as folder:
        place = Path(folder).resolve()
        try:
            says = subprocess.run(
                [program, "--version"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            ).stdout.strip()
            done, broken = _attempted(program, place / "on", network=True)
            if broken:
                return Proof(holds=False, program=program, why_not=broken, says=says)
            if done["network"]:
                broken = f"the network cannot be used in it: {done['network']}"
                return Proof(holds=False, program=program, why_not=broken, says=says)
            cut, trouble = _attempted(program, place / "off", network=False)
        except (OSError, subprocess.SubprocessError) as problem:
            return Proof(holds=False, program=program, why_not=str(problem))
        cuts = not trouble and bool(cut["network"])
        return Proof(holds=True, program=program, says=says, cuts_network=cuts)


def _attempted(program: str, place: Path, *, network: bool) -> tuple[dict[str, str], str]:
    """Let a child try to get out; return what it says of each attempt, and what is wrong with the sandbox."""
    directory, workspace, user = place / "run", place / "workspace", place / "user"
    for folder in (directory / places.TMP, directory / places.HOME, workspace, user):
        folder.mkdir(parents=True)
    outside, secret = place / "outside", user / "secret"
    outside.write_text("")
    secret.write_text(_HIDDEN)
    sandbox = Bubblewrap(program=program, readable=(Path(attempts.__file__),))
    env = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(directory / places.TMP)}
    home = sandbox.view(HomeView(place=str(place / "home"), real=str(user)))
    reach = Reach(
        directory=directory, cwd=workspace, env=env, writable=(workspace,), home=home, network=network
    )
    with outsider() as (pid, port):
        where = {
            "workspace": str(workspace),
            "outside": str(outside),
            "secret": str(secret),
            "pid": pid,
            "port": port,
        }
        ended = subprocess.run(
            [*sandbox.prefix(reach), sys.executable, "-I", "-S", attempts.__file__, json.dumps(where)],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            return {}, f"it does not work here: {last}"
        done: dict[str, str] = json.loads(ended.stdout)
        wrong = what_is_wrong(done, outside=outside, made=workspace / "made", pid=pid)
    delete(place)
    return done, wrong


def what_is_wrong(done: Mapping[str, str], *, outside: Path, made: Path, pid: int) -> str:
    """Return what is wrong with a sandbox, from what a child in it reports and from what really happened."""
    wrong = [f"one cannot {what} in it: {done[name]}" for name, what in _MUST.items() if done[name]]
    wrong += [f"one can {what} from it" for name, what in _MUST_NOT.items() if not done[name]]
    # Judged by what happened, not by what was said: a write into a copy that vanishes does no harm.
    if outside.read_text():
        wrong.append("one can write outside of the workspace from it")
    if not made.exists():
        wrong.append("what is written in the workspace does not stay")
    elif made.stat().st_uid != os.getuid():
        wrong.append("files written in the workspace belong to another user")
    if not _lives(pid):
        wrong.append("one can kill processes outside from it")
    return "; ".join(wrong)


@contextmanager
def outsider() -> Iterator[tuple[int, int]]:
    """Have a process and a listening port outside, for as long as a process inside tries to reach them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        try:
            yield process.pid, listener.getsockname()[1]
        finally:
            process.kill()
            process.wait()


def _lives(pid: int) -> bool:
    """Return whether our child of that number has not been killed: until it is waited for, it keeps the number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
