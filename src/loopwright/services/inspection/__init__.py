"""What is known of a run, or of a project and a goal, in one packet.

Not here: how rows become a packet (`core.plans`, `engine.views`), what proves a criterion (`services.audit`).
"""
