"""An error is known by its code: the words may change."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loopwright.core.values.errors import LoopwrightError


@contextmanager
def raises_code(code: str) -> Iterator[pytest.ExceptionInfo[LoopwrightError]]:
    """Expect an error of Loopwright with this code."""
    with pytest.raises(LoopwrightError) as raised:
        yield raised
    assert raised.value.code == code, f"{raised.value.code}: {raised.value}"
