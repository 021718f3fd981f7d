"""The version of the plan format, and how files that were written for an older one are read as if for this one."""

from collections.abc import Callable, Mapping
from typing import Final

from loopwright.adapters.sources.text.located import Located
from loopwright.config.nearest import quoted

Table = dict[str, Located]
Migrations = Mapping[int, Callable[[Table], Table]]

VERSION: Final = 1
"""The format that is documented and that plans are written in."""
MIGRATIONS: Final[Migrations] = {}
"""By a version: what turns a plan of it into one of the next. Values keep the lines that they were read from."""


class WrongVersion(Exception):
    """A plan whose version cannot be read."""


def brought_up(table: Table, migrations: Migrations = MIGRATIONS, newest: int = VERSION) -> Table:
    """Return a plan as the newest format has it; one that does not say its version has the first."""
    written = table.get("version")
    version = written.value if written is not None and written.value is not None else 1
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        said = quoted(written.text) if written is not None and written.text else "something else"
        raise WrongVersion(f"expected a whole number from 1 to {newest}, got {said}")
    if version > newest:
        raise WrongVersion(
            f"this plan is written in version {version} of the format, and this Loopwright knows up to {newest}: "
            "install a newer Loopwright"
        )
    for step in range(version, newest):
        table = migrations[step](table)
    return table
