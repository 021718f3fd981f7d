"""The rows of one kind in memory, by id, and by the columns that somebody looked for: no search reads all of them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from loopwright.adapters.store.codec import field_of

_NOTHING: Mapping[str, Any] = {}


class Table(dict[str, Any]):
    """Rows by id. They change through `put` and `drop` alone, which keep what is known about columns."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self._kind = kind
        self._by: dict[str, dict[Any, dict[str, Any]]] = {}
        """For each column that was looked for: the rows that have a value there."""

    def put(self, row: Any) -> None:
        """Add a row, or replace the one with its id."""
        before = self.get(row.id)
        for name, places in self._by.items():
            value = getattr(row, name)
            if before is not None and (was := getattr(before, name)) != value:
                del places[was][row.id]
            places.setdefault(value, {})[row.id] = row
        self[row.id] = row

    def drop(self, id: str) -> None:
        """Forget a row, if it is there."""
        before = self.pop(id, None)
        if before is not None:
            for name, places in self._by.items():
                del places[getattr(before, name)][id]

    def near(self, wanted: Mapping[str, Any]) -> Iterable[Any]:
        """Return few rows, among which are all that have these values; a list means any of them."""
        best: Sequence[Mapping[str, Any]] = [self]
        found: Sequence[Mapping[str, Any]]
        fewest = len(self)
        for name, value in wanted.items():
            if fewest <= 1:
                break
            places = self._by.get(name) or self._places(name)
            if places is None:
                continue
            if type(value) is list:
                found = [places[one] for one in dict.fromkeys(value) if one in places]
                count = sum(map(len, found))
            else:
                found = [places.get(value, _NOTHING)]
                count = len(found[0])
            if count < fewest:
                best, fewest = found, count
        return chain.from_iterable([one.values() for one in best])

    def _places(self, name: str) -> dict[Any, dict[str, Any]] | None:
        places = self._by.get(name)
        if places is None:
            if field_of(self._kind, name).storage == "json":
                return None  # such a value may have no hash
            places = self._by[name] = {}
            for row in self.values():
                places.setdefault(getattr(row, name), {})[row.id] = row
        return places
