"""Which sandbox runs have here: what the settings want, as far as it was proven to hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.adapters.sandbox.container import NOTES, remove_abandoned
from loopwright.adapters.sandbox.container_proof import container_proof
from loopwright.adapters.sandbox.proof import Proof, proof
from loopwright.core.values.errors import UserError
from loopwright.ports import NoSandbox, Sandbox

Wanted = Literal["auto", "none", "bubblewrap", "container"]
Network = Literal["on", "agents", "off"]

INSTALL: Final = "install the package bubblewrap, or set sandbox.program to where a bwrap is"
"""What to do where there is no program."""
NAME_ONE: Final = "set sandbox.image to the image that your project is built and tested in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The sandbox that runs have, and why it is that one."""

    sandbox: Sandbox = field(default_factory=NoSandbox)
    proof: Proof
    wanted: Wanted
    network: Network = "on"
    image: str | None = None
    passed_over: Proof | None = None
    """Why there are no containers although an image is named."""

    def check(self) -> None:
        """Refuse to continue without the sandbox that the settings name, or with a network that they forbid."""
        if self.wanted in {"bubblewrap", "container"} and not self.proof.holds:
            advice = self.proof.fix or (
                INSTALL if self.wanted == "bubblewrap" else "`loopwright doctor` says more"
            )
            raise UserError(
                f"sandbox.level is {self.wanted}, but that does not hold here: {self.proof.why_not}",
                code="sandbox_unavailable",
                hint=f"{advice}; or set sandbox.level to none",
            )
        if self.keeps_network:
            raise UserError(
                f"sandbox.network is {self.network}, but {self.keeps_network}",
                code="sandbox_network_not_enforced",
                hint="`loopwright doctor` says what a sandbox needs here; or set sandbox.network to on",
            )

    @property
    def keeps_network(self) -> str:
        """Why runs have the network that they are not to have; empty where they are to have it, or do not."""
        if self.network == "on" or self.proof.cuts_network:
            return ""
        if self.proof.holds:
            return f"{self.sandbox.level} cannot take the network away here"
        return f"only a sandbox can take the network away, and runs have none: {self.proof.why_not}"


def choose(
    wanted: Wanted,
    *,
    program: str,
    home: Path,
    own: Sequence[Path],
    user: Path,
    read: Sequence[str] = (),
    write: Sequence[str] = (),
    network: Network = "on",
    image: str | None = None,
    engine: str = "auto",
    env: Mapping[str, str] | None = None,
) -> Chosen:
    """Return the strongest sandbox that is wanted and holds; a place may start with ~/, which is `user`."""
    if wanted == "none":
        open_ = Proof(holds=False, why_not="sandbox.level is none")
        return Chosen(proof=open_, wanted=wanted, network=network)
    readable, writable = (tuple(_place(path, user) for path in paths) for paths in (read, write))
    remove_abandoned(home / NOTES)
    passed_over = None
    if wanted == "container" or (wanted == "auto" and image):
        found, container = (
            container_proof(engine, image, home, env or {})
            if image
            else (Proof(holds=False, why_not="no image is named", fix=NAME_ONE), None)
        )
        if container is not None:
            sandbox = replace(container, own=tuple(own), readable=readable, writable=writable)
            return Chosen(sandbox=sandbox, proof=found, wanted=wanted, network=network, image=image)
        if wanted == "container":
            return Chosen(proof=found, wanted=wanted, network=network, image=image)
        passed_over = found
    found = proof(program, home)
    walls: Sandbox = NoSandbox()
    if found.holds:
        walls = Bubblewrap(
            program=found.program,
            says=found.says or "bubblewrap",
            own=tuple(own),
            readable=readable,
            writable=writable,
        )
    return Chosen(
        sandbox=walls, proof=found, wanted=wanted, network=network, image=image, passed_over=passed_over
    )


def _place(path: str, user: Path) -> Path:
    return user / path.removeprefix("~/") if path.startswith("~/") else Path(path)
