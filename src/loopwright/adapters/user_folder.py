"""What a run sees of the user's HOME: everything but well-known secrets, and Loopwright's own files."""

import os
import pwd
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.core.homes import HomePath, HomeView
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

_MOVABLE: Final = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
"""Variables that name a folder in HOME, with the folder that is meant without them."""


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

    def __call__(
        self, env: Mapping[str, str], invocation: Invocation | None, place: Path
    ) -> tuple[dict[str, str], HomeView]:
        """Return the environment of a run whose HOME is at `place`, and what is to be seen there."""
        declared = invocation.home if invocation else ()
        elsewhere = [one for one in declared if one.moved_by and env.get(one.moved_by)]
        needed = [one for one in declared if one not in elsewhere]
        show = [*map(_plain, self.show), *(_plain(one.path) for one in needed if not one.writable)]
        kept = [path for one in needed if one.writable and (path := self._inside(one.path))]
        hide = {*map(_plain, self.hide), *self._within_home(self.own)}
        moved = dict(self._moved(env))
        others = [*self._within_home(self.accounts), *self._left(elsewhere, env)]
        seen = [_plain(one) for one in (*show, *kept)]
        usual = {path for path in (*HIDDEN, *_at_moved(moved), *others) if not _is_within(path, seen)}
        view = HomeView(
            place=str(place),
            real=str(self.real),
            hidden=tuple(sorted(usual | hide)),
            shown=tuple(path for path in show if path not in hide),
            kept=tuple(path for path in kept if _plain(path) not in hide),
        )
        given = {name: str(place / path) for name, path in moved.items()}
        # Tools write down where their caches are, for others who use them too: that must be the lasting place.
        given["XDG_CACHE_HOME"] = env.get("XDG_CACHE_HOME") or str(self.real / ".cache")
        return {**env, "HOME": str(place), **given}, view

    def _inside(self, path: str) -> str | None:
        """Return a path relative to HOME; None for one that lies elsewhere, which needs no showing."""
        if not path.startswith("/"):
            return path
        whole = Path(path)
        if whole == self.real or not whole.is_relative_to(self.real):
            return None
        return whole.relative_to(self.real).as_posix() + "/" * path.endswith("/")

    def _left(self, elsewhere: Sequence[HomePath], env: Mapping[str, str]) -> Iterator[str]:
        """Yield what an agent has in HOME of its usual account, when it works on another one."""
        for one in elsewhere:
            named = Path(env[one.moved_by or ""])
            if named in self.accounts and not (self.real / one.path).is_relative_to(named):
                yield _plain(one.path)

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


def _at_moved(moved: Mapping[str, str]) -> Iterator[str]:
    """Yield what is hidden in folders that a variable has moved elsewhere in HOME."""
    for name, folder in moved.items():
        usual = f"{_MOVABLE[name]}/"
        yield from (f"{folder}/{path.removeprefix(usual)}" for path in HIDDEN if path.startswith(usual))


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _is_within(path: str, folders: Sequence[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in folders)
