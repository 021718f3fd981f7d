"""Make the sample repository of the demonstration, with its plan and the script of its agent."""

from pathlib import Path
from typing import Final

from loopwright.testing.sample import demo_plan, demo_script, make_sample_repository
from loopwright.testing.scripted import write_script

SHOP: Final = "shop"
"""The folder of the repository."""
SCRIPT: Final = "script.json"
"""What the scripted agent does."""


def make_sample(folder: Path) -> None:
    """Make everything that the demonstration needs in an empty folder."""
    shop = folder / SHOP
    shop.mkdir()
    # Written before the first commit, which takes in whatever is there.
    (shop / "plan.yaml").write_text(demo_plan(), encoding="utf-8")
    make_sample_repository(shop)
    write_script(folder / SCRIPT, demo_script())
