"""What a repository says about itself: its languages, how it is set up and how it is checked.

Nothing is run. Files are read, and programs are looked for; whether a proposed gate passes is found out
by running it, elsewhere.

Not here: trying what was found, and the file that is proposed (`services.projects.proposal`).
"""

from loopwright.adapters.detect.findings import Detected, ProposedGate, Trial
from loopwright.adapters.detect.survey import detect, is_project, render_toml

__all__ = ["Detected", "ProposedGate", "Trial", "detect", "is_project", "render_toml"]
