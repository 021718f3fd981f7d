"""One test for a list of cases: every case runs, and all that fail are reported together.

pytest spends milliseconds on each item of `parametrize`, which is more than most cases of a pure function take. Use
`each_case` where a case needs nothing of its own but a folder, and `parametrize` where cases are slow.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., Any]
_PARAM = type(pytest.param())
_WIDEST = 200


def each_case(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], Any] | None = None,
) -> Callable[[Test], Test]:
    """Call the test with each of the values, as `pytest.mark.parametrize` would, but as one item.

    Each case gets a `tmp_path` of its own.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = ids if ids is None or callable(ids) else list(ids)
    cases = [_case(n, wanted, value, given) for n, value in enumerate(values)]
    assert cases, f"there is no case for {names}"

    def decorate(test: Test) -> Test:
        kept = [one for one in inspect.signature(test).parameters.values() if one.name not in wanted]
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run_async(*itself: Any, **fixtures: Any) -> None:
                with _together(len(cases)) as attempt:
                    for n, (name, case) in enumerate(cases):
                        with attempt(name):
                            await test(*itself, **_own_folder(fixtures, n), **case)

            run: Test = run_async
        else:

            @functools.wraps(test)
            def run_sync(*itself: Any, **fixtures: Any) -> None:
                with _together(len(cases)) as attempt:
                    for n, (name, case) in enumerate(cases):
                        with attempt(name):
                            test(*itself, **_own_folder(fixtures, n), **case)

            run = run_sync
        run.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        return run

    return decorate


def _case(n: int, names: Sequence[str], value: Any, ids: Any) -> tuple[str, dict[str, Any]]:
    """Return what a failure calls the case, and its arguments."""
    if isinstance(value, _PARAM):
        parts, name = tuple(value.values), value.id
    else:
        parts, name = tuple(value) if len(names) > 1 else (value,), None
    if name is None and callable(ids):
        name = "-".join(str(part if (named := ids(part)) is None else named) for part in parts)
    elif name is None:
        name = repr(parts) if ids is None else ids[n]
    return str(name), dict(zip(names, parts, strict=True))


def _own_folder(fixtures: dict[str, Any], n: int) -> dict[str, Any]:
    if "tmp_path" not in fixtures:
        return fixtures
    folder: Path = fixtures["tmp_path"] / str(n)
    folder.mkdir()
    return fixtures | {"tmp_path": folder}


@contextmanager
def _together(count: int) -> Iterator[Callable[[str], Any]]:
    """Collect what the cases raise, and raise it at the end."""
    failed: list[Exception] = []

    @contextmanager
    def attempt(name: str) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised with the others
            case = name if len(name) <= _WIDEST else f"{name[:_WIDEST]}…"
            kept = error if isinstance(error, Exception) else AssertionError(str(error))
            kept.add_note(f"in the case {case}")
            failed.append(kept)

    yield attempt
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {count} cases failed", failed)
