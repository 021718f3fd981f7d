"""Check again everything that a receipt mentions: git, recordings, the chain of events, rows, the script."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.receipts import gather_facts, plan_events
from loopwright.core.receipts.model import Receipt
from loopwright.core.receipts.script import check_script
from loopwright.core.receipts.verify import EventFacts, Facts
from loopwright.core.values.errors import DamagedRow, LoopwrightError, NotARepository
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.read_only_home import find_plan, looking, whereabouts
from loopwright.services.receipts.files import EVIDENCE, frozen_beside, script_beside


async def present_receipt(plan: str | None) -> Receipt:
    """Return the receipt of a plan as the rows give it now."""
    # To verify a receipt needs no worker.
    from loopwright.app import make_world
    from loopwright.engine.branch.receipt import plan_receipt

    settings = look_settings()
    home = open_existing(settings)
    try:
        row = await home.store.read(lambda tx: find_plan(tx, plan))
        world = make_world(home, settings, environment(), slots=1)
        return await plan_receipt(world, row.id)
    finally:
        await home.store.close()


async def look_again(receipt: Receipt, where: Path, file: Path) -> Facts:
    """Return what can be found again of a receipt in a file, in a repository and in the home at hand."""
    evidence = _run_files(receipt) or (beside if (beside := file.with_name(EVIDENCE)).is_dir() else None)
    # The repository's reader keeps notes in a home: a passing one, so that nothing is left behind.
    with tempfile.TemporaryDirectory(prefix="loopwright-verify-") as scratch:
        repository = GitRepository(where, project_id="verify", home=Path(scratch))
        try:
            facts = await gather_facts(
                repository, receipt, evidence, _events(receipt.plan.id), frozen_beside(receipt, file)
            )
        except NotARepository as outside:
            hint = "say where the result is: --repository PATH"
            raise NotARepository(str(outside), code="not_a_repository", hint=hint) from outside
    script = script_beside(file)
    if script is not None:
        expected = check_script(receipt, file.read_text(encoding="utf-8"), name=file.with_suffix(".sh").name)
        facts = replace(facts, script=script, expected_script=expected)
    if facts.events is None:
        return facts
    if receipt.events.head not in facts.events.current:
        return replace(
            facts, unchecked=(*facts.unchecked, "the home's rows: the plan continued after the receipt")
        )
    return replace(facts, rows=await present_receipt(receipt.plan.id))


def _events(plan_id: str) -> EventFacts | None:
    """Check the chain of events, if the plan ran in the home at hand."""
    try:
        with looking() as look:
            return look.store.read_sync(lambda tx: plan_events(tx, plan_id))
    except DamagedRow:
        raise
    except LoopwrightError:
        return None  # `unchecked` names it


def _run_files(receipt: Receipt) -> Path | None:
    """Return the folder with the run files, if the plan ran on this machine."""
    try:
        folder = whereabouts(environment(), sys.platform)[0] / "runs"
    except LoopwrightError:
        return None
    return folder if any((folder / run.id).is_dir() for run in receipt.runs) else None
