"""Features of GitHub Spec Kit: `specs/NNN-name/tasks.md` beside `spec.md` and `plan.md`."""
