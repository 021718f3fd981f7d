"""Which files and lines affect what a gate says, found by reading source, scripts and configuration.

Not here: what a gate run found (`core.gates.gates`), and reading files from a disk (the adapters).
"""
