"""Scenarios for the model server: what a model, or the service around it, may do to an agent."""

from loopwright.testing.model_server import Rejection, Reply, Scenario, ToolCall


def answer(text: str = "Done.") -> Scenario:
    """Let the model say something and do nothing."""
    return Scenario(turns=(Reply(text=text),))


def edit_file(path: str, *, old: str, new: str, summary: str = "Done.") -> Scenario:
    """Let the model read a file, replace a text in it, and say so."""
    read = ToolCall(name="Read", input={"file_path": path})
    edit = ToolCall(name="Edit", input={"file_path": path, "old_string": old, "new_string": new})
    return Scenario(
        turns=(Reply(text="I look first.", tools=(read,)), Reply(tools=(edit,)), Reply(text=summary))
    )


def write_file(path: str, *, text: str, summary: str = "Done.") -> Scenario:
    """Let the model create a file, and say so."""
    write = ToolCall(name="Write", input={"file_path": path, "content": text})
    return Scenario(turns=(Reply(tools=(write,)), Reply(text=summary)))


def run_command(command: str, *, summary: str = "Done.") -> Scenario:
    """Let the model run a shell command, and say so."""
    bash = ToolCall(name="Bash", input={"command": command, "description": "run a command"})
    return Scenario(turns=(Reply(tools=(bash,)), Reply(text=summary)))


def bad_key() -> Scenario:
    """Refuse the credentials."""
    turn = Rejection(status=401, kind="authentication_error", message="invalid x-api-key")
    return Scenario(turns=(turn,))


def overloaded() -> Scenario:
    """Have no capacity."""
    return Scenario(turns=(Rejection(status=529, kind="overloaded_error", message="Overloaded"),))


def window_used_up(*, resets_at: int) -> Scenario:
    """Refuse a subscription whose five-hour window is used up until an epoch time."""
    prefix, reset = "anthropic-ratelimit-unified", str(resets_at)
    headers = {
        f"{prefix}-status": "rejected",
        f"{prefix}-reset": reset,
        f"{prefix}-representative-claim": "five_hour",
        f"{prefix}-5h-status": "rejected",
        f"{prefix}-5h-reset": reset,
        f"{prefix}-5h-utilization": "1.0",
        "retry-after": "3600",
        "x-should-retry": "false",
    }
    message = "This request would exceed your account's rate limit. Please try again later."
    turn = Rejection(status=429, kind="rate_limit_error", message=message, headers=headers)
    return Scenario(turns=(turn,))
