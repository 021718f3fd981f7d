"""`stats`: how well plans went, what is left of the accounts, and which tests are flaky."""

from cyclopts import App

from loopwright.cli.commands.watch.metrics import metrics

app = App(name="stats", help_format="plaintext")
app.default(metrics)
_HERE = "loopwright.cli.commands.watch"
app.command(
    f"{_HERE}.quota:app", name="quota", help="Show what is left of the agents' accounts, or reopen one."
)
app.command(
    f"{_HERE}.flaky:flaky", name="flaky", help="List checks that both passed and failed on the same tree."
)
