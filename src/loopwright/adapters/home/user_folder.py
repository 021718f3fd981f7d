"""What a run sees of the user's HOME: everything but well-known secrets, and Loopwright's own files."""

import os
import pwd
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.core.values.containment import HomePath, HomeView, PrivatePath
from loopwright.keeper import places
from loopwright.ports import Invocation

HIDDEN: Final = (
    # Keys and logins with which one acts elsewhere in the user's name.
    ".ssh", ".gnupg", ".password-store", ".netrc", ".git-credentials", ".config/git/credentials", ".vault-token",
    ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/sops", ".config/age",
    # Clouds, clusters and container registries.
    ".aws", ".azure", ".oci", ".boto", ".s3cfg", ".config/gcloud", ".config/doctl", ".config/hcloud",
    ".config/rclone", ".terraform.d/credentials.tfrc.json", ".kube", ".docker/config.json",
    ".config/containers/auth.json",
    # Needed to publish packages; what is needed to install them stays: .npmrc, .config/pip, .m2/settings.xml.
    ".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml",
    # Databases.
    ".pgpass", ".my.cnf", ".mylogin.cnf",
    # Key rings and browsers, with their stored passwords and cookies.
    ".local/share/keyrings", ".local/share/kwalletd", ".mozilla", ".thunderbird", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", "Library/Keychains",
    "Library/Cookies", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
    # What was typed, passwords included.
    ".bash_history", ".bash_sessions", ".zsh_history", ".zsh_sessions", ".history", ".sh_history",
    ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".irb_history", ".psql_history",
    ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo",
)  # fmt: skip
"""Relative to HOME."""

SESSIONS: Final = ".sessions"
"""Added to the path of a HOME: there conversations wait for the next run that has its HOME at that place."""
_MOVABLE: Final = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
"""Variables that name a folder in HOME, with the folder that is meant without them."""
_CACHE: Final = "XDG_CACHE_HOME"


def user_folder(env: Mapping[str, str]) -> Path:
    """Return the user's own folder: what HOME says, else what programs without a HOME find by themselves."""
    named = env.get("HOME", "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        # A user without an entry, as in some containers: the view has nothing to show.
        return Path("/nonexistent")


def forget_sessions(place: Path) -> None:
    """Remove the conversations of runs that had their HOME at this place."""
    places.remove_tree(f"{place}{SESSIONS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Makes each run's view of the user's HOME."""

    real: Path
    own: tuple[Path, ...]
    """Folders of Loopwright itself."""
    show: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    accounts: tuple[Path, ...] = ()
    """The config homes of all accounts of agents: a run sees that of its own account only."""
    whole: bool = False
    """Nothing is hidden: only what belongs to the run's agent is a copy."""

    def __call__(
        self, env: Mapping[str, str], invocation: Invocation | None, place: Path
    ) -> tuple[dict[str, str], HomeView | None]:
        """Return the environment of a run whose HOME is at `place`, and what is to be seen there."""
        declared = invocation.home if invocation else ()
        copied = [one for one in declared if not one.shared]
        if self.whole and not copied:
            return dict(env), None
        hide = {*map(_plain, self.hide), *self._within_home(self.own)} if not self.whole else set()
        moved = dict(self._moved(env))
        private = [one for one in self._private(copied, env, moved) if _plain(one.path) not in hide]
        if not any(_is_within(one.path, [moved.get(_CACHE, ".cache")]) for one in private):
            # Tools write down where their caches are, for others who use them too: that must be the lasting place.
            moved.pop(_CACHE, None)
            given = {_CACHE: env.get(_CACHE) or str(self.real / ".cache")}
        else:
            given = {_CACHE: str(place / moved.get(_CACHE, ".cache"))}
        show = [*map(_plain, self.show), *(_plain(one.path) for one in declared if one.shared)]
        sources = [*show, *self._within_home([Path(one.source) for one in private])]
        # What the agent has at the usual place is another account's, when it works on one that was named.
        unused = [_plain(one.path) for one in copied if one.moved_by and env.get(one.moved_by)]
        others = [*self._within_home(self.accounts), *unused]
        usual = {path for path in (*HIDDEN, *_at_moved(moved), *others) if not _is_within(path, sources)}
        view = HomeView(
            place=str(place),
            real=str(self.real),
            hidden=() if self.whole else tuple(sorted(usual | hide)),
            shown=tuple(path for path in show if path not in hide),
            whole=self.whole,
            private=tuple(private),
            sessions=f"{place}{SESSIONS}" if private else "",
        )
        given |= {name: str(place / path) for name, path in moved.items()}
        given |= {
            name: str(place / self._root(name, env[name]))
            for one in copied
            if (name := one.moved_by) and env.get(name)
        }
        return {**env, "HOME": str(place), **given}, view

    def _private(
        self, needed: Sequence[HomePath], env: Mapping[str, str], moved: Mapping[str, str]
    ) -> Iterator[PrivatePath]:
        """Yield what the run has a copy of, from wherever the user has it."""
        for one in needed:
            path = _moved_to(one.path, moved)
            source = self.real / path
            if one.moved_by and (named := env.get(one.moved_by)):
                source = Path(named, one.below)
                path = (self._root(one.moved_by, named) / one.below).as_posix() + "/" * path.endswith("/")
            yield PrivatePath(
                path=path,
                source=str(source),
                left=one.left,
                sessions=one.sessions,
                transcript=one.transcript,
                logins=one.logins,
            )

    def _root(self, name: str, folder: str) -> PurePosixPath:
        """Return where in HOME the folder is that a variable names: for one that lies elsewhere, its own place."""
        if Path(folder).is_relative_to(self.real) and ".." not in Path(folder).parts:
            return PurePosixPath(Path(folder).relative_to(self.real))
        return PurePosixPath(f".{name.lower()}")

    def _within_home(self, folders: Sequence[Path]) -> Iterator[str]:
        real = self.real.resolve() if folders else self.real
        for folder in folders:
            for inner, outer in ((folder, self.real), (folder.resolve(), real)):
                if inner != outer and inner.is_relative_to(outer):
                    yield inner.relative_to(outer).as_posix()

    def _moved(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the folders that variables name inside the user's HOME: they are looked for in the view instead."""
        for name in _MOVABLE:
            folder = Path(env.get(name) or "/")
            if folder != self.real and folder.is_relative_to(self.real) and ".." not in folder.parts:
                yield name, folder.relative_to(self.real).as_posix()


def _moved_to(path: str, moved: Mapping[str, str]) -> str:
    """Return where something is in HOME whose folder a variable has moved elsewhere in HOME."""
    for name, folder in moved.items():
        usual = f"{_MOVABLE[name]}/"
        if path.startswith(usual):
            return f"{folder}/{path.removeprefix(usual)}"
    return path


def _at_moved(moved: Mapping[str, str]) -> Iterator[str]:
    """Yield what is hidden in folders that a variable has moved elsewhere in HOME."""
    for name, folder in moved.items():
        usual = f"{_MOVABLE[name]}/"
        yield from (f"{folder}/{path.removeprefix(usual)}" for path in HIDDEN if path.startswith(usual))


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _is_within(path: str, folders: Sequence[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in folders)
