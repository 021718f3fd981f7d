"""Notice a process that holds the home and hangs, such as a `run` that was suspended, and end it."""

from loopwright.ports import Membership


class HungHolder:
    """Watches the process that holds a home, on behalf of one that waits for it."""

    def __init__(self, membership: Membership, *, patience_s: float) -> None:
        """Take the home, and how many seconds without progress make its holder hung."""
        self._membership = membership
        self._patience_s = patience_s
        self._seen: tuple[object, int] | None = None
        self._since = 0.0
        self.ended: set[int] = set()
        """The processes that were ended."""

    def look(self, now: float) -> int | None:
        """End a hung holder and return its id; `now` is a time of the monotonic clock."""
        seen = ((self._membership.holder() or {}).get("pid"), self._membership.beats())
        if seen != self._seen:
            self._seen, self._since = seen, now
        if now - self._since < self._patience_s:
            return None
        self._since = now  # one that cannot be ended at once gets as long again
        pid = self._membership.end_holder()
        if pid is not None:
            self.ended.add(pid)
        return pid
