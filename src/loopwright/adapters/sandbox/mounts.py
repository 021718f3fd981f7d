"""What a contained process finds at each path: a table of mounts, and nothing else decides it.

Paths are texts here: the table has some hundred, and is made again for each process.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from glob import escape, glob
from os.path import basename, dirname, join, realpath
from typing import Final, Literal

import loopwright
from loopwright.core.values.containment import refusals
from loopwright.keeper import places
from loopwright.ports import Reach

Kind = Literal["read", "write", "empty", "link", "mask", "device", "process"]

TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - each run has its own there
SOCKETS: Final = ("/run", "/var/run")
"""Through what listens here one would act outside: containers, session and system buses, key agents."""
_SEEN_OF_SOCKETS: Final = ("/run/current-system", "/run/wrappers")
_PROGRAM_FOLDERS: Final = frozenset({"bin", "sbin", "shims", "condabin"})
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")
"""What every image has itself."""
_FIRST: Final = 8
"""Words of a command that may be the name of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One entry of the table."""

    kind: Kind
    source: str = ""


Table = Mapping[str, Mount]


def ordered(table: Table) -> Iterator[tuple[str, Mount]]:
    """Yield the entries in the order of mounting: what lies deeper comes later, so that it is not covered."""
    yield from sorted(table.items(), key=lambda entry: entry[0].split("/"))


def mounts(
    reach: Reach,
    *,
    own: Iterable[str],
    readable: Iterable[str],
    writable: Iterable[str],
    bare: bool = False,
) -> Table:
    """Return what a process finds where: the machine to read, with gaps, and its own things in them.

    `own` are folders of Loopwright itself and files with its secrets, the others what the user let everyone read or
    write. `bare`: it finds not the machine but an image there, into which comes what would be found in a gap, or was
    named.
    """
    made, own = _Table(), tuple(own)
    made.dig(reach, own)
    made.show(_programs(reach, made.gaps))
    named = (*_named_files(reach, made.gaps), *_ourselves())
    made.show((*named, *_resolver(), *_SEEN_OF_SOCKETS))
    if reach.home is not None:
        made.show(join(reach.home.real, path) for path in reach.home.shown)
        made.show(one.source for one in reach.home.private)  # settings may name files in it
    users_own = _users_own(reach)
    made.show(users_own)
    lent = (*map(os.fspath, reach.readable), *readable)
    made.show(lent)
    if bare:
        made.bring(path for path in named if not is_within(realpath(path), _SYSTEM))
        made.bring((*lent, *users_own))
    made.follow_links()
    made.put_home(reach)
    private = join(reach.directory, places.TMP)
    for path in (private, *map(os.fspath, reach.writable), *writable):
        made.table[made.settled(path)] = Mount(kind="write", source=path)
    for path in own:
        made.conceal(path, bare=bare)
    return made.table


class _Table:
    """A table that is being made."""

    def __init__(self) -> None:
        self.table: dict[str, Mount] = {"/dev": Mount(kind="device"), "/proc": Mount(kind="process")}
        self.gaps: tuple[str, ...] = ()
        self._real = cache(realpath)

    def settled(self, path: str) -> str:
        """Return where a path really is: nothing can be mounted on a link.

        In a gap nothing is left of links, and what one leads to is seen in its place.
        """
        place = self._beside(path)
        return place if is_within(place, self.gaps) else self._real(path)

    def _beside(self, path: str) -> str:
        """Return where a path is, whatever lies there: what it is called is not followed."""
        path = path.rstrip("/") or "/"
        return join(self._real(dirname(path)), basename(path))

    def dig(self, reach: Reach, own: Iterable[str]) -> None:
        """Hide what no run sees, and put the run's temporary folder where everyone looks for one."""
        hidden = [
            *own,
            *map(os.fspath, reach.hidden),
            *((reach.home.real,) if reach.home is not None and not reach.home.whole else ()),
        ]
        empty = {self._real(folder) for folder in (*SOCKETS, *hidden)} - {"/"}
        # What is not there needs no hiding, and no place can be made for it.
        self.table |= {folder: Mount(kind="empty") for folder in empty if os.path.isdir(folder)}
        private = Mount(kind="write", source=join(reach.directory, places.TMP))
        self.table |= {self._real(folder): private for folder in TEMPORARY}
        self.gaps = tuple(self.table)
        for folder in hidden:
            if os.path.islink(folder):
                self._link(folder, self._real(folder))  # people and tools know it by that name

    def show(self, paths: Iterable[str]) -> None:
        """Let something be read that lies in a gap; elsewhere it can be read anyway."""
        for path in paths:
            place = self.settled(path)
            above = covering(self.table, dirname(place))
            if above is not None and above.kind == "read" and os.path.islink(place):
                # It is seen with its folder, and nothing can be mounted on it: what it leads to has to be seen.
                place = path = self._real(path)
            if place not in self.gaps and is_within(place, self.gaps):
                self.table.setdefault(place, Mount(kind="read", source=path))

    def follow_links(self) -> None:
        """Take out links in folders that came to be seen later: nothing can be mounted on them."""
        for place, mount in list(self.table.items()):
            above = covering(self.table, dirname(place))
            if mount.kind == "read" and above is not None and above.kind == "read" and os.path.islink(place):
                del self.table[place]
                self.show((self._real(place),))

    def bring(self, paths: Iterable[str]) -> None:
        """Let something be read that lies in no gap, where the machine itself is not to be seen."""
        for path in paths:
            place = self._real(path)
            if place != "/" and not is_within(place, self.gaps):
                self.table.setdefault(place, Mount(kind="read", source=path))

    def put_home(self, reach: Reach) -> None:
        """Give the run its own HOME, and hide what is hidden also beside what it sees of the user's."""
        home = reach.home
        if home is None:
            return
        for path in home.hidden:
            self._mask(self.settled(join(home.real, path)))
        for one in home.private:
            # It has the live login in its own HOME, and the conversations of others are none of its business.
            for name in (*one.left, *one.sessions, *(login.file for login in one.logins)):
                for path in glob(join(escape(one.source), name)):
                    self._mask(self.settled(path))
        view = join(reach.directory, places.HOME)
        self.table[self.settled(view)] = Mount(kind="write", source=view)
        self._link(home.place, view)

    def conceal(self, path: str, *, bare: bool) -> None:
        """Hide a file wherever it would be seen: on the machine itself, or in what is shown of it."""
        place = folder = self._real(path)
        while folder != "/" and (folder == place or folder not in self.table):
            folder = dirname(folder)
        mount = self.table.get(folder)
        is_shown = not bare if mount is None else mount.source != "" and self._real(mount.source) == folder
        if os.path.isfile(place) and (is_shown or place in self.table):
            self.table[place] = Mount(kind="mask")

    def _link(self, path: str, target: str) -> None:
        """Put a link into a gap; elsewhere the one that is there is seen."""
        place = self._beside(path)
        if is_within(place, self.gaps):
            self.table[place] = Mount(kind="link", source=target)

    def _mask(self, path: str) -> None:
        above = covering(self.table, dirname(path))
        if above is None or above.kind != "read" or not os.path.exists(path):
            self.table.pop(path, None)
        else:
            self.table[path] = Mount(kind="empty" if os.path.isdir(path) else "mask")


