"""What a keeper is asked to keep, as it came in over stdin."""

from __future__ import annotations

import json
import re
import signal

from loopwright.keeper.home import Home
from loopwright.keeper.redact import Redactor, forms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BadSpec(Exception):
    """The text is not a usable spec."""


class Spec:
    """One process to run, and its limits. Every limit may be None, which is off."""

    def __init__(self, text: bytes) -> None:
        try:
            raw: dict[str, Any] = json.loads(text)
            limits: dict[str, Any] = raw["limits"]
            self.run_id = str(raw["run_id"])
            self.argv = [str(part) for part in raw["argv"]]
            self.cwd = str(raw["cwd"])
            self.env = {str(name): str(value) for name, value in raw["env"].items()}
            self.stdin_pipe = raw["stdin"] == "pipe"
            self.stdin_data = str(raw["stdin_data"])
            self.done_pattern: str | None = raw["done_pattern"]
            self.interrupt: str | None = raw["interrupt"]
            self.activity_paths = [str(path) for path in raw["activity_paths"]]
            self.contained = bool(raw["contained"])
            self.secrets = [str(secret) for secret in raw["secrets"]]
            self.home = None if raw["home"] is None else Home(raw["home"])
            self.hard_s = _seconds(limits["hard"])
            self.idle_s = _seconds(limits["idle"])
            self.done_grace_s = _seconds(limits["done_grace"])
            self.term_grace_s = float(limits["term_grace"])
            self.output_bytes = int(limits["output"])
            if self.done_pattern is not None:
                re.compile(self.done_pattern.encode())
        except (ValueError, KeyError, TypeError, AttributeError, re.error) as problem:
            raise BadSpec(f"the spec cannot be used: {type(problem).__name__}: {problem}") from problem
        if not self.argv:
            raise BadSpec("the spec names no program to run")

    @property
    def interrupt_signal(self) -> signal.Signals | None:
        """The signal that asks politely, when `interrupt` names one."""
        name = self.interrupt or ""
        return getattr(signal.Signals, name, None) if name.startswith("SIG") else None

    def shown(self) -> dict[str, Any]:
        """Return what may be kept on disk: no secret, no value of a variable, no prompt."""
        redactor = Redactor(forms_of(self.secrets))
        return {
            "run_id": self.run_id,
            "argv": [
                redactor.redact(part.encode(errors="surrogateescape")).decode(errors="replace")
                for part in self.argv
            ],
            "cwd": self.cwd,
            "env": sorted(self.env),
            "stdin": "pipe" if self.stdin_pipe else "null",
            "done_pattern": self.done_pattern,
            "interrupt": self.interrupt,
            "activity_paths": self.activity_paths,
            "home": None if self.home is None else self.home.shape(),
            "limits": {
                "hard": self.hard_s,
                "idle": self.idle_s,
                "done_grace": self.done_grace_s,
                "term_grace": self.term_grace_s,
                "output": self.output_bytes,
            },
        }


def _seconds(value: float | None) -> float | None:
    return None if value is None else float(value)
