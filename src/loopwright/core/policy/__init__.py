"""What happens next: retries, budgets, quota, fallback, scopes, and the one function `decide`.

Not here: applying a decision (`engine.worker`), and the settings that a policy is made from (`config`).
"""
