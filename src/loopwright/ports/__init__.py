"""What the engine needs from the world, as Protocols. Adapters fill them; `loopwright.testing` ships fakes."""

from loopwright.core.model import QuotaWindow
from loopwright.ports.agents import (
    CAPABILITIES,
    Agent,
    AgentEvent,
    AgentEventKind,
    AgentRequest,
    AgentResult,
    Folded,
    Invocation,
    Spent,
    State,
    ToolServer,
)
from loopwright.ports.clock import Clock, Failpoint, Ids, no_failpoint
from loopwright.ports.disk import Disk, EndlessDisk
from loopwright.ports.dispatch import Engine, Execute
from loopwright.ports.ends import Built, Ends, Pick
from loopwright.ports.forges import Forge, Request, Wanted
from loopwright.ports.gates import Gate, GateRequest
from loopwright.ports.git import (
    Base,
    Candidate,
    Entry,
    FileChange,
    Repository,
    Snapshot,
    Standing,
    Step,
    Trailers,
    Tripwire,
)
from loopwright.ports.home import Membership, StateFiles
from loopwright.ports.processes import Exit, Keepers, OutputLine, RunSpec, Sighting
from loopwright.ports.sandbox import NoSandbox, Reach, Sandbox
from loopwright.ports.sources import (
    Discovered,
    Files,
    FixTask,
    ItemProgress,
    Mark,
    PlannedTask,
    PlannedWork,
    Progress,
    Source,
    WritingSource,
)
from loopwright.ports.store import Store, Tx

__all__ = [
    "CAPABILITIES",
    "Agent",
    "AgentEvent",
    "AgentEventKind",
    "AgentRequest",
    "AgentResult",
    "Base",
    "Built",
    "Candidate",
    "Clock",
    "Discovered",
    "Disk",
    "EndlessDisk",
    "Ends",
    "Engine",
    "Entry",
    "Execute",
    "Exit",
    "Failpoint",
    "FileChange",
    "Files",
    "FixTask",
    "Folded",
    "Forge",
    "Gate",
    "GateRequest",
    "Ids",
    "Invocation",
    "ItemProgress",
    "Keepers",
    "Mark",
    "Membership",
    "NoSandbox",
    "OutputLine",
    "Pick",
    "PlannedTask",
    "PlannedWork",
    "Progress",
    "QuotaWindow",
    "Reach",
    "Repository",
    "Request",
    "RunSpec",
    "Sandbox",
    "Sighting",
    "Snapshot",
    "Source",
    "Spent",
    "Standing",
    "State",
    "StateFiles",
    "Step",
    "Store",
    "ToolServer",
    "Trailers",
    "Tripwire",
    "Tx",
    "Wanted",
    "WritingSource",
    "no_failpoint",
]
