"""Commands that look closer: `inspect`, `audit`, `receipt`, `plan coverage`.

Not here: the use cases behind them (`services.audit`, `services.receipts`).
"""
