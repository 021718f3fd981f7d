"""Looking again at everything that a receipt tells of: git, recordings, the chain of events, rows, the script."""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopwright.adapters.git import GitRepository
from loopwright.adapters.home.receipts import gather_facts, plan_events
from loopwright.core.receipts.build import EventFacts, Facts, render
from loopwright.core.receipts.script import check_script
from loopwright.core.values.errors import DamagedRow, LoopwrightError, NotARepository
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import look_settings, open_existing
from loopwright.services.homes.read_only_home import find_plan, looking, whereabouts
from loopwright.services.receipts.files import EVIDENCE, frozen_beside, script_beside


async def present_receipt(plan: str | None) -> dict[str, Any]:
    """Return the receipt of a plan as the rows give it now."""
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


async def look_again(receipt: Any, where: Path, file: Path) -> Facts:
    """Return what can be found again of a receipt in a file, in a repository and in the home at hand."""
    evidence = _run_files(receipt) or (beside if (beside := file.with_name(EVIDENCE)).is_dir() else None)
    # The repository's reader keeps notes in a home: a passing one, so that nothing is left behind.
    with tempfile.TemporaryDirectory(prefix="loopwright-verify-") as scratch:
        repository = GitRepository(where, project_id="verify", home=Path(scratch))
        try:
            facts = await gather_facts(
                repository, receipt, evidence, _events(receipt), frozen_beside(receipt, file)
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
    if receipt["events"]["head"] not in facts.events.current:
        return replace(
            facts, unchecked=(*facts.unchecked, "the home's rows: the plan has gone on since the receipt")
        )
    rows = await present_receipt(receipt["plan"]["id"])
    # As it would be written down: JSON knows no tuples.
    return replace(facts, rows=json.loads(render(rows)))


def _events(receipt: Any) -> EventFacts | None:
    """Look at the chain of events, when the home at hand is the one where the plan ran."""
    plan = receipt.get("plan") if isinstance(receipt, dict) else None
    plan_id = plan.get("id") if isinstance(plan, dict) else None
    if not isinstance(plan_id, str):
        return None
    try:
        with looking() as look:
            return look.store.read_sync(lambda tx: plan_events(tx, plan_id))
    except DamagedRow:
        raise
    except LoopwrightError:
        return None  # then it is named among what was not checked


def _run_files(receipt: Any) -> Path | None:
    """Return the folder with the run files, when this is the machine where the plan ran."""
    try:
        folder = whereabouts(environment(), sys.platform)[0] / "runs"
    except LoopwrightError:
        return None
    runs = receipt.get("runs") if isinstance(receipt, dict) else None
    named = [one.get("id") for one in runs if isinstance(one, dict)] if isinstance(runs, list) else []
    known = any(isinstance(one, str) and "/" not in one and (folder / one).is_dir() for one in named)
    return folder if known else None
