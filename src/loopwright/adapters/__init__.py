"""Everything that touches the world outside: git, processes, agents, sources, the database, the home.

Not here: decisions; an adapter does what it is told and reports what it saw.
"""
