"""Writing a file for a person: whole or not at all."""

import os
from pathlib import Path

from loopwright.core.values.errors import UserError


def write_whole(path: Path, text: str, *, hint: str) -> None:
    """Write a file, or leave what was there; `hint` says what to do when it cannot be written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(
            f"{path} cannot be written: {error.strerror}", code="file_not_written", hint=hint
        ) from error
