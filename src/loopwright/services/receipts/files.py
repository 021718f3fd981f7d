"""A receipt as files: read without trust, written whole, and exported with its script and its evidence."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loopwright.adapters.gates.records import evidence_file
from loopwright.adapters.home.receipts import read_evidence
from loopwright.adapters.home.statefiles import state_file
from loopwright.core.receipts.evidence import recorded
from loopwright.core.receipts.model import Receipt, read_receipt, render
from loopwright.core.receipts.script import check_script
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.shapes import Misshapen
from loopwright.services.homes.caller import write_whole

EVIDENCE: Final = "evidence"
_ELSEWHERE: Final = "give another folder"
_LARGEST: Final = 256 * 1024 * 1024


def load_receipt(path: Path) -> Receipt:
    """Return the receipt in a file; nothing in it reaches git, a path or a shell before its shape is checked."""
    hint = "give the JSON file that loopwright wrote, such as .loopwright/receipts/plan_….json"
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", code="receipt_unreadable", hint=hint
        ) from error
    if len(data) > _LARGEST:
        raise UserError(f"{path} is too large for a receipt", code="receipt_too_large", hint=hint)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}", code="not_a_receipt", hint=hint) from error
    try:
        return read_receipt(value)
    except Misshapen as error:
        problem = f"{path} is not a receipt: {error.problems[0]}"
        raise UserError(problem, code="not_a_receipt", hint=hint) from error


def written_receipt(project: str, plan_id: str) -> Receipt | None:
    """Return the receipt that Loopwright wrote for a plan; None if there is none, or it is of another version."""
    try:
        return load_receipt(state_file(Path(project), "receipts", f"{plan_id}.json"))
    except UserError:
        return None


def export(receipt: Receipt, folder: Path, runs: Path, ends: Mapping[str, str]) -> list[str]:
    """Write a receipt with its script and the outputs of its gates into a new folder; return what is missing.

    `ends` are the receipts that the plan's finish commits name, by their ids.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise Refused(
            f"{folder} is there already",
            code="file_exists",
            hint="give a folder that does not exist yet: nothing is overwritten",
        ) from error
    except OSError as error:
        raise UserError(
            f"{folder} cannot be made: {error.strerror}", code="folder_not_created", hint=_ELSEWHERE
        ) from error
    missing = []
    for one in recorded(receipt):
        if not one.of_gate:
            continue  # prompts and messages of agents are not exported
        directory, _, part = one.key.rpartition("/")
        kept = read_evidence(runs, one)
        if isinstance(kept, str):
            missing.append(f"{one.what} ({one.key}): {kept}")
            continue
        target = evidence_file(folder / EVIDENCE / directory, part)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(kept)
    for end, frozen in ends.items():
        write_whole(folder / f"{end}.json", frozen, hint=_ELSEWHERE)
    text = render(receipt)
    write_whole(folder / "receipt.sh", check_script(receipt, text, name="receipt.sh"), hint=_ELSEWHERE)
    write_whole(folder / "receipt.json", text, hint=_ELSEWHERE)
    return missing


def frozen_beside(receipt: Receipt, path: Path) -> dict[str, str]:
    """Return the receipts beside this one that the commits of the plan's finishes name, by their ids."""
    beside = {one.id: path.with_name(f"{one.id}.json") for one in receipt.finishes}
    return {
        name: kept.read_text(encoding="utf-8", errors="replace")
        for name, kept in beside.items()
        if kept.is_file()
    }


def script_beside(path: Path) -> str | None:
    """Return the script beside a receipt; None if there is none."""
    script = path.with_suffix(".sh")
    return script.read_text(encoding="utf-8", errors="replace") if script.is_file() else None
