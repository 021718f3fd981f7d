"""Specs of Kiro and cc-sdd: `.kiro/specs/NAME/tasks.md` beside `requirements.md` and `design.md`."""
