"""Carries out a stage through the command line, and keeps what is needed to judge it afterwards."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.cli.program import git
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.gates.bare_python import bare_python
from tests.acceptance.sandbox import task
from tests.loaded import Said
from tests.trust.behaviour import CHECKOUT, HOME, PLACE, Stage
from tests.waiting import eventually

from loopwright.core.rows.model import Plan

KEPT = "kept.json"


def carry_out(stage: Stage, place: Path, bwrap: str | None = None) -> Said:
    """Run every behaviour of a stage as a task of one plan; write down what is only there now."""
    shop = Workshop(place)
    for name, text in stage.files.items():
        file = shop.repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name, text in stage.beside.items():
        file = shop.place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(shop.repository, "add", "-A")
    git(shop.repository, "commit", "-q", "--allow-empty", "-m", "the project")
    git(shop.repository, "branch", "topic", "trunk~1")
    git(shop.repository, "tag", "v1")
    (shop.repository / "notes.txt").write_text("of the user, not committed\n")
    shop.program.env["LOOPWRIGHT_DISK__MAX_WORKSPACE"] = "100MB"
    shop.program.env["PATH"] = f"{bare_python(shop.place / 'bare')}:{shop.program.env['PATH']}"
    if bwrap is not None:
        shop.program.env |= {"LOOPWRIGHT_SANDBOX__LEVEL": "bubblewrap", "LOOPWRIGHT_SANDBOX__PROGRAM": bwrap}
    try:
        script = {
            "tasks": {key: one.attempts for key, one in stage.behaviours.items()},
            "reviews": {key: one.reviews for key, one in stage.behaviours.items() if one.reviews},
        }
        shop.script.write_text(json.dumps(_placed(shop, script)))
        tasks = [task(key, *one.checks, **one.more) for key, one in stage.behaviours.items()]
        gates = [{"name": f"gate {n}", "run": run} for n, run in enumerate(stage.gates, 1)]
        plan = shop.plan(
            "liars",
            _placed(shop, tasks),
            gates=gates,
            settings={"landing": {"parallel_gates": 1}, **stage.settings},
        )
        before = fingerprint(shop.repository)
        said = shop("run", str(plan), timeout=300)
        held = said
        if stage.mends:
            subprocess.run(["sh", "-ec", _placed(shop, stage.mends)], check=True)
            said = shop("resume", timeout=300)
        eventually(lambda: not shop.processes(), timeout=20, every=0.2)
        receipt = shop.place / "receipt.json"
        shop("receipt", "show", shop.rows(Plan)[-1].id, "--output", str(receipt))
        verified = shop("receipt", "verify", str(receipt))
        after = fingerprint(shop.repository)
        shown = {key: shop("show", key).out for key in stage.behaviours} if stage.dirties else {}
        kept = {
            "undone": _undo(shop) if stage.dirties else after,
            "before": before,
            "shown": shown,
            "after": after,
            "receipt": json.loads(receipt.read_text()),
            "verified": [verified.code, verified.out + verified.err],
            "forged": _forged(shop),
            "held": [held.code, held.out],
            "questions": shop("questions", "--json").document["questions"],
        }
        (place / KEPT).write_text(json.dumps(kept))
        return said
    finally:
        shop.clean_up()


def _undo(shop: Workshop) -> dict[str, str]:
    """Do what the user was told would undo it all, the newest first, and return how the checkout is then."""
    for event in reversed(shop.events("checkout_changed")):
        for command in event.payload["undo"]:
            subprocess.run(["sh", "-ec", command], check=True, capture_output=True)
    return fingerprint(shop.repository)


def _forged(shop: Workshop) -> tuple[int, Any]:
    """Return what comes of the receipt in the project's own folder, where there is one."""
    file = shop.repository / ".loopwright" / "receipts" / f"{shop.rows(Plan)[-1].id}.json"
    if not file.exists():
        return 0, None
    return shop("receipt", "verify", str(file)).code, json.loads(file.read_text())


def _placed(shop: Workshop, given: Any) -> Any:
    text = json.dumps(given)
    for word, path in ((CHECKOUT, shop.repository), (PLACE, shop.place), (HOME, shop.home)):
        text = text.replace(word, str(path))
    return json.loads(text)


def fingerprint(repository: Path) -> dict[str, str]:
    """Return everything in the user's checkout and repository that is theirs, by its name."""
    folder = repository / ".git"
    refs = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    theirs = dict(line.split() for line in refs if "/loopwright/" not in line)
    files = [
        path
        for path in repository.rglob("*")
        if path.is_file() and path.parts[: len(folder.parts)] != folder.parts
    ]
    files += [folder / "HEAD", folder / "config", *(path for path in (folder / "hooks").glob("*"))]
    hashes = {
        str(path.relative_to(repository)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if ".loopwright" not in path.parts
    }
    return {**theirs, **hashes}
