"""The Store over SQL: transactions in threads, failpoints around each commit, wake-ups after it."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from loopwright.adapters.machine.threads import run_in
from loopwright.adapters.store.backend import Backend
from loopwright.adapters.store.codec import UPCASTERS, Upcaster
from loopwright.adapters.store.tx import Link, SqlTx, Unsure
from loopwright.adapters.store.upgrade import HISTORY, History, prepare
from loopwright.adapters.store.wake import Signal
from loopwright.core.values.errors import BadConfig, NotFound, StoreUnavailable
from loopwright.ports import Failpoint, Tx, no_failpoint

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_TRIES: Final = 5
_READERS: Final = 2
"""More take memory and no less time: Python runs one at a time, and a read takes a millisecond."""
PATIENCE_S: Final = 15.0


class SqlStore:
    """A home's database: one file, or one PostgreSQL database."""

    def __init__(
        self,
        backend: Backend,
        *,
        failpoint: Failpoint,
        patience: float,
        upcasters: Mapping[tuple[str, int], Upcaster],
    ) -> None:
        self._backend = backend
        self._failpoint = failpoint
        self._patience = patience
        self._upcasters = upcasters
        self._signal = Signal()
        self._writing = threading.Lock()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="loopwright-write")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="loopwright-read")

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        *,
        failpoint: Failpoint = no_failpoint,
        create: bool = True,
        patience: float = PATIENCE_S,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
        history: History = HISTORY,
    ) -> "SqlStore":
        """Open a home by the path of its SQLite file or by a PostgreSQL URL.

        With `create`, a missing database is made and an older one upgraded; without, both are refused. `patience`
        is how many seconds to wait for another writer.
        """
        backend = _backend(url_or_path, create=create, patience=patience)
        try:
            prepare(backend, create=create, history=history)
        except Exception as error:
            backend.close()
            explained = backend.explain(error)
            if explained is error:
                raise
            raise explained from error
        except BaseException:
            backend.close()
            raise
        return cls(backend, failpoint=failpoint, patience=patience, upcasters=upcasters)

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction."""
        self._signal.mark()
        return await run_in(self._writer, lambda: self._listening(lambda: self.transact_sync(name, work)))

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction."""
        self._signal.mark()
        return await run_in(self._readers, lambda: self._listening(lambda: self.read_sync(work)))

    async def changed(self, timeout: float, *, ignoring: Collection[str] = ()) -> bool:
        """Wait until some process committed something since the current task last looked."""
        await run_in(self._readers, lambda: self._backend.wake.listen(self._signal))
        return await self._signal.wait(timeout, ignoring=ignoring)

    async def back_up(self, now: datetime) -> None:
        """Copy the database aside if that was not done for a day."""
        await run_in(self._readers, lambda: self._explained(lambda: self._backend.backup_daily(now)))

    async def close(self) -> None:
        """Let go of connections, threads and sockets."""
        await run_in(self._readers, self._backend.wake.close)
        self.close_sync()

    def transact_sync(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction, in this thread."""
        with self._one_writer():
            for tries_left in reversed(range(_TRIES)):
                try:
                    result, changed = self._transact_once(name, work)
                    break
                except self._backend.errors as error:
                    if not tries_left or not self._backend.may_run_again(error):
                        raise self._backend.explain(error) from error
                    _log.info("transaction runs again, name=%s cause=%s", name, error)
        if changed:
            self._signal.bump(name)
            self._backend.wake.send()
        return result

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction, in this thread."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._backend.reading() as link:
                    return work(SqlTx(link, writable=False, upcasters=self._upcasters))
            except self._backend.errors as error:
                if not tries_left or not self._backend.may_run_again(error):
                    raise self._backend.explain(error) from error
        raise AssertionError("the last try returns or raises")

    def close_sync(self) -> None:
        """Let go of connections, threads and sockets, from a thread that is not one of them."""
        self._backend.wake.close()
        self._writer.shutdown()
        self._readers.shutdown()
        self._backend.close()

    def _transact_once(self, name: str, work: Callable[[Tx], T]) -> tuple[T, bool]:
        with self._backend.writing() as link:
            tx = SqlTx(link, writable=True, upcasters=self._upcasters)
            result = work(tx)
            tx.finish()
            if tx.dirty:
                self._backend.announce(link)
            self._failpoint(f"store.{name}.before")
            self._commit(name, link)
            self._failpoint(f"store.{name}.after")
            return result, tx.dirty

    def _commit(self, name: str, link: Link) -> None:
        try:
            link.commit()
        except Unsure as error:
            # Running it again could do it twice; the caller reads the rows and continues from there.
            raise StoreUnavailable(
                f"The connection to {self._backend.where} broke while saving ({name}), so it is unknown whether "
                "it was saved. You have nothing to do: Loopwright reads the rows again before it continues."
            ) from error

    def _explained(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except self._backend.errors as error:
            raise self._backend.explain(error) from error

    def _listening(self, work: Callable[[], T]) -> T:
        # From the first look on, so that no commit falls between that look and the first `changed`.
        self._backend.wake.listen(self._signal)
        return work()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        if not self._writing.acquire(timeout=self._patience):
            raise StoreUnavailable(
                f"The database {self._backend.where}: another transaction of this process has been running for more "
                f"than {self._patience:g} s. Nothing was lost; try again."
            )
        try:
            yield
        finally:
            self._writing.release()


def _backend(url_or_path: str | Path, *, create: bool, patience: float) -> Backend:
    text = str(url_or_path)
    if "://" not in text:
        return _sqlite(Path(text), create=create, patience=patience)
    # Only a URL needs it here.
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise BadConfig(
            "The address of the home is not a URL.",
            code="home_address_wrong",
            hint="Use postgresql://user@host/db.",
        ) from error
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite" and url.database:
        return _sqlite(Path(url.database), create=create, patience=patience)
    if kind not in ("postgresql", "postgres"):
        raise BadConfig(
            f"A home cannot live in {kind!r}.",
            code="home_address_wrong",
            hint="Use the path of a SQLite file or postgresql://user@host/db.",
        )
    try:
        # Its driver is an extra that may not be installed.
        from loopwright.adapters.store.postgres import PostgresBackend
    except ModuleNotFoundError as error:
        raise BadConfig(
            "A home in PostgreSQL needs a driver that is not installed.",
            code="database_driver_missing",
            hint="Run: pip install 'loopwright[postgres]'",
        ) from error
    return PostgresBackend(url, patience=patience)


def _sqlite(path: Path, *, create: bool, patience: float) -> Backend:
    # SQLAlchemy takes long to load; a home in PostgreSQL needs another part of it.
    from loopwright.adapters.store.backups import backups_of, lost
    from loopwright.adapters.store.sqlite import SqliteBackend

    path = path.absolute()
    if (not path.exists() or path.stat().st_size == 0) and backups_of(path):
        raise lost(path)
    if create:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"The folder {path.parent} cannot be made ({error.strerror}). Choose another home."
            ) from error
    elif not path.exists():
        raise NotFound(
            f"There is no home at {path} yet.", code="no_home", hint="Run `loopwright run FILE` to make one."
        )
    return SqliteBackend(path, patience=patience, create=create)
