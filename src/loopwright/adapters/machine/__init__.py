"""The machine below everything: host and clock, disk, threads, file locks, files written in one step.

Not here: anything that knows about a home, a run or git.
"""
