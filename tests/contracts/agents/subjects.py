"""The adapters that are held to the contract."""

from pathlib import Path

from tests.fakes import stand_ins
from tests.fakes.stand_ins import acp, claude, codex, command, scripted

from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.codex.agent import CodexAgent
from loopwright.adapters.agents.command import CommandAgent
from loopwright.testing.conformance import PROGRAM, Subject
from loopwright.testing.scripted import ScriptedAgent

STAND_INS = Path(stand_ins.__file__).parent

TELL_OF_AN_OVERLOAD = ("gemini", "opencode", "copilot")

SUBJECTS = (
    Subject(name="claude", agent=ClaudeAgent(), stand_in=STAND_INS / "claude.py", cannot=claude.CANNOT),
    Subject(name="codex", agent=CodexAgent(), stand_in=STAND_INS / "codex.py", cannot=codex.CANNOT),
    Subject(
        name="codex-exec",
        agent=CodexAgent(),
        stand_in=STAND_INS / "codex.py",
        cannot=codex.CANNOT_EXEC,
        options={"binary": PROGRAM, "protocol": "exec"},
    ),
    *(
        Subject(
            name=name,
            agent=AcpAgent(profile=profile),
            stand_in=STAND_INS / "acp.py",
            cannot=acp.CANNOT if name in TELL_OF_AN_OVERLOAD else acp.CANNOT_TELL,
            options={"binary": PROGRAM} if profile.program else {"command": [PROGRAM]},
        )
        for name, profile in PROFILES.items()
    ),
    Subject(
        name="command",
        agent=CommandAgent(),
        stand_in=STAND_INS / "command.py",
        cannot=command.CANNOT,
        options={"command": [PROGRAM]},
    ),
    Subject(
        name="scripted",
        agent=ScriptedAgent(),
        stand_in=STAND_INS / "scripted.py",
        cannot=scripted.CANNOT,
        options={"python": PROGRAM},
    ),
)
