"""Sandboxes: what keeps agents and gates from the rest of the machine."""
