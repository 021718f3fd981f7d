"""ExecPlans, as the Codex documentation describes them: the boxes of *Progress* are the tasks."""
