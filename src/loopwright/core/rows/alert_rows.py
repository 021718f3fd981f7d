"""Acknowledgements of alerts."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """The user has seen an alert. It holds until the alert's cause happens again."""

    id: str
    """The alert."""
    actor: str
    created_at: datetime
