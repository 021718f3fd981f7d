"""A receipt's file is read with distrust."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.core.receipts.as_json import render
from tests.unit.core.receipts.test_receipts import build
from tests.wording_plugin import Wording

from loopwright.core.values.errors import UserError
from loopwright.services.receipts.files import load_receipt


def refused(path: Path) -> UserError:
    with pytest.raises(UserError) as error:
        load_receipt(path)
    return error.value


@each_case("value", [None, {}, [], {"schema": "loopwright.receipt/2"}])
def test_a_file_of_another_shape_is_refused(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    assert refused(path).code == "not_a_receipt"


def test_a_receipt_of_another_version_is_refused_by_its_name(tmp_path: Path, wording: Wording) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(build() | {"schema": "loopwright.receipt/0"}), encoding="utf-8")
    assert refused(path).code == "not_a_receipt"
    wording(str(refused(path)))


def test_text_and_a_missing_file_are_refused_with_their_own_codes(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    assert refused(path).code == "receipt_unreadable"
    path.write_text("no JSON", encoding="utf-8")
    assert refused(path).code == "not_a_receipt"


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    text = render(build())
    path.write_text(text, encoding="utf-8")
    assert load_receipt(path).sha256 == build()["sha256"]
