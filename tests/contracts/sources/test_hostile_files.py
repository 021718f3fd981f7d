"""Every kind of work, as a file of 5 MB that nobody can use: refused with its place, and nothing on disk is changed."""

import random
import re
import time
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from tests.acceptance.sandbox import Sandbox
from tests.contracts.sources.hostile import FORMS, HOSTILE, NO_LINE, OF_THE_FORM, SEED, laid

from loopwright.adapters import registry
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.values.errors import BadPlan, UserError

_LONGEST = 2000
_LOCATED = re.compile(r"[^:]+:[1-9][0-9]*: |and [0-9]+ more")
_SECONDS = 2


def _tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.capability("C004")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", registry.known_sources())
@pytest.mark.parametrize(
    "all_forms", [pytest.param(False, id="main file"), pytest.param(True, id="all", marks=pytest.mark.long)]
)
def test_a_file_that_nobody_can_use_is_refused_with_its_place(
    tmp_path: Path, kind: str, *, all_forms: bool
) -> None:
    """Each form has what is made for it; what is the same for all is for the first of a kind, unless it may be long.

    A third of the shapes is drawn each time, unless it may be long.
    """
    source = registry.source(kind)
    some = list(HOSTILE) if all_forms else random.Random(SEED).sample(list(HOSTILE), len(HOSTILE) // 3)
    for shape, (n, form) in product(some, enumerate(FORMS[kind])):
        if shape not in form.fine and (n == 0 or all_forms or shape in OF_THE_FORM):
            folder = tmp_path / shape / str(n)
            place = laid(folder, form, shape)
            what = f"{form.file}: {shape} (HOSTILE_SEED={SEED})"
            before = _tree(folder)
            began = time.process_time()
            with pytest.raises(BadPlan) as refused:
                read(source, place)
            assert time.process_time() - began < _SECONDS, what
            problems = refused.value.problems
            assert problems, what
            assert all("\n" not in one and len(one) < _LONGEST for one in problems), what
            if shape not in NO_LINE:
                assert all(_LOCATED.match(one) for one in problems), (what, problems[:3])
            assert Path(form.place).name in str(refused.value) or Path(form.file).name in str(refused.value)
            with suppress(UserError):  # that nobody knows it, or that several would take it, is an answer too
                recognise(place, registry.sources())
            assert _tree(folder) == before, what
            (folder / form.file).unlink()


@pytest.mark.capability("C004")
@pytest.mark.parametrize("kind", registry.known_sources())
def test_run_refuses_such_a_file_before_anything_is_made(tmp_path: Path, kind: str) -> None:
    sandbox = Sandbox(tmp_path)
    form = FORMS[kind][0]
    place = laid(tmp_path / "work", form, "cut off, then zeros")
    before = _tree(tmp_path / "work")
    said = sandbox("run", str(place), "--source", kind)
    assert said.code == 2, said.out + said.err
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert not (sandbox.home / "loopwright.db").exists()
    assert not (sandbox.repository / ".loopwright").exists()
    assert sandbox.git("status", "--porcelain") == ""
    assert _tree(tmp_path / "work") == before
