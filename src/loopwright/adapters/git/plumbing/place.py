"""Where the user's repository is and what it is like."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.values.errors import GitFailed, NotARepository, Refused

_FALLBACK_NAME: Final = "Loopwright"
_FALLBACK_EMAIL: Final = "loopwright@localhost"
_WANTED: Final = (
    r"^(user\.(name|email)|filter\.lfs\.(clean|smudge|process)|lfs\.storage"
    r"|core\.(excludesfile|hookspath|autocrlf|eol))$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A repository of the user's whose objects ours borrow: the project's own, or that of a submodule."""

    git_dir: Path
    common_dir: Path
    objects: Path
    object_format: str = "sha1"

    def shallow(self) -> str:
        """Return the list of commits whose parents a shallow clone lacks; empty for a full one."""
        try:
            return (self.common_dir / "shallow").read_text(encoding="ascii")
        except FileNotFoundError:
            return ""

    def env(self) -> dict[str, str]:
        """Return the environment for commands on its refs and objects."""
        return user_env() | {"GIT_DIR": str(self.git_dir)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What we take over from the user's git configuration."""

    name: str = _FALLBACK_NAME
    email: str = _FALLBACK_EMAIL
    excludes_file: Path | None = None
    has_hooks_path: bool = False
    conversions: Mapping[str, str] = field(default_factory=dict)
    """`core.autocrlf` and `core.eol`, so that our snapshots convert line ends as the user's git does."""
    lfs: bool = False
    lfs_storage: Path | None = None
    """Where Git LFS keeps large files, when that is not the usual place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The user's repository as found from the project's folder."""

    source: Source
    settings: Settings
    toplevel: Path | None
    """The root of the user's checkout; None for a bare repository."""
    prefix: str
    """The project's folder inside the repository: empty, or ending in a slash."""


async def find(git: Git, project: Path) -> Place:
    """Find the repository that a folder belongs to; raise `NotARepository` with what to do."""
    if not project.is_dir():
        raise NotARepository(
            f"{project} is not a folder", code="not_a_folder", hint="Give the path of a git repository."
        )
    try:
        done = await git.run(
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--is-inside-work-tree",
            "--absolute-git-dir",
            "--git-common-dir",
            "--git-path",
            "objects",
            "--show-object-format",
            "--show-prefix",
            "--show-cdup",
            env=user_env(),
            cwd=project,
        )
    except GitFailed as error:
        raise _not_found(project, str(error)) from error
    lines = done.out.decode("utf-8", "surrogateescape").split("\n")
    bare, inside, git_dir, common_dir, objects, object_format, prefix, up = lines[:8]
    if inside != "true" and bare != "true":
        raise NotARepository(
            f"{project} lies inside a .git folder",
            code="inside_git_folder",
            hint="Give the path of the checkout.",
        )
    source = Source(
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        objects=Path(objects),
        object_format=object_format,
    )
    return Place(
        source=source,
        settings=await _settings(git, project),
        toplevel=None if bare == "true" else (project / up).resolve(),
        prefix=prefix,
    )


def check_writable(source: Source) -> None:
    """Raise unless attempts can be kept in the repository."""
    for folder in (source.objects, source.common_dir, source.common_dir / "refs"):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise Refused(
                f"the repository cannot be written: {folder} is read-only for this user",
                code="repository_read_only",
                hint="Make it writable, or clone it to another place: attempts are kept in it.",
            )


def _not_found(project: Path, words: str) -> NotARepository:
    if "dubious ownership" in words:
        return NotARepository(
            f"git refuses {project} because it belongs to another user",
            code="repository_of_another_user",
            hint=f"If you trust it: git config --global --add safe.directory {project}",
        )
    if "not a git repository" in words:
        return NotARepository(
            f"{project} is not in a git repository",
            code="not_a_repository",
            hint="Run `git init`, then commit your files, or give the path of a repository.",
        )
    return NotARepository(
        f"{project} cannot be used as a git repository: {words}", code="repository_unusable"
    )


async def _settings(git: Git, project: Path) -> Settings:
    done = await git.run("config", "-z", "--get-regexp", _WANTED, env=user_env(), cwd=project, ok=(0, 1))
    values: dict[str, str] = {}
    hooks = False
    for entry in done.out.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if key == "core.hookspath":
            hooks = hooks or value not in ("", os.devnull)
        elif key:
            values[key] = value
    storage = values.get("lfs.storage")
    return Settings(
        name=_clean(values.get("user.name", "")) or _FALLBACK_NAME,
        email=_clean(values.get("user.email", "")) or _FALLBACK_EMAIL,
        excludes_file=_excludes_file(values.get("core.excludesfile")),
        has_hooks_path=hooks,
        conversions={key: values[key] for key in ("core.autocrlf", "core.eol") if key in values},
        lfs=any(key.startswith("filter.lfs.") for key in values) and shutil.which("git-lfs") is not None,
        lfs_storage=Path(storage).expanduser() if storage else None,
    )


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x1f<>]", "", text).strip()


def _excludes_file(configured: str | None) -> Path | None:
    if configured is None:
        folder = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
        configured = str(Path(folder) / "git" / "ignore")
    path = Path(configured).expanduser()
    return path if path.is_file() else None
