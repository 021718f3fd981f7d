"""The pure heart: values, transition tables and decisions. No clock, no I/O, standard library only."""
