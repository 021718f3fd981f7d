"""`python -m loopwright.cli`."""

from loopwright.cli.start import main

main()
