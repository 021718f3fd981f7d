"""The accounts that agents draw from: whether each is open, and what was drawn from it."""

from dataclasses import dataclass

from loopwright.core.policy.quotas import envelope_id
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.engine.money.quotas import find_named
from loopwright.engine.views.limit_views import Drawn, Drew, drawn_from
from loopwright.services.homes.read_only_home import glancing

__all__ = ["Accounts", "Drawn", "Drew", "Envelope", "accounts", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Every account that agents drew from, and those that the settings name."""

    used: tuple[Envelope, ...]
    named: tuple[str, ...]
    """Accounts in the settings, in their order."""

    @property
    def unused(self) -> tuple[str, ...]:
        """Accounts in the settings that no agent has drawn from."""
        used = {one.id for one in self.used}
        return tuple(one for one in self.named if one not in used)

    def is_known(self, envelope: Envelope) -> bool:
        """Return whether the settings still have this account, or name no accounts of its agent."""
        several = {one.partition("/")[0] for one in self.named}
        return envelope.agent not in several or envelope_id(envelope.agent, envelope.account) in self.named


def accounts() -> Accounts:
    """Return the accounts of this home and of the settings."""
    # Only the list of all accounts needs the settings, which take long to load.
    from loopwright.services.homes.context import look_settings

    with glancing() as look:
        found = look.store.read_sync(lambda tx: tx.find(Envelope, order_by=("agent", "account", "id")))
    named = look_settings().values.accounts
    return Accounts(
        used=tuple(found),
        named=tuple(envelope_id(agent, name) for agent, several in named.items() for name in several),
    )


def drawn(name: str) -> tuple[Drawn, ...]:
    """Return what was drawn from an account: AGENT, AGENT/ACCOUNT or AGENT:MODEL."""
    with glancing() as look:
        return tuple(look.store.read_sync(lambda tx: [drawn_from(tx, one) for one in find_named(tx, name)]))
