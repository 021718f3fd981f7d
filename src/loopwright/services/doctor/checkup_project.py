"""What `doctor` says of the project around the current folder: is it installed where its tests may load it from?"""

import os

from loopwright.adapters.home.own_sources import editable_roots, installed_from
from loopwright.config.resolve import Settings
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import here


def installed(settings: Settings) -> list[Finding]:  # noqa: ARG001 - every look gets them
    """Return whether the active Python environment has the project installed, and what gates load then."""
    place = here()
    if place is None:
        return []
    findings = []
    if roots := editable_roots(environment(), place.root):
        named = ", ".join(os.path.relpath(root, place.root.resolve()) for root in roots)
        text = f"installed editable from this checkout: gates and agents load {named} of their own workspace instead"
        findings.append(Finding(name="project", status=Status.OK, text=text))
    for one in installed_from(environment(), place.root):
        if not one.editable:
            text = f"a copy of {one.name} is installed in {one.place}: tests may load it instead of the work"
            fix = "install it editable with `python -m pip install -e .`, or uninstall it; `plan check` tries the gates"
            findings.append(Finding(name="project", status=Status.WARN, text=text, fix=fix))
    return findings
