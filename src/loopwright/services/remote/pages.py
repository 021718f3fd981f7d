"""Lists in pages: a cursor names a position in an order, so a page costs the same at any position."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from loopwright.core.values.errors import UserError
from loopwright.ports import Tx

R = TypeVar("R")
T = TypeVar("T")

LARGEST: Final = 200
"""How many items a page may have at most."""
USUAL: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The page that a caller asks for."""

    after: str = ""
    """The cursor of the page before; empty for the first page."""
    limit: int = USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some items of a list."""

    items: tuple[T, ...]
    next: str | None
    """The cursor of the next page; None if this is the last."""

    def map(self, change: Callable[[T], R]) -> "Page[R]":
        """Return the same page of other items."""
        return Page(items=tuple(map(change, self.items)), next=self.next)


def find_page(tx: Tx, kind: type[R], asked: Asked, *, order_by: Sequence[str] = (), **where: Any) -> Page[R]:
    """Return a page of rows."""
    names = [*(term.removeprefix("-") for term in order_by), "id"]
    limit = min(max(1, asked.limit), LARGEST)
    place = _place(kind, names, asked.after) if asked.after else ()
    found = tx.find(kind, order_by=order_by, limit=limit + 1, after=place, **where)
    page = found[:limit]
    more = len(found) > limit
    return Page(items=tuple(page), next=cursor([getattr(page[-1], one) for one in names]) if more else None)


def cut(items: Sequence[T], asked: Asked, place: Callable[[T], Sequence[Any]]) -> Page[T]:
    """Return a page of a list in memory, in descending order of positions."""
    limit = min(max(1, asked.limit), LARGEST)
    at = tuple(read_cursor(asked.after)) if asked.after else None
    ordered = sorted(items, key=lambda one: tuple(place(one)), reverse=True)
    try:
        rest = [one for one in ordered if at is None or tuple(place(one)) < at]
    except TypeError as foreign:
        raise _wrong() from foreign
    page = rest[:limit]
    return Page(items=tuple(page), next=cursor(place(page[-1])) if len(rest) > limit else None)


def cursor(values: Sequence[Any]) -> str:
    """Return a position as text that is opaque to clients."""
    plain = [one.isoformat() if isinstance(one, datetime) else one for one in values]
    return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def read_cursor(text: str) -> list[Any]:
    """Return the values of a cursor; refuse an invalid one."""
    try:
        found = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, UnicodeError, RecursionError) as wrong:
        raise _wrong() from wrong
    if not isinstance(found, list) or not all(isinstance(one, str | int) for one in found):
        raise _wrong()
    return found


def _place(kind: type[Any], names: Sequence[str], text: str) -> tuple[Any, ...]:
    values = read_cursor(text)
    if len(values) != len(names):
        raise _wrong()
    types = {field.name: field.type for field in fields(kind)}
    return tuple(_value(types[name], value) for name, value in zip(names, values, strict=True))


def _value(kind: Any, value: Any) -> Any:
    wanted = int if kind is int else str
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise _wrong()
    if isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise _wrong()
        return value
    if "\0" in value:
        raise _wrong()
    if kind is not datetime:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as wrong:
        raise _wrong() from wrong
    if moment.tzinfo is None:
        raise _wrong()
    return moment


def _wrong() -> UserError:
    return UserError(
        "this is not a cursor of this list",
        code="cursor_wrong",
        hint="send the value of `next` of the page before as `after`, or leave `after` out for the first page",
    )
