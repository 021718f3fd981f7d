"""Drive 20 loops over 5 projects with MCP tools alone: `python twenty_loops_mcp.py`.

Plans 2 and 3 of each project have a question that is answered, plan 4 is paused and continued. Every loop ends with a
receipt.
"""

import asyncio
import json
import os
import shutil
import sys
from typing import Any

from mcp import Client, StdioServerParameters

PLANS = 4
_PATIENCE_S = 600
WHY = "The example drives every loop to its receipt."


class Tools:
    """The tools of the MCP server."""

    def __init__(self, client: Client) -> None:
        """Use a connected client."""
        self._client = client

    async def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Use a tool and return its result."""
        result = await self._client.call_tool(name, arguments)
        text = "".join(getattr(block, "text", "") for block in result.content)
        if result.is_error:
            raise SystemExit(f"{name} {arguments}: {text}")
        assert len(text.encode()) <= 4096, f"{name} answered with {len(text.encode())} bytes"
        return json.loads(text)


async def _drive(tools: Tools, number: int, loop: str) -> str:
    """Bring one loop to its end and return what its receipt says."""
    await tools("start", loop=loop, reason=WHY)
    if number == PLANS:
        while "plan_id" not in await tools("progress", loop=loop):
            await asyncio.sleep(0.5)
        await tools("pause", loop=loop, reason=WHY)
        await tools("start", loop=loop, reason=WHY)
    now = await tools("wait", loop=loop, timeout=_PATIENCE_S)
    for question in now.get("questions", ()):
        await tools("answer", question=question["id"], text="retry", reason=WHY)
    now = await tools("wait", loop=loop, until="ended", timeout=_PATIENCE_S)
    assert now["reached"], now
    return str((await tools("receipt", loop=loop))["outcome"])


async def main(command: str) -> None:
    """Create and drive the loops, and print what their receipts say."""
    home = {name: value for name, value in os.environ.items() if name == "LOOPWRIGHT_HOME"}
    async with Client(StdioServerParameters(command=command, args=["mcp"], env=home)) as client:
        tools = Tools(client)
        loops: list[tuple[int, str]] = []
        for project in (await tools("list", what="projects"))["projects"]:
            for number in range(1, PLANS + 1):
                wanted = {"project": project["id"], "template": "sample", "reason": WHY}
                wanted["values"] = {"number": str(number)}
                loops.append((number, (await tools("create", **wanted))["id"]))
        outcomes = await asyncio.gather(*(_drive(tools, number, loop) for number, loop in loops))
    print(f"{len(outcomes)} receipts: {', '.join(sorted(set(outcomes)))}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else shutil.which("loopwright") or "loopwright"))
