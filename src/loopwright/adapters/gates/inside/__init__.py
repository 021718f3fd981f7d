"""Small programs that are laid beside a test runner and say what happens inside it.

Each is loaded by the project's own Python or Node, whatever its version: standard library only, nothing of Loopwright
imported, no newer syntax than Python 3.8 has. What they write is read with distrust by `adapters.gates.witnesses`.

Not here: laying them beside a runner (`adapters.gates.witnesses`), and what follows (`core.gates.witnesses`).
"""
