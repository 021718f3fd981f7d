"""Drives coding agents over a plan until the project's own checks pass, and keeps the proof."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # not from `typing`: importing the package loads nothing else
if TYPE_CHECKING:
    from loopwright.services.api import Loopwright as Loopwright


def __getattr__(name: str) -> object:
    """Load the library's face when it is asked for."""
    if name != "Loopwright":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from loopwright.services.api import Loopwright

    return Loopwright
