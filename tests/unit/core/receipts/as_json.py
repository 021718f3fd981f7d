"""Receipts as JSON values: what a file has, and what a forger changes."""

from dataclasses import replace
from typing import Any

from loopwright.core.receipts import build, evidence, model, script, verify
from loopwright.core.values.documents import document
from loopwright.core.values.shapes import Misshapen

Json = dict[str, Any]


def build_receipt(**rows: Any) -> Json:
    """Build a receipt and return its JSON."""
    return document(build.build_receipt(**rows))


def shape_problems(receipt: Any) -> list[str]:
    """Return what keeps a JSON value from being a receipt."""
    try:
        model.read_receipt(receipt)
    except Misshapen as error:
        return list(error.problems)
    return []


def verify_receipt(receipt: Any, facts: verify.Facts, *, rows: Json | None = None) -> list[str]:
    """Read a JSON value and verify it; return code and subject of each difference.

    `rows` is the receipt that the home gives.
    """
    if problems := shape_problems(receipt):
        return problems
    if rows is not None:
        facts = replace(facts, rows=model.read_receipt(rows))
    found = verify.verify_receipt(model.read_receipt(receipt), facts)
    return [f"{one.code} {one.subject}".strip() for one in found]


def named(receipt: Json) -> list[str]:
    """Return code and task of each gap and note of a receipt."""
    return [f"{one['code']} {one['task'] or ''}".strip() for one in (*receipt["gaps"], *receipt["notes"])]


def text_of(receipt: Json, code: str) -> str:
    """Return the sentence of the only gap or note with this code."""
    (one,) = (one for one in (*receipt["gaps"], *receipt["notes"]) if one["code"] == code)
    return str(one.get("cause") or one["text"])


def fingerprint(receipt: Json) -> str:
    """Return the hash of a JSON value without its own hash, whatever its shape."""
    return model.hash_of({key: value for key, value in receipt.items() if key != "sha256"})


def render(receipt: Json) -> str:
    """Return the text of its file."""
    return model.render(model.read_receipt(receipt))


def recorded(receipt: Json) -> list[evidence.Recorded]:
    """Return the recorded files that it names."""
    return list(evidence.recorded(model.read_receipt(receipt)))


def check_script(receipt: Json, text: str, *, name: str) -> str:
    """Return its script."""
    return script.check_script(model.read_receipt(receipt), text, name=name)
