"""What the command line's exit code means: the one place that says so. The documentation is made from it."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes, each with the sentence that the documentation prints."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "ExitCode":
        """Make a member from its number and its meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    VERIFIED = 0, "Everything that was asked for was done and verified."
    NOT_VERIFIED = 1, "It finished but is not verified: a check failed, a task failed, or a receipt differs."
    USER_ERROR = (
        2,
        "Fix your plan, configuration or arguments, or install the agent; the message says what to do.",
    )
    UNFINISHED = (
        3,
        "Unfinished: paused, stopped, cancelled as a whole, waiting for something or for you, or not taken over.",
    )
    UNVERIFIED = (
        4,
        "Done with gaps: each gap is printed with its cause and what to do about it.",
    )
    HELD = 5, "Another process holds what was asked for."
    ENVIRONMENT = (
        6,
        "The environment got in the way: disk, database, git, a source, a gate blind to the tree, or `doctor`.",
    )
    INTERRUPTED = 130, "Stopped at once by Ctrl-C; nothing that was recorded is lost."
