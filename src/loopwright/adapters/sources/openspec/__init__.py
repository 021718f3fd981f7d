"""Changes of OpenSpec: `openspec/changes/NAME/tasks.md` beside `proposal.md` and `design.md`."""
