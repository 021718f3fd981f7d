"""Drives coding agents over a plan until the project's own checks pass, and keeps the proof."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # not from `typing`: importing the package loads nothing else
if TYPE_CHECKING:
    from loopwright.services.api.library import Loopwright as Loopwright


def __getattr__(name: str) -> object:
    """Load the library when a program asks for it."""
    if name != "Loopwright":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Every command imports this package, and only a library user needs the whole of it.
    from loopwright.services.api.library import Loopwright

    return Loopwright
