"""The program that runs a command in a container and lives as long as it does: `python -I -S boxed.py JOB -- COMMAND`.

Standard library only. It makes the container, starts it, and removes it. Its exit code is the command's; 125 when
there was no container to run it in, told on its own line that begins with `container: `.

What the command's variables hold is in its environment and not in its words: those can be read by everyone. A note in
Loopwright's home is there for as long as the container may be. A second process, which nothing but a kill ends, removes
the container when the first is killed; when both are, the next process that finds a note without a holder does.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "LOOPWRIGHT_RUN"
FAILED = 125
"""What both engines say when they could not even begin; 126 and 127 may be the command's own."""
NOT_STARTED = "it was not started, see above"
_POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DONE = b"."
TRIES = 20
_PAUSE_S = 0.25
_GONE = re.compile(r"no such (?:container|object)", re.IGNORECASE)
"""What is said of a container that is not there; a daemon that is not there has no such file."""
_LATE_S = 1.0
_PATIENCE_S = 60.0


def main(told: str, command: list[str]) -> int:
    """Run a command in its own container."""
    job: dict[str, Any] = json.loads(told)
    run = os.environ.get(MARKER, "none")
    name = f"loopwright-{run}-{os.urandom(4).hex()}"
    note = os.path.join(job["notes"], name)
    # The end of a run signals each of its processes; the one that cleans up after it must not get that.
    signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
    held = take_note(note, job)
    ear = _ear(job, name)
    guard = _guard(job, name, note, ear)
    try:
        return _kept(job, run, name, command)
    finally:
        if remove(job, name):
            _forget(note)
        os.write(guard, _DONE)
        os.kill(ear, signal.SIGKILL)
        os.close(held)


def take_note(path: str, job: dict[str, Any]) -> int:
    """Write down that a container may be there, before it is; the holder of the note is in charge of it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, json.dumps({"engine": job["engine"], "client": job["client"]}).encode())
    os.fsync(fd)
    return fd


def remove(job: dict[str, Any], name: str, tries: int = TRIES) -> bool:
    """Have no such container any more, whatever it is doing; return whether that is so."""
    program, client = job["engine"]["program"], job["client"]
    now = ["--time", "0"] if job["engine"]["kind"] == "podman" else []
    for _ in range(tries):
        code, told, said = _called([program, "rm", "--force", *now, name], client)
        if code == 0 and not told.strip():
            # Podman says so also of one that it has only begun to remove.
            said = _called([program, "container", "inspect", name], client)[2]
        if told.strip() or _GONE.search(said):
            return True
        if code < 0:
            return False  # the whole run is being ended, and this with it
        time.sleep(_PAUSE_S)
    return False


def _kept(job: dict[str, Any], run: str, name: str, command: list[str]) -> int:
    program, client = job["engine"]["program"], job["client"]
    inner = _environment()
    inner["PATH"] = path_inside(inner.get("PATH", ""), job["path"], job["image_path"])
    create = [program, "create", "--name", name, "--label", f"loopwright.run={run}", *job["options"]]
    for value in sorted(inner):
        # Names the client itself needs are never secrets; of all others it is told the name alone.
        create += ["--env", f"{value}={inner[value]}" if value in client else value]
    _make_places(job["mounts"])
    for kind, source, at in job["mounts"]:
        if kind == "empty":
            create += ["--tmpfs", f"{at}:rw,exec,mode=1777"]
        elif os.path.exists(source):
            create += ["--mount", mount_words(kind, source, at)]
    create += [job["image"], *command]
    code, _, said = _called(create, {**inner, **client})
    if code != 0:
        return _failed(said)
    started = [program, "start", "--attach", "--interactive", name]
    code = subprocess.call(started, env=client, start_new_session=True)
    if code < 0:
        # Only the client was ended: the container says how it ended.
        _, said, _ = _called([program, "wait", name], client, patience_s=None)
        return int(said) if said.strip().isdigit() else 128 - code
    if code in (FAILED, 126, 127):
        began = _called([program, "container", "inspect", "--format", "{{.State.StartedAt}}", name], client)
        if began[0] != 0 or began[1].startswith("0001-"):
            return _failed(began[2] or NOT_STARTED)
    return code


def _environment() -> dict[str, str]:
    """Return the environment as it was given: Python adds its own locale."""
    with open("/proc/self/environ", "rb") as file:
        entries = [os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0")]
    return {name: value for name, found, value in entries if name and found}


def _failed(said: str) -> int:
    lines = said.strip().splitlines() or ["it gave no reason"]
    sys.stderr.write(f"container: {lines[-1]}\n")
    return FAILED


def _make_places(mounts: list[tuple[str, str, str]]) -> None:
    """Make what is mounted upon, where it lies in something of the user's: an engine would make it as another user."""
    known = {at: source if kind == "write" and os.path.isdir(source) else "" for kind, source, at in mounts}
    for kind, source, at in mounts:
        above = os.path.dirname(at)
        while above != "/" and above not in known:
            above = os.path.dirname(above)
        place = os.path.join(known.get(above, ""), os.path.relpath(at, above))
        if not known.get(above) or os.path.lexists(place) or not (kind == "empty" or os.path.exists(source)):
            continue
        is_folder = kind == "empty" or os.path.isdir(source)
        os.makedirs(place if is_folder else os.path.dirname(place), exist_ok=True)
        if not is_folder:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))


