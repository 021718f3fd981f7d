"""The quota of agents' accounts: whether each is open, and its use.

Not here: the rules about accounts (`core.policy.quotas`), and the rows (`engine.money`).
"""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.policy.quotas import envelope_id, label, standing
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.engine.money.quotas import find_named
from loopwright.engine.views.limit_views import Drawn, Drew, drawn_from
from loopwright.services.homes.read_only_home import glancing

# Accounts and their quota windows in words.

_KINDS = {
    QuotaKind.SUBSCRIPTION: "  (subscription)",
    QuotaKind.WEEKLY: "  (subscription, weekly)",
    QuotaKind.CREDITS: "  (credits)",
    QuotaKind.DOLLARS: "  (each call is paid for)",
    QuotaKind.UNKNOWN: "",
}


def window_in_words(window: QuotaWindow, *, closed: bool = False) -> str:
    """Return what is known about one part of a quota; a refusal only while its account is closed."""
    used = "" if window.used is None else f"  {window.used:.0%} used"
    left = f"  {window.left}" if window.left else ""
    of = f"  of {window.model}" if window.model and window.model != window.name else ""
    if window.kind is QuotaKind.CREDITS and left and not window.left.endswith("used"):
        left += " left"
    refused = "  refused" if window.rejected and closed else ""
    return f"{window.name}{of}{_KINDS[window.kind]}{used}{left}{_resets(window.resets_at)}{refused}"


def _resets(at: datetime | None) -> str:
    return f"  resets {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""


__all__ = [
    "Accounts",
    "Drawn",
    "Drew",
    "Envelope",
    "accounts",
    "drawn",
    "label",
    "standing",
    "window_in_words",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Every account that agents used, and those that the settings name."""

    used: tuple[Envelope, ...]
    named: tuple[str, ...]
    """Accounts in the settings, in their order."""

    @property
    def unused(self) -> tuple[str, ...]:
        """Accounts in the settings that no agent has used."""
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
    """Return the use of an account: AGENT, AGENT/ACCOUNT or AGENT:MODEL."""
    with glancing() as look:
        return tuple(look.store.read_sync(lambda tx: [drawn_from(tx, one) for one in find_named(tx, name)]))
