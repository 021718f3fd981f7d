"""Which sandbox runs have here: what the settings want, as far as it was proven to hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.adapters.sandbox.proof import Proof, proof
from loopwright.core.errors import UserError
from loopwright.ports import NoSandbox, Sandbox

INSTALL: Final = "install the package bubblewrap, or set sandbox.program to where a bwrap is"
"""What to do where there is no program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The sandbox that runs have, and why it is that one."""

    sandbox: Sandbox = field(default_factory=NoSandbox)
    proof: Proof
    wanted: Literal["auto", "none", "bubblewrap"]
    network: Literal["on", "agents", "off"] = "on"

    def check(self) -> None:
        """Refuse to go on without the sandbox that was asked for by name."""
        if self.wanted == "bubblewrap" and not self.proof.holds:
            raise UserError(
                f"sandbox.level is bubblewrap, but that does not hold here: {self.proof.why_not}",
                hint=f"{INSTALL}; or set sandbox.level to none",
            )
        if self.proof.holds and self.network != "on" and not self.proof.cuts_network:
            raise UserError(
                f"sandbox.network is {self.network}, but bubblewrap cannot take the network away here",
                hint="set sandbox.network to on, or sandbox.level to none",
            )


def choose(
    wanted: Literal["auto", "none", "bubblewrap"],
    *,
    program: str,
    home: Path,
    own: Sequence[Path],
    user: Path,
    read: Sequence[str] = (),
    write: Sequence[str] = (),
    network: Literal["on", "agents", "off"] = "on",
) -> Chosen:
    """Return the strongest sandbox that is wanted and holds; a place may start with ~/, which is `user`."""
    if wanted == "none":
        return Chosen(proof=Proof(holds=False, why_not="sandbox.level is none"), wanted=wanted)
    found = proof(program, home)
    if not found.holds:
        return Chosen(proof=found, wanted=wanted, network=network)
    sandbox = Bubblewrap(
        program=found.program,
        own=tuple(own),
        readable=tuple(_place(path, user) for path in read),
        writable=tuple(_place(path, user) for path in write),
    )
    return Chosen(sandbox=sandbox, proof=found, wanted=wanted, network=network)


def _place(path: str, user: Path) -> Path:
    return user / path.removeprefix("~/") if path.startswith("~/") else Path(path)
