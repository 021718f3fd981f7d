"""What we know about each workspace and gate tree. Kept in the home, out of reach of the agents."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from loopwright.adapters.machine.files import is_real_dir, write_atomically
from loopwright.core.values.errors import GitFailed, Refused

TREES = "trees"
FOLDERS = ("workspaces", TREES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A submodule that was set up in a workspace."""

    path: str
    git_dir: str
    """The user's own clone of it."""
    sha: str
    key: str
    """Names our depot and index for it."""
    borrows: tuple[str, ...] = ()
    """The folders of objects that its git dir was made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One of our workspaces or gate trees."""

    state: Literal["unfinished", "made"]
    """`unfinished` while it is made or deleted: what is there then is not an agent's work."""
    sha: str
    marker: str = ""
    copied: tuple[str, ...] = ()
    """Files copied from the user's checkout: never part of a snapshot."""
    modules: tuple[Module, ...] = ()
    borrows: tuple[str, ...] = ()
    """The folders of objects that its git dir was made with; the repository may lie elsewhere by now."""


class Records:
    """The records of one project, one file each."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home = home
        self._roots = (home, home.resolve())
        self._folder = folder
        self._keys: dict[Path, str] = {}

    def key(self, path: Path) -> str:
        """Return the name under which things about a workspace are kept; it does not change if the home moves."""
        if path not in self._keys:
            name = str(self._inside(path)).encode("utf-8", "surrogateescape")
            self._keys[path] = hashlib.sha256(name).hexdigest()[:32]
        return self._keys[path]

    def check(self, path: Path) -> Path:
        """Return the path, or refuse one that is not a workspace or gate tree below this home."""
        relative = self._inside(path)
        folder = self._home
        for part in relative.parts[:-1]:
            folder /= part
            if folder.is_symlink():
                raise Refused(
                    f"{path} lies behind a link at {folder}: it is left alone", code="path_behind_link"
                )
        return path

    def load(self, path: Path) -> Record | None:
        """Return what is known about a workspace; None for one that we did not make."""
        try:
            data = json.loads(self._file(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            if self.is_tree(path):
                return None  # cut short by a power cut; what is in such a tree can be made again
            raise GitFailed(f"{self._file(path)} is damaged: {error}") from error
        return _parsed(data)

    def save(self, path: Path, record: Record) -> None:
        """Keep a record, durably unless it is of a gate's tree, which never holds an agent's work."""
        write_atomically(self._file(path), json.dumps(asdict(record)), durably=not self.is_tree(path))

    def is_tree(self, path: Path) -> bool:
        """Return whether this is a tree that a gate runs in."""
        return self._inside(path).parts[0] == TREES

    def forget(self, path: Path) -> None:
        """Drop the record and the indexes of a workspace that is gone."""
        record = self._file(path)
        for index in (self.index(path), *(self.index(path, module.key) for module in self._modules(path))):
            index.unlink(missing_ok=True)
        record.unlink(missing_ok=True)
        self._keys.pop(path, None)

    def _modules(self, path: Path) -> tuple[Module, ...]:
        record = self.load(path)
        return record.modules if record else ()

    def index(self, path: Path, module: str = "") -> Path:
        """Return where our own index of a fresh workspace is kept."""
        self._indexes.mkdir(parents=True, exist_ok=True)
        return self._indexes / (f"{self.key(path)}-{module}" if module else self.key(path))

    def lock(self, path: Path) -> Path:
        """Return the lock that guards making and deleting a workspace; a few share one."""
        return self._folder / "locks" / self.key(path)[:3]

    @property
    def _indexes(self) -> Path:
        return self._folder / "indexes"

    def _file(self, path: Path) -> Path:
        return self._folder / "records" / f"{self.key(path)}.json"

    def _inside(self, path: Path) -> Path:
        for root in self._roots:
            if path.is_relative_to(root):
                relative = path.relative_to(root)
                if len(relative.parts) >= 2 and relative.parts[0] in FOLDERS and ".." not in relative.parts:
                    return relative
        raise Refused(
            f"{path} is not a workspace of this home",
            code="not_a_workspace",
            hint=f"They are under {self._home}.",
        )


def check_present(path: Path) -> Path:
    """Return the path of a workspace that is really there, or raise."""
    if not is_real_dir(path):
        raise GitFailed(f"the workspace {path} is gone, or is no longer a folder")
    return path


def _parsed(data: dict[str, Any]) -> Record:
    modules = tuple(
        Module(borrows=tuple(module.pop("borrows", ())), **module) for module in data.pop("modules")
    )
    copied, borrows = tuple(data.pop("copied")), tuple(data.pop("borrows", ()))
    return Record(modules=modules, copied=copied, borrows=borrows, **data)
