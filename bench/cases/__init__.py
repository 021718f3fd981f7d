"""One module per case; each has a function that yields measurements."""