def path_inside(now: str, given: str, image: str) -> str:
    """Return where programs are looked for: in the image first, but for what was put before all others on purpose."""
    if not now.endswith(given):
        return os.pathsep.join(filter(None, [now, image]))
    return os.pathsep.join(filter(None, [now[: len(now) - len(given)].rstrip(os.pathsep), image, given]))


def mount_words(kind: str, source: str, at: str) -> str:
    """Return how both engines are told of a mount: fields as in a table, so that a comma can be part of one."""
    fields = ["type=bind", f"source={os.path.realpath(source)}", f"target={at}"]
    # Read-only holds for one mount alone: what is mounted below it would stay writable, so it is not shown.
    fields += ["readonly", "bind-nonrecursive=true"] if kind == "read" else []
    return ",".join(
        '"' + field.replace('"', '""') + '"' if set(field) & set(',"\n') else field for field in fields
    )


def _called(
    words: list[str], env: dict[str, str], *, patience_s: float | None = _PATIENCE_S
) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=patience_s,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return FAILED, "", str(problem)
    return done.returncode, done.stdout, done.stderr


def _ear(job: dict[str, Any], name: str) -> int:
    """Leave a process in our group that passes on what the group is asked; return its number.

    A client would do that too, but not each of them stays until the container has answered.
    """
    pid = os.fork()
    if pid:
        return pid
    while True:
        number = signal.sigwait(_POLITE)
        for _ in range(TRIES):
            # Until it runs, no process in there can be asked.
            words = [job["engine"]["program"], "kill", "--signal", str(int(number)), name]
            if _called(words, job["client"])[0] == 0:
                break
            time.sleep(_PAUSE_S)


def _guard(job: dict[str, Any], name: str, note: str, ear: int) -> int:
    """Leave a process behind that removes the container when this one ends without a word; return the line to it."""
    theirs, ours = os.pipe()
    if os.fork():
        os.close(theirs)
        return ours
    try:
        os.close(ours)
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        if os.read(theirs, 1) != _DONE:
            _end(ear)
            gone = remove(job, name)
            if gone and job["engine"]["kind"] == "docker":
                # A daemon may only now have made what a client asked for before it was ended.
                time.sleep(_LATE_S)
                gone = remove(job, name)
            if gone:
                _forget(note)
    finally:
        os._exit(0)


def _forget(note: str) -> None:
    try:
        os.unlink(note)
    except FileNotFoundError:
        return  # the end of the whole run was quicker


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3:]))
