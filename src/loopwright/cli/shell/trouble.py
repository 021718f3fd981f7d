"""Trouble of the machine as an error that says what to do: open files, memory, disk, permissions, a home that is gone.

It is loaded first and prints without any library, because the same trouble may keep a module from being loaded.
"""

import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from loopwright.core.values.errors import (
    DiskFull,
    FileGone,
    LoopwrightError,
    MachineTrouble,
    NotPermitted,
    OutOfMemory,
    StoreUnavailable,
    TooManyOpenFiles,
)

EXIT_CODE: Final = 6
"""`ExitCode.ENVIRONMENT`, by its number: the module that names it may be what could not be loaded."""

_KINDS: Final[Mapping[int, type[MachineTrouble]]] = {
    errno.EMFILE: TooManyOpenFiles,
    errno.ENFILE: TooManyOpenFiles,
    errno.ENOMEM: OutOfMemory,
    errno.EAGAIN: OutOfMemory,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EFBIG: DiskFull,
    errno.EROFS: NotPermitted,
    errno.EACCES: NotPermitted,
    errno.EPERM: NotPermitted,
    errno.ENOENT: FileGone,
    errno.ENOTDIR: FileGone,
    errno.ESTALE: FileGone,
}
_NO_MEMORY: Final = ("can't start new thread", "failed to map segment", "Cannot allocate memory")
"""How Python and the loader say that memory or processes ran out, where they raise no MemoryError."""


def trouble_of(error: BaseException) -> LoopwrightError | None:
    """Return the machine's part in an error: the error itself, or its named cause; None for a defect."""
    for one in _chain(error):
        if isinstance(one, MachineTrouble | StoreUnavailable):
            return one
        if isinstance(one, MemoryError) or any(words in str(one) for words in _NO_MEMORY):
            return OutOfMemory(str(one))
        if isinstance(one, OSError) and one.errno is not None:
            names = " -> ".join(
                os.fsdecode(name) for name in (one.filename, one.filename2) if name is not None
            )
            told = f"{names} ({os.strerror(one.errno)})" if names else os.strerror(one.errno)
            return _KINDS.get(one.errno, MachineTrouble)(told)
        if type(one).__module__ == "sqlite3":
            return StoreUnavailable(f"The database cannot be used: {one}. `loopwright doctor` looks at it.")
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it holds if it is a group, and the cause that it was raised from."""
    yield error
    for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _chain(one)
    if error.__cause__ is not None:
        yield from _chain(error.__cause__)


def tell(trouble: LoopwrightError, *, as_json: bool) -> int:
    """Print an error with nothing but the standard library; return the exit code."""
    hint = getattr(trouble, "hint", None)
    if as_json:
        error = {"code": trouble.code, "message": str(trouble), "hint": hint}
        sys.stdout.write(json.dumps({"error": error, "exit_code": EXIT_CODE}, indent=2) + "\n")
    else:
        sys.stderr.write(f"error: {trouble}\n" + (f"to do: {hint}\n" if hint else ""))
    return EXIT_CODE
