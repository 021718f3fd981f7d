"""Ids: a prefix for the kind, and a random UUID. They are safe in paths, refs and workflow ids."""

import re
from enum import StrEnum
from uuid import UUID

from loopwright.core.values.errors import BadId


class Kind(StrEnum):
    """The prefix of each kind of id."""

    ACTION = "act"
    PROJECT = "proj"
    LOOP = "loop"
    PLAN = "plan"
    TASK = "ptask"
    ATTEMPT = "att"
    RUN = "run"
    VERDICT = "verdict"
    COMMAND = "cmd"
    QUESTION = "ask"
    DISCOVERY = "found"
    REVIEW = "review"
    FINISH = "finish"
    WORKER = "worker"
    EVENT = "evt"
    PACKET = "pkt"
    FAILURE = "fail"
    HEALING = "heal"
    HOLD = "hold"
    LESSON = "lesson"
    LESSON_USE = "use"
    TOKEN = "tok"  # noqa: S105 - a prefix
    WEBHOOK = "hook"


_SHAPE = re.compile(r"([a-z]+)_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def make(kind: Kind, value: UUID) -> str:
    """Return the id of `kind` for a UUID that the caller drew."""
    return f"{kind.value}_{value}"


def is_id(text: str, kind: Kind) -> bool:
    """Return whether `text` is a well-formed id of this kind."""
    match = _SHAPE.fullmatch(text)
    return match is not None and match.group(1) == kind.value


def check(text: str, kind: Kind) -> str:
    """Return `text` unchanged, or raise: no external text becomes a path unchecked."""
    if not is_id(text, kind):
        raise BadId(f"{text!r} is not a {kind.value} id")
    return text


def short_id(id: str) -> str:
    """Return as much of an id as people need: every command accepts the beginning of one."""
    kind, _, rest = id.partition("_")
    return f"{kind}_{rest[:8]}"
