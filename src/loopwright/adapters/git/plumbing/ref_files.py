"""Refs of the user's repository, read as the files that they are: asking git for one takes a process."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loopwright.adapters.git.plumbing.names import is_sha


class RefFiles:
    """Reads refs where they are kept as files; `usable` says whether they are."""

    def __init__(self, common_dir: Path) -> None:
        self._folder = common_dir
        self._packed: tuple[tuple[int, int, int], Mapping[str, str]] = ((0, 0, 0), {})

    @property
    def usable(self) -> bool:
        """Whether refs are files: newer repositories may keep them in tables that only git reads."""
        return not (self._folder / "reftable").exists()

    def tip(self, name: str) -> str | None:
        """Return the commit that a ref names, if its own file tells."""
        try:
            found = (self._folder / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return found if is_sha(found) else None

    def listing(self, folders: Sequence[str], *, without: str) -> dict[str, str]:
        """Return what each ref below `folders` says, but for those whose name begins with `without`."""
        # Like git, the files first: one that is packed meanwhile is found among the packed ones, and never nowhere.
        loose = {name: sha for folder in folders for name, sha in self._loose(folder, without)}
        packed = {
            name: sha
            for name, sha in self._packed_refs().items()
            if name.startswith(tuple(folders)) and not name.startswith(without)
        }
        return {**packed, **loose}

    def may_have(self, name: str) -> bool:
        """Say whether there may be a ref with this name, or one that begins with it."""
        path = self._folder / name
        try:
            if any(one.name.startswith(path.name) for one in path.parent.iterdir()):
                return True
        except FileNotFoundError:
            pass  # then it can only be among the packed ones
        return any(known.startswith(name) for known in self._packed_refs())

    def checked_out(self, name: str) -> str:
        """Return where a branch is checked out; empty when nowhere."""
        for folder in (self._folder, *_folders(self._folder / "worktrees")):
            try:
                head = (folder / "HEAD").read_text(encoding="utf-8").strip()
                if head != f"ref: {name}":
                    continue
                if folder == self._folder:
                    return str(folder.parent)
                return str(Path((folder / "gitdir").read_text(encoding="utf-8").strip()).parent)
            except OSError:
                continue  # a worktree that is being removed
        return ""

    def _packed_refs(self) -> Mapping[str, str]:
        path = self._folder / "packed-refs"
        try:
            info = path.stat()
        except FileNotFoundError:
            return {}
        stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
        if self._packed[0] != stamp:
            text = path.read_text(encoding="utf-8", errors="replace")
            pairs = (line.partition(" ") for line in text.splitlines() if line[:1] not in ("#", "^"))
            self._packed = (stamp, {name: sha for sha, _, name in pairs})
        return self._packed[1]

    def _loose(self, folder: str, without: str) -> Iterator[tuple[str, str]]:
        top = self._folder / folder
        if top.is_file():
            yield folder, top.read_text(encoding="utf-8", errors="replace").strip()
        for here, folders, files in os.walk(top):
            base = Path(here).relative_to(self._folder).as_posix()
            folders[:] = [one for one in folders if not f"{base}/{one}/".startswith(without)]
            for file in files:
                name = f"{base}/{file}"
                if file.endswith(".lock") or name.startswith(without):
                    continue
                try:
                    yield name, Path(here, file).read_text(encoding="utf-8", errors="replace").strip()
                except FileNotFoundError:
                    continue  # packed, or deleted, in this moment


def _folders(path: Path) -> list[Path]:
    try:
        return [one for one in path.iterdir() if one.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
