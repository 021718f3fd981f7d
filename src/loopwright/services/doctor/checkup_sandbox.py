"""What `doctor` says of containment: which sandbox runs have here, what it lets them reach, and what is missing."""

import platform
from typing import Final

from loopwright.adapters.sandbox.choosing import INSTALL, Chosen
from loopwright.adapters.sandbox.proof import Proof
from loopwright.app import chosen_sandbox
from loopwright.config.resolve import Settings
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.homes.caller import environment

_OPEN: Final = (
    "agents and gates run as you, in private clones with an allow-listed environment, but in no sandbox"
)
_NETWORK: Final = {
    "on": "they may use the network",
    "agents": "agents may use the network, gates may not",
    "off": "none may use the network",
}


def containment(settings: Settings) -> list[Finding]:
    """Return which sandbox runs have, after trying it."""
    chosen = chosen_sandbox(settings, environment())
    more = [_passed_over(chosen, chosen.passed_over)] if chosen.passed_over is not None else []
    if not chosen.proof.holds:
        return [_none(chosen), *more]
    level = chosen.sandbox.level
    named = f"{chosen.proof.says or level} at {chosen.proof.program}"
    made = chosen.sandbox.made_with
    named += f", image {made.image} {made.image_id}" if made is not None and made.image else ""
    text = (
        f"{level} ({named}), tried here: agents and gates write only their workspace, their temporary folder and "
        f"what an agent needs for itself; your HOME and other processes are hidden; {_NETWORK[chosen.network]}"
    )
    if chosen.keeps_network:
        fix = "set sandbox.network to on: a network of its own cannot be made on this machine"
        return [Finding(name="sandbox", status=Status.FAIL, text=text, fix=fix), *more]
    return [Finding(name="sandbox", status=Status.OK, text=text), *more]


def _passed_over(chosen: Chosen, proof: Proof) -> Finding:
    """Return why runs are in no container although an image is named."""
    text = f"containers of the image {chosen.image} do not hold here, so runs are in none: {proof.why_not}"
    fix = (
        proof.fix
        or "see to it that podman or docker can start it, or take sandbox.image out of the configuration"
    )
    return Finding(name="container", status=Status.WARN, text=text, fix=fix)


def _none(chosen: Chosen) -> Finding:
    why = chosen.proof.why_not
    if chosen.keeps_network:
        text = f"{_OPEN}, and sandbox.network is {chosen.network}: {chosen.keeps_network}"
        fix = "see to it that a sandbox holds here (sandbox.level auto), or set sandbox.network to on"
        return Finding(name="sandbox", status=Status.FAIL, text=text, fix=fix)
    status = Status.FAIL if chosen.wanted in {"bubblewrap", "container"} else Status.WARN
    return Finding(name="sandbox", status=status, text=f"{_OPEN}: {why}", fix=how_to_contain(chosen))


def how_to_contain(chosen: Chosen) -> str:
    """Return what to do so that runs have a sandbox here."""
    if chosen.wanted == "none":
        return "set sandbox.level to auto, or run what you do not trust in a container or a virtual machine"
    if chosen.wanted == "container":
        return (
            chosen.proof.fix or "see to it that podman or docker can start it, or set sandbox.level to auto"
        )
    if platform.system() != "Linux":
        return "bubblewrap needs Linux; run what you do not trust in a container or a virtual machine"
    if not chosen.proof.program:
        return INSTALL
    return (
        "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns; in a container also its own profile), or run what you "
        "do not trust in a virtual machine"
    )
