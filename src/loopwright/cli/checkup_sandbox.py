"""What `doctor` says of containment: which sandbox runs have here, what it lets them reach, and what is missing."""

import os
import platform
from typing import Final

from loopwright.adapters.sandbox.choosing import INSTALL, Chosen
from loopwright.app import chosen_sandbox
from loopwright.cli.checkup_machine import Finding, Status
from loopwright.config.resolve import Settings

_OPEN: Final = (
    "agents and gates run as you, in private clones with an allow-listed environment, but in no sandbox"
)
_NETWORK: Final = {
    "on": "they may use the network",
    "agents": "agents may use the network, gates may not",
    "off": "none may use the network",
}


def containment(settings: Settings) -> list[Finding]:
    """Say which sandbox runs have, after trying it."""
    chosen = chosen_sandbox(settings, os.environ)
    if not chosen.proof.holds:
        return [_none(chosen)]
    named = f"{chosen.proof.says or 'bubblewrap'} at {chosen.proof.program}"
    text = (
        f"bubblewrap ({named}), tried here: agents and gates write only their workspace, their temporary folder and "
        f"what an agent needs for itself; your HOME and other processes are hidden; {_NETWORK[chosen.network]}"
    )
    if chosen.network != "on" and not chosen.proof.cuts_network:
        fix = "set sandbox.network to on: a network of its own cannot be made on this machine"
        return [Finding(name="sandbox", status=Status.FAIL, text=text, fix=fix)]
    return [Finding(name="sandbox", status=Status.OK, text=text)]


def _none(chosen: Chosen) -> Finding:
    why = chosen.proof.why_not
    if chosen.wanted == "none":
        fix = "set sandbox.level to auto, or run what you do not trust in a container or a virtual machine"
        return Finding(name="sandbox", status=Status.WARN, text=f"{_OPEN}: {why}", fix=fix)
    status = Status.FAIL if chosen.wanted == "bubblewrap" else Status.WARN
    if platform.system() != "Linux":
        fix = "bubblewrap needs Linux; run what you do not trust in a container or a virtual machine"
    elif not chosen.proof.program:
        fix = INSTALL
    else:
        fix = (
            "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns; in a container also its own profile), or run what you "
            "do not trust in a virtual machine"
        )
    return Finding(name="sandbox", status=status, text=f"{_OPEN}: {why}", fix=fix)