def covering(table: Table, path: str) -> Mount | None:
    """Return the mount that a path is found through, if any but that of the machine itself."""
    while path != "/" and path not in table:
        path = dirname(path)
    return table.get(path)


def is_writable(table: Table, path: str) -> bool:
    """Return whether a process with these mounts may write there."""
    mount = covering(table, path)
    return mount is not None and mount.kind in {"write", "empty", "device", "process"}


def is_hidden(table: Table, path: str) -> bool:
    """Return whether something is not seen through these mounts."""
    mount = covering(table, path)
    return mount is not None and mount.kind in {"empty", "mask"}


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these, or below one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _users_own(reach: Reach) -> tuple[str, ...]:
    """Return the user's own folder, where nothing is to be hidden of it."""
    if reach.home is not None:
        return (reach.home.real,) if reach.home.whole else ()
    folder = reach.env.get("HOME", "")
    return (folder,) if folder.startswith("/") else ()


def _programs(reach: Reach, gaps: Iterable[str]) -> Iterator[str]:
    """Yield the folders of PATH, with what lies beside a `bin`: the libraries of its programs."""
    for entry in reach.env.get("PATH", "").split(os.pathsep):
        folder = entry.rstrip("/")
        if not folder.startswith("/"):
            continue
        whole = dirname(folder)
        broad = basename(whole) == ".local" or any(is_within(gap, (realpath(whole),)) for gap in gaps)
        yield whole if basename(folder) in _PROGRAM_FOLDERS and not broad else folder


def _named_files(reach: Reach, gaps: Iterable[str]) -> Iterator[str]:
    """Yield the files that a command names, and the folder of each program among them."""
    for n, word in enumerate(reach.argv):
        # A program may stand behind a shell that gives it its input.
        named = shutil.which(word, path=reach.env.get("PATH")) if n < _FIRST and "/" not in word else word
        if named is None or not named.startswith("/") or not os.path.isfile(named):
            continue
        yield named
        program = realpath(named)
        if os.access(program, os.X_OK) and dirname(program) not in gaps:
            yield dirname(program)


def _ourselves() -> tuple[str, ...]:
    """Return where this Python and this package are: the tool by which an agent asks is started from there."""
    return (sys.prefix, sys.base_prefix, dirname(loopwright.__file__))


def _resolver() -> tuple[str, ...]:
    """Return the file that says how names are looked up, where it is but a link to one that is kept elsewhere."""
    return (realpath("/etc/resolv.conf"),)


# What a sandbox refused a program, as far as its last words tell, and the setting that allows it.


def denied(
    output: Sequence[str], table: Table, reach: Reach, *, is_hidden: Callable[[Table, str], bool], show: str
) -> str | None:
    """Return the first refusal in the words for a person; `show` says how something hidden is shown."""
    for one in refusals(output):
        path = one.path
        match one.kind:
            case "write" if path is None or not is_writable(table, path):
                what = path or "a place outside of its workspace"
                return (
                    f"the sandbox kept it from writing {what}: to allow it, add the folder to sandbox.write"
                )
            case "missing" if path is not None and is_hidden(table, path) and os.path.lexists(path):
                return f"the sandbox hides {path} from it: to show it, {show}"
            case "network" if not reach.network:
                return "the sandbox kept it from the network: to allow it, set sandbox.network to on"
            case _:
                continue
    return None
