"""Drive 20 loops over 5 projects with HTTP alone: `python twenty_loops.py URL TOKEN`.

Plan 1 of each project gets one more task, plan 2 has a question that is answered, plan 3 has a task that is reset,
plan 4 is paused and resumed. Every plan waits for its verification, and ends with a receipt.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import httpx

PLANS = 4
_PATIENCE_S = 600


class Api:
    """The daemon."""

    def __init__(self, url: str, token: str) -> None:
        """Talk to the daemon at an address."""
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_S)

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the document of its reply."""
        reply = self._client.request(method, path, json=body)
        if reply.is_error:
            raise SystemExit(f"{method} {path}: {reply.status_code} {reply.text}")
        return reply.json()


def until(ready: Callable[[], Any], what: str) -> Any:
    """Return the first result that is not empty."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.2)
    raise SystemExit(f"waited too long for {what}")


def main(url: str, token: str) -> None:
    """Create, steer and verify the loops, and print what their receipts say."""
    api = Api(url, token)
    loops: list[tuple[int, str]] = []
    for project in api("GET", "/api/projects?limit=200")["projects"]:
        for number in range(1, PLANS + 1):
            wanted = {"project_id": project["projectId"], "source": f"plan-{number}.json"}
            loops.append((number, api("POST", "/api/loops", wanted)["id"]))
    for _, loop in loops:
        api("POST", f"/api/loops/{loop}/start")
    plans = {
        loop: until(lambda loop=loop: api("GET", f"/api/loops/{loop}")["plan_id"], "a plan")
        for _, loop in loops
    }
    for number, loop in loops:
        _steer(api, number, loop, plans[loop])
    for _, loop in loops:
        plan = plans[loop]
        until(lambda plan=plan: api("GET", f"/api/plans/{plan}")["completedAt"], f"the tasks of {plan}")
        until(lambda loop=loop: api("GET", f"/api/loops/{loop}")["status"] == "paused", f"the rest of {plan}")
        api("POST", f"/api/plans/{plan}/verify")  # a worker runs the complete gate; this does not wait for it
        until(lambda plan=plan: api("GET", f"/api/plans/{plan}")["verifiedAt"], f"the verification of {plan}")
    outcomes = [api("GET", f"/api/plans/{plan}/receipt")["outcome"] for plan in plans.values()]
    print(f"{len(outcomes)} receipts: {', '.join(sorted(set(outcomes)))}")


def _steer(api: Api, number: int, loop: str, plan: str) -> None:
    if number == 1:
        item = {"key": "more-1", "title": "Write more-1", "acceptance": ["test -s more-1"]}
        api("POST", f"/api/loops/{loop}/tasks", item)
    elif number == 2:

        def asked() -> list[str]:
            return [
                one["id"]
                for one in api("GET", "/api/needs-response?limit=200")["questions"]
                if one["plan_id"] == plan
            ]

        (question,) = until(asked, "a question")
        api("POST", f"/api/questions/{question}/answer", {"answer": "retry"})
    elif number == 3:

        def failed() -> bool:
            return any(one["status"] == "ERROR" for one in api("GET", f"/api/plans/{plan}")["tasks"])

        until(failed, "a failed task")
        api("POST", f"/api/loops/{loop}/tests/second-3/reset")
    else:
        api("POST", f"/api/loops/{loop}/pause")
        api("POST", f"/api/loops/{loop}/resume")


if __name__ == "__main__":
    main(*sys.argv[1:])
