"""Lists of work without checkboxes: `TODO.md`, `fix_plan.md` and `IMPLEMENTATION_PLAN.md` made of bullets."""
