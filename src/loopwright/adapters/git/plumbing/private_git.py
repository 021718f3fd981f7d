"""Git dirs that we write ourselves: the harness's own one per project, and those inside workspaces.

Writing the few files by hand instead of `git init` or `git clone` saves processes, and leaves nothing to chance:
no template, no hook, no remote, no configuration but what stands here.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git.plumbing.place import Settings, Source
from loopwright.adapters.git.plumbing.runner import own_env
from loopwright.adapters.machine.files import write_if_changed
from loopwright.core.values.errors import GitFailed

WORK_BRANCH = "refs/heads/work"
"""The branch that a workspace starts on."""

LFS_FILTER = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Depot:
    """Our own git dir for one repository of the user's: borrows its objects, shares nothing else."""

    path: Path
    source: Source
    settings: Settings

    def ensure(self) -> None:
        """Create it, or bring it up to date with where the user's repository is now."""
        exclude = ""
        user_exclude = self.source.common_dir / "info" / "exclude"
        if user_exclude.is_file():
            exclude = user_exclude.read_text(encoding="utf-8", errors="surrogateescape")
        config = _config(self.source, self.settings, bare=True)
        config |= {"uploadpack.allowAnySHA1InWant": "true"}
        if self.settings.excludes_file is not None:
            config["core.excludesFile"] = str(self.settings.excludes_file)
        if self.settings.lfs:
            # What an agent adds must be where the user's own `git lfs push` looks for it.
            config["lfs.storage"] = str(self.settings.lfs_storage or self.source.common_dir / "lfs")
        _write_git_dir(
            self.path,
            source=self.source,
            config=config,
            alternates=(self.source.objects,),
            put=write_if_changed,
        )
        write_if_changed(self.path / "info" / "exclude", exclude)

    def env(self, *, work_tree: Path | None = None, index: Path | None = None) -> dict[str, str]:
        """Return the environment for commands in it."""
        return own_env(self.path, work_tree=work_tree, index=index)

    def env_into_source(self) -> dict[str, str]:
        """Return the environment for commands that write into the user's repository, under our own settings.

        They see no objects but those of that repository: git does not write again what it finds somewhere, and
        what it finds only here would be missing there.
        """
        return self.env() | {"GIT_OBJECT_DIRECTORY": str(self.source.objects)}

    @property
    def null(self) -> str:
        """The object id that means "nothing"."""
        return "0" * (64 if self.source.object_format == "sha256" else 40)

    @property
    def objects(self) -> Path:
        """Where it keeps its own objects."""
        return self.path / "objects"

    def module(self, name: str, source: Source) -> "Depot":
        """Return the depot of one of the project's submodules."""
        return Depot(path=self.path / "modules" / f"{name}.git", source=source, settings=self.settings)

    def scratch(self, *alternates: Path) -> Path:
        """Make a bare git dir with nothing but borrowed objects; the caller deletes it."""
        folder = self.path / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(dir=folder))
        config = _config(self.source, self.settings, bare=True)
        config |= {
            "uploadpack.allowAnySHA1InWant": "true",
            # Accelerators beside borrowed objects may be planted; the objects themselves are verified.
            "core.commitGraph": "false",
            "core.multiPackIndex": "false",
        }
        _write_git_dir(path, source=self.source, config=config, alternates=alternates, put=_put)
        return path


def write_private(
    git_dir: Path, sha: str, *, source: Source, settings: Settings, alternates: Sequence[Path]
) -> None:
    """Write the git dir of a workspace that stands at `sha`."""
    config = _config(source, settings, bare=False)
    config |= {
        "core.logAllRefUpdates": "true",
        "user.name": settings.name,
        "user.email": settings.email,
        "commit.gpgSign": "false",
        "gc.auto": "0",
        "maintenance.auto": "false",
    }
    if settings.has_hooks_path:
        config["core.hooksPath"] = os.devnull
    if settings.lfs:
        config["lfs.skipDownloadErrors"] = "true"
        if settings.lfs_storage is not None:
            config["lfs.storage"] = str(settings.lfs_storage)
    _write_git_dir(git_dir, source=source, config=config, alternates=alternates, put=_put)
    (git_dir / WORK_BRANCH).write_text(f"{sha}\n", encoding="ascii")


def alternates_text(paths: Sequence[Path | str]) -> str:
    """Return the content of an `objects/info/alternates` file."""
    for path in paths:
        if "\n" in str(path):
            raise GitFailed(f"a path with a line break cannot be borrowed from: {str(path)!r}")
    return "".join(f"{path}\n" for path in paths)


def _config(source: Source, settings: Settings, *, bare: bool) -> dict[str, str]:
    sha256 = source.object_format == "sha256"
    config = {
        "core.repositoryFormatVersion": "1" if sha256 else "0",
        "core.fileMode": "true",
        "core.bare": "true" if bare else "false",
        "core.autocrlf": "false",
        "core.safecrlf": "false",
    }
    if sha256:
        config["extensions.objectFormat"] = "sha256"
    if sys.platform == "darwin":
        config |= {"core.ignoreCase": "true", "core.precomposeUnicode": "true"}
    if settings.lfs:
        config |= LFS_FILTER
    return config | dict(settings.conversions)


def _write_git_dir(
    path: Path,
    *,
    source: Source,
    config: Mapping[str, str],
    alternates: Sequence[Path],
    put: Callable[[Path, str], None],
) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for folder in ("objects", "objects/info", "objects/pack", "refs", "refs/heads", "info"):
        (path / folder).mkdir(exist_ok=True)
    put(path / "objects" / "info" / "alternates", alternates_text(alternates))
    put(path / "config", _config_text(config))
    if shallow := source.shallow():
        put(path / "shallow", shallow)
    else:
        (path / "shallow").unlink(missing_ok=True)
    # Last, because a folder without HEAD is not a repository to git: a half-written one is never used.
    put(path / "HEAD", f"ref: {WORK_BRANCH}\n")


def _put(path: Path, text: str) -> None:
    """Write a file of a git dir that is made again, not repaired, when it was cut short."""
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def _config_text(config: Mapping[str, str]) -> str:
    lines = []
    for key, value in config.items():
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        title = f'{head} "{sub}"' if sub else head
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{title}]\n\t{name} = "{escaped}"\n')
    return "".join(lines)
