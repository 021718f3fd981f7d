"""A sandbox made by `bwrap`: the process has a file system, process numbers and, if wanted, its own network."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sandbox.mounts import Mount, Table, denied, is_hidden, mounts, ordered
from loopwright.core.values.containment import Containment, HomeView, MadeWith
from loopwright.ports import Reach

_ALWAYS: Final = (
    # In its own user namespace also where the user is root: without it root could undo all that follows.
    *("--unshare-user", "--cap-drop", "ALL"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # Whatever ends the outermost process ends all of them: the keeper has one thing to kill.
    "--die-with-parent",
    *("--ro-bind", "/", "/"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """Contains processes with bubblewrap."""

    program: str
    own: tuple[Path, ...] = ()
    """Folders of Loopwright itself, which no run sees."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """What the user lets every run read or write besides."""
    says: str = "bubblewrap"
    """What the program says that it is."""
    level: Containment = Containment.BUBBLEWRAP

    @property
    def made_with(self) -> MadeWith:
        """Return the program and its version."""
        return MadeWith(program=self.says)

    def view(self, home: HomeView | None) -> HomeView | None:
        """Show tool chains only, and what was shown or kept by name."""
        return only_tool_chains(home)

    def prefix(self, reach: Reach) -> tuple[str, ...]:
        """Return the words to put before a command's own."""
        words: list[str] = [self.program, *_ALWAYS]
        if not reach.network:
            words.append("--unshare-net")
        for place, mount in ordered(self._table(reach)):
            words += _words(place, mount)
        return (*words, "--chdir", str(reach.cwd), "--")

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:
        """Return which refusal of the sandbox a program's last words complain of, and the setting that allows it."""
        table = self._table(reach)
        for line in output:
            if line.startswith("bwrap: ") and "execvp" not in line:
                return f"the sandbox could not be set up ({line}): `loopwright doctor` says more"
        return denied(output, table, reach, is_hidden=is_hidden, show="add it to sandbox.read")

    def _table(self, reach: Reach) -> Table:
        return mounts(
            reach,
            own=map(os.fspath, self.own),
            readable=map(os.fspath, self.readable),
            writable=map(os.fspath, self.writable),
        )


def only_tool_chains(home: HomeView | None) -> HomeView | None:
    """Return as much of a HOME as is to be seen in a sandbox."""
    if home is None or home.whole:
        return home
    tools = [path for path in SHOWN if not _is_below(path, home.hidden)]
    return replace(home, everything=False, shown=tuple(dict.fromkeys((*home.shown, *tools))))


def _words(at: str, mount: Mount) -> tuple[str, ...]:
    source = mount.source
    match mount.kind:
        case "read":
            return ("--ro-bind-try", source, at)
        case "write":
            return ("--bind-try", source, at)
        case "empty":
            return ("--tmpfs", at)
        case "link":
            return ("--symlink", source, at)
        case "mask":
            return ("--ro-bind", "/dev/null", at)
        case "device":
            return ("--dev", at)
        case "process":
            return ("--proc", at)


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


# What of the user's HOME a contained run can read: tool chains and what they need, never documents or secrets.

SHOWN: Final = (
    # Who commits, and where packages come from.
    ".gitconfig", ".config/git", ".npmrc", ".yarnrc", ".yarnrc.yml", ".config/pip", ".pip", ".config/uv",
    ".config/pypoetry", ".condarc", ".bunfig.toml", ".m2", ".gradle", ".sbt", ".ivy2", ".nuget", ".config/NuGet",
    ".bundle", ".gem", ".composer", ".config/composer", ".config/go",
    # Versions of languages.
    ".tool-versions", ".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".nvm", ".fnm", ".volta", ".asdf", ".sdkman",
    ".config/mise", ".local/share/mise", ".local/share/fnm", ".local/share/rtx", ".proto",
    # Languages with their packages.
    ".cargo", ".rustup", "go", ".bun", ".deno", ".dotnet", ".mix", ".hex", ".opam", ".stack", ".cabal", ".ghcup",
    ".elan", ".julia", ".pub-cache", "miniconda3", "anaconda3", "miniforge3", ".conda", ".nix-profile", ".npm",
    ".npm-packages", ".npm-global",
    # Installed programs.
    ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm", ".local/share/claude",
    ".local/share/pypoetry", ".local/pipx", ".local/state/nix", "bin",
    # Downloads that tests start from: browsers, hooks, compilers' headers.
    ".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress", ".cache/pre-commit", ".cache/node-gyp",
    ".cache/electron", ".cache/huggingface", ".cache/torch",
)  # fmt: skip
"""Relative to HOME. What is hidden from every run stays hidden also where it lies below one of these."""
