"""A Python that has pytest, ruff, mypy and nothing else of this environment: there is less to look through."""

import sys
from importlib.metadata import distribution
from pathlib import Path

_NEEDED = (
    *("pytest", "pluggy", "iniconfig", "packaging", "pygments", "ruff"),
    *("mypy", "mypy_extensions", "typing_extensions", "pathspec", "librt", "ast-serialize"),
)


def bare_python(place: Path) -> Path:
    """Make it in a new folder, and return the folder that has to be on PATH."""
    programs, packages = place / "bin", place / Path(*_packages().relative_to(sys.prefix).parts)
    programs.mkdir(parents=True)
    packages.mkdir(parents=True)
    (place / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    for name in ("python", "python3"):
        (programs / name).symlink_to(sys.executable)
    (programs / "ruff").symlink_to(Path(sys.executable).with_name("ruff"))
    for name in _NEEDED:
        for part in {Path(file).parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}:
            (packages / part).symlink_to(_packages() / part)
    return programs


def _packages() -> Path:
    return Path(str(distribution("pytest").locate_file("")))
