"""Phase plans of GSD: `.planning/phases/NN-name/NN-MM-PLAN.md` with `<task>` elements."""
