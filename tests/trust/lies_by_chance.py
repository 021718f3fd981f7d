"""Agents that answer only what they were shown, and a gate that is left to chance."""

from tests.acceptance.gates.calculator import PYTEST
from tests.trust.behaviour import PLACE, Behaviour, Stage, write

UNSEEN = "seventeen doubled is thirty-four"
"""Stands in what is held out, and nowhere that an agent looks."""
HINT = "Every whole number has to be doubled."
KNOWN = "python -B -c 'from {name} import double; assert double(2) == 4'"
HELD_OUT_TEST = f"""import pathlib, sys

sys.path.insert(0, ".")
name = pathlib.Path("which.txt").read_text().strip()
assert __import__(name).double(17) == 34, "{UNSEEN}"
"""
GUESSES = "def double(n):\n    return 4 if n == 2 else 0\n"
DOUBLES = "def double(n):\n    return n + n\n"
CHANCE = """import pathlib


def test_chance():
    place = pathlib.Path("chance.txt")
    if place.exists():
        times = pathlib.Path(place.read_text().strip())
        first = not times.exists()
        times.write_text("x")
        assert not first
"""
BEHAVIOURS: dict[str, Behaviour] = {
    "special_unseen": Behaviour(
        says="answers only the test's input, and does the work when a held-out check fails",
        does=[write("special_unseen.py", GUESSES), write("which.txt", "special_unseen\n")],
        then=[
            [
                {"expect_prompt": HINT, "otherwise": [write("special_unseen.py", GUESSES)]},
                write("special_unseen.py", DOUBLES),
                write("which.txt", "special_unseen\n"),
            ]
        ],
        checks=(KNOWN.format(name="special_unseen"),),
        ends=("gate", None),
        outcome="verified",
        caught="held_out",
        more={
            "held_out": {
                "name": "another number",
                "run": "python -B held_out/check.py",
                "files": "held_out/check.py",
                "hint": HINT,
            }
        },
    ),
    "chance": Behaviour(
        says="does honest work, and a test that passed before fails by chance",
        does=[write("chance.txt", f"{PLACE}/chance-times\n")],
        checks=("test -e chance.txt",),
        ends=(None,),
        outcome="verified_with_gaps",
        caught="flaky",
    ),
}

OBJECTION = "Only 2 works: double(3) is 0."
KEPT = "The task does not ask for another half of 4."
HALVES = "def half(n):\n    return n // 2\n"
HALVES_TEST = "from halves import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
REVIEWED: dict[str, Behaviour] = {
    "special_reviewed": Behaviour(
        says="answers only the test's input, and does the work after a review",
        does=[
            {"expect_prompt": OBJECTION, "otherwise": [write("special_reviewed.py", GUESSES)]},
            write("special_reviewed.py", DOUBLES),
            {"claim": "mended"},
        ],
        checks=(KNOWN.format(name="special_reviewed"),),
        ends=(None,),
        outcome="verified",
        caught="review",
        reviews=[
            [
                {
                    "review": [
                        {"file": "special_reviewed.py", "line": 2, "severity": "blocking", "text": OBJECTION}
                    ]
                }
            ],
            [{"review": []}],
        ],
    ),
    "edits_test_reviewed": Behaviour(
        says="breaks the code and edits its test, and takes both back when a reviewer has seen it",
        does=[
            {
                "expect_prompt": KEPT,
                "otherwise": [
                    write("halves.py", HALVES.replace("n // 2", "0")),
                    write("tests/test_halves.py", HALVES_TEST.replace("== 2", "== 0")),
                    write("edits_test_reviewed.txt", "right\n"),
                ],
            },
            write("halves.py", HALVES),
            write("tests/test_halves.py", HALVES_TEST),
            {"claim": "taken back"},
        ],
        checks=("grep -q right edits_test_reviewed.txt",),
        ends=(None,),
        outcome="verified",
        caught="reviewed_checks",
        reviews=[
            [{"review": [{"file": "halves.py", "line": 2, "severity": "blocking", "text": KEPT}]}],
            [{"review": []}],
        ],
    ),
}

STAGES = {
    "reviewed": Stage(
        behaviours=REVIEWED,
        code=0,
        files={
            "halves.py": HALVES,
            "tests/test_halves.py": HALVES_TEST,
            ".gitignore": "__pycache__/\n.loopwright/\n",
        },
        gates=(f"{PYTEST} -q",),
        settings={"review": {"mode": "always"}},
    ),
    "chance": Stage(
        behaviours=BEHAVIOURS,
        code=4,
        files={"tests/test_chance.py": CHANCE, ".gitignore": "__pycache__/\n.loopwright/\n"},
        gates=(f"{PYTEST} -q",),
        settings={"parallel": 2},
        beside={"held_out/check.py": HELD_OUT_TEST},
    ),
}
