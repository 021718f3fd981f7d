"""The controller of an orchestrator folder: it reads the contract, delegates each stage, and finalizes rounds.

`controller` decides and acts, one action at a time. `controller_files` is the only module here that writes
files. Code outside the serial path is imported on its named exit: `fan_out`, `recovery`, `roadmap_updates`.
"""
