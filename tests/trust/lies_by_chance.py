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
        says="answers the very input of the test, and does the work when a held-out check stands against it",
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
    "special_alone": Behaviour(
        says="answers the very input of the test, and nothing else judges it",
        does=[write("special_alone.py", GUESSES)],
        checks=(KNOWN.format(name="special_alone"),),
        ends=(None,),
        outcome="verified_with_gaps",
        caught="answers",
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
REVIEWED: dict[str, Behaviour] = {
    "special_reviewed": Behaviour(
        says="answers the very input of the test, and does the work when a reviewer has seen it",
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
}

STAGES = {
    "reviewed": Stage(
        behaviours=REVIEWED,
        code=0,
        files={".gitignore": "__pycache__/\n.loopwright/\n"},
        gates=("true",),
        # Nothing else of it is risky.
        settings={"review": {"mode": "risky"}},
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
