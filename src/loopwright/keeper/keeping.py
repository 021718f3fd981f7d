"""The keeper's loop: reads, records, answers, watches the limits, and writes the exit file last."""

from __future__ import annotations

import os
import re
import select
import signal
import time

from loopwright.keeper import cgroup, places
from loopwright.keeper.child import PIPE_BYTES, CannotWrite, Child, Feed, NotStarted, reap_orphans
from loopwright.keeper.desk import Desk
from loopwright.keeper.processes import SEES_PROCESSES, Ending, Signs, Tree, adopt_orphans
from loopwright.keeper.record import LONGEST_LINE, Lines, Record
from loopwright.keeper.redact import Redactor, forms_of
from loopwright.keeper.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from loopwright.keeper.nursery import Loaded
    from loopwright.keeper.spec import Spec

READ_BYTES = 256 * 1024
BEAT_S = 1.0
NUDGE_S = 0.03
DRAIN_S = 1.0
NAP_S = 3.0
"""A turn that took so much longer than it should is time in which the machine or the keeper slept."""
OVERLAP = 4096


class Keeper:
    """Keeps one run from its start to its exit file."""

    def __init__(
        self,
        directory: str,
        spec: Spec,
        status: Status,
        listener: socket.socket,
        *,
        umask: int,
        loaded: Loaded | None = None,
    ) -> None:
        self._directory = directory
        self._spec = spec
        self._status = status
        self._umask = umask
        self._loaded = loaded
        self._desk = Desk(listener, self._answer, lambda pid: SEES_PROCESSES and self._tree.has(pid))
        forms = forms_of(spec.secrets)
        overlap = max(OVERLAP, 2 * len(forms[0]) if forms else 0)
        self._record = Record(self._path(places.OUTPUT), spec.output_bytes)
        longest = min(LONGEST_LINE, self._record.segment_bytes)
        self._streams = {
            mark: Lines(Redactor(forms), longest=longest, overlap=overlap) for mark in (b"o ", b"e ")
        }
        self._input_redactor = Redactor(forms)
        self._done = re.compile(spec.done_pattern.encode(), re.MULTILINE) if spec.done_pattern else None
        self._done_at: float | None = None
        self._told_at: float | None = None
        self._tree = Tree(spec.run_id, spares_child=spec.contained)
        self._ending: Ending | None = None
        self._ended_by = "itself"
        self._asked = ""
        self._is_noted = False
        self._stirred = False
        self._nudged_at = 0.0

    def run(self) -> None:
        """Keep the run until everything of it is dead, then say how it ended."""
        self._wakeup = self._catch_signals()
        adopt_orphans()
        started, self._steady = time.time(), places.steady()
        # A sandbox is a better wall, and takes everything in it along when it ends.
        self._group = "" if self._spec.contained else cgroup.make(self._spec.run_id)
        self._status.content["cgroup"] = self._group
        try:
            self._child = Child(
                self._spec,
                private=self._make_private(),
                umask=self._umask,
                group=self._group,
                loaded=self._loaded,
            )
        except (NotStarted, OSError) as problem:
            self._ended_by = "not_started"
            self._write_exit(code=None, started=None, error=str(problem))
            return
        self._born = time.monotonic()
        self._tree.child = self._child.pid
        self._feed = Feed(self._child.stdin, self._path(places.WRITES), self._input_redactor)
        self._feed.put(self._spec.stdin_data)
        self._spec.stdin_data = ""
        self._signs = Signs(self._tree, self._spec.activity_paths, self._spec.idle_s, sees_cpu=SEES_PROCESSES)
        self._status.child_started(self._child.pid, started, idle_enforced=self._signs.idle_s is not None)
        self._open = {self._child.stdout: b"o ", self._child.stderr: b"e "}
        self._keep()
        self._drain()
        code = self._child.exit_code()
        self._child.reap()
        self._write_exit(code=code, started=started, error=self._trouble())

    def _make_private(self) -> dict[str, str]:
        """Make the folders that are this run's alone; return the variables that say where they are."""
        private = {"TMPDIR": self._path(places.TMP)}
        os.mkdir(private["TMPDIR"], 0o700)
        if self._spec.home is not None:
            self._spec.home.make(self._directory)
            private["HOME"] = self._spec.home.place
        return private

    def _keep(self) -> None:
        beat = last = time.monotonic()
        while True:
            home = self._spec.home
            self._turn(min(self._next_due(), beat + BEAT_S, home.next_due() if home else beat + BEAT_S))
            now = time.monotonic()
            if home is not None and now >= home.next_due():
                home.follow_logins(self._directory)
            if now - last > NAP_S:
                self._signs.excuse(now - last)
            last = now
            if now >= beat + BEAT_S:
                beat = now
                self._status.beat(
                    self._signs.seen_at, self._ended_by if self._ending else "", self._lasted_s()
                )
            if self._is_over(now):
                return

    def _is_over(self, now: float) -> bool:
        code = self._child.exit_code()
        gone = code is not None
        if self._ending is None:
            reason = "itself" if gone else self._reason_to_end(now)
            if not reason:
                reap_orphans(self._child.pid)
                return False
            self._ended_by = reason
            # What the child left running when it ended by itself has no one to be polite to.
            first = "kill" if self._asked == "now" else "term" if gone else "polite"
            self._ending = Ending(self._tree, grace_s=self._spec.term_grace_s, ask=self._ask, now_at=first)
        elif self._asked == "now":
            self._ending.hurry()
        if code is not None and not self._is_noted:
            self._is_noted = True
            self._read_what_is_there()
            self._status.child_ended(code, self._ended_by)
        return self._ending.step(child_gone=gone)

    def _reason_to_end(self, now: float) -> str:
        limits = self._spec
        if self._asked:
            return "asked"
        if limits.hard_s is not None and now - self._born >= limits.hard_s:
            return "deadline"
        if now >= self._done_until():
            return "done_hang"
        return "idle" if self._signs.sample(now) else ""

    def _done_until(self) -> float:
        until = float("inf")
        if self._done_at is not None and self._spec.done_grace_s is not None:
            until = self._done_at + self._spec.done_grace_s
        # Whatever it still prints, its run ended when it was told so.
        return until if self._told_at is None else min(until, self._told_at + self._spec.term_grace_s)

    def _next_due(self) -> float:
        if self._ending is not None:
            return self._ending.due
        due = [self._signs.next_due()]
        if self._spec.hard_s is not None:
            due.append(self._born + self._spec.hard_s)
        due.append(self._done_until())
        if self._stirred:
            due.append(self._nudged_at + NUDGE_S)
        return min(due)

    def _turn(self, until: float) -> None:
        """Wait for something to happen, at most until then, and deal with it."""
        poll = select.poll()
        for fd in (self._wakeup, *self._open, *self._desk.fds()):
            poll.register(fd, select.POLLIN)
        if self._feed.wants_to_write:
            poll.register(self._feed.fd, select.POLLOUT)
        timeout = max(0.0, until - time.monotonic())
        for fd, _ in poll.poll(int(timeout * 1000) + 1 if timeout else 0):
            if fd == self._wakeup:
                os.read(fd, 4096)
            elif fd in self._open:
                self._read(fd)
            elif fd == self._feed.fd:
                self._feed.flush()
            else:
                self._desk.serve(fd)
        if self._stirred and time.monotonic() >= self._nudged_at + NUDGE_S:
            self._desk.nudge()
            self._stirred = False
            self._nudged_at = time.monotonic()

    def _read(self, fd: int) -> bool:
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        mark = self._open[fd]
        if not data:
            self._store(mark, self._streams[mark].finish())
            del self._open[fd]
            os.close(fd)
            return False
        self._signs.mark("output")
        self._store(mark, self._streams[mark].feed(data))
        return True

    def _read_what_is_there(self) -> None:
        """Read what the child left in its pipes; what others continue to write is read later."""
        for fd in list(self._open):
            for _ in range(PIPE_BYTES // READ_BYTES + 1):
                if not self._read(fd):
                    break

    def _store(self, mark: bytes, lines: bytes) -> None:
        if not lines:
            return
        said_done = self._said_done(lines) if self._done is not None else 0
        if said_done:
            start = lines.rfind(b"\n", 0, said_done - 1) + 1
            if start:
                self._record.append(_framed(mark, lines[:start]))
            self._record.append(_framed(mark, lines[start:said_done]))
            self._record.pin()
            lines = lines[said_done:]
        if lines:
            self._record.append(_framed(mark, lines))
        self._stirred = True

    def _said_done(self, lines: bytes) -> int:
        """Return the position after the last line that says "done", 0 when none does."""
        assert self._done is not None
        if self._done.search(lines) is None:
            return 0
        at = found = 0
        for line in lines[:-1].split(b"\n"):
            at += len(line) + 1
            if self._done.search(line):
                found = at
        if found and self._done_at is None:
            self._done_at = time.monotonic()
        return found

    def _drain(self) -> None:
        """Read what is left in the pipes; a leftover that cannot be ended may hold them, so not for ever."""
        until = time.monotonic() + DRAIN_S
        while self._open:
            busy = [self._read(fd) for fd in list(self._open)]
            if not any(busy) and self._open:
                if time.monotonic() >= until:
                    break
                self._turn(time.monotonic() + 0.05)
        for mark, lines in self._streams.items():
            self._store(mark, lines.finish())

    def _ask(self) -> bool:
        """Ask the child politely to stop; return whether there was a way to."""
        if self._spec.interrupt_signal is not None:
            self._tree.signal_group(self._spec.interrupt_signal)
            return True
        if self._spec.interrupt is None or self._feed.fd < 0:
            return False
        self._feed.put(self._spec.interrupt.removesuffix("\n") + "\n")
        return True

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked:
            case {"op": "status"}:
                return {"ok": True, "status": self._status.content}
            case {"op": "end", "polite": bool(polite)}:
                self._asked = "politely" if polite and self._asked != "now" else "now"
                return {"ok": True}
            case {"op": "write", "n": int(n), "data": str(data), "close": bool(close)}:
                try:
                    fresh = self._feed.write(n, data, close=close, output_at=self._record.total)
                except CannotWrite as problem:
                    return {"ok": False, "error": str(problem)}
                if fresh:
                    self._signs.mark("input")
                    # New input asks for more work, so what was said before is no longer the last word.
                    self._done_at = None if data else self._done_at
                    if asked.get("stops") is True and self._told_at is None:
                        self._told_at = time.monotonic()
                return {"ok": True, "written": fresh}
        return {"ok": False, "error": f"this keeper does not understand {str(asked.get('op'))[:50]!r}"}

    def _catch_signals(self) -> int:
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        os.set_blocking(theirs, False)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._terminated)
        return ours

    def _terminated(self, *_: object) -> None:
        self._asked = self._asked or "politely"

    def _trouble(self) -> str:
        troubles = [self._record.problem] if self._record.problem else []
        if self._ending is not None and self._ending.survivors:
            pids = ", ".join(str(process.pid) for process in self._ending.survivors)
            troubles.append(f"these processes could not be ended: {pids}")
        return "; ".join(troubles)

    def _write_exit(self, *, code: int | None, started: float | None, error: str) -> None:
        places.remove(self._path(places.RESERVE))
        if self._group:
            cgroup.remove(self._group)
        self._record.finish()
        try:
            places.remove_tree(self._path(places.TMP))
        except OSError as problem:
            error = f"{error}; its temporary folder stays: {problem}".removeprefix("; ")
        if self._spec.home is not None:
            trouble = self._spec.home.put_away(self._directory)
            error = "; ".join(part for part in (error, trouble) if part)
        cut = sum(lines.cut_bytes for lines in self._streams.values())
        lasted_s = self._lasted_s()
        self._status.beat({}, self._ended_by, lasted_s)
        places.write_exit(
            self._directory,
            {
                "version": 1,
                "run_id": self._spec.run_id,
                "code": code,
                "ended_by": self._ended_by,
                "started_at": places.iso(started),
                # By the clock that it started with: whatever became of that one, the length of the run is right.
                "ended_at": places.iso(time.time() if started is None else started + lasted_s),
                "output_bytes": self._record.total,
                "output_sha256": self._record.sha256,
                "dropped_bytes": self._record.dropped_bytes + cut,
                "error": error[:4000],
                "login_renewed": self._spec.home is not None and self._spec.home.login_renewed,
            },
        )
        places.remove(self._path(places.SOCKET))

    def _lasted_s(self) -> float:
        return places.steady() - self._steady

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _framed(mark: bytes, lines: bytes) -> bytes:
    return mark + lines[:-1].replace(b"\n", b"\n" + mark) + b"\n"
