"""What one worker process keeps in memory: slots, turns, interrupts, its own writes.

Lost on restart. Not here: anything that has to survive a restart: that is a row (`engine.rows`).
"""
