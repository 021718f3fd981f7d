"""What the HTTP server asks of a wire protocol: pure translations, one module per protocol."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from loopwright.testing.model_server.scenario import Rejection, Reply, Trouble

Json = Mapping[str, Any]

REQUEST_ID = "req_scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a request for an answer says about the conversation."""

    model: str
    prompt: str
    """The last words of the user."""
    answered: int
    """How many rounds of tool results followed them."""
    stream: bool
    has_tools: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What an answer needs besides its turn."""

    id: str
    """Unique, so that ids made of it are."""
    model: str
    at: int
    """Now, as an epoch time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event."""

    data: Json | str
    name: str = ""


class Wire(Protocol):
    """A module that speaks one protocol."""

    def read(self, path: str, body: Json) -> Request:
        """Return what a request asks for."""

    def reply(self, turn: Reply, frame: Frame) -> Json:
        """Return a turn as the body of one answer."""

    def stream(self, reply: Json) -> Iterator[Event]:
        """Take that body apart into the events of a stream."""

    def rejection(self, trouble: Trouble, frame: Frame) -> Rejection:
        """Return how the service of this protocol refuses."""

    def error(self, rejection: Rejection) -> Json:
        """Return a refusal as the body of an answer."""

    def broken(self, rejection: Rejection, frame: Frame) -> Iterator[Event]:
        """Return a refusal in a stream that has begun."""


class CannotSay(Exception):
    """A scenario asks for something that this protocol has no words for."""


def pieces(text: str) -> list[str]:
    """Cut a text as a model streams it, word by word."""
    return re.findall(r"\S+\s*|\s+", text)


def resets_at(trouble: Trouble, frame: Frame) -> int:
    """Return when a usage limit ends."""
    return frame.at + trouble.resets_in_s if trouble.resets_at is None else trouble.resets_at
