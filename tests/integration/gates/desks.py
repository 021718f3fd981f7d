"""Runs the gate's real runner program, as a keeper would."""

import os
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.gates.commands import CommandGate
from loopwright.core.values.findings import Verdict
from loopwright.core.values.policy import ConfiguredRunner, GateCommand
from loopwright.ports import Exit, GateRequest

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def ended(code: int | None = 0, by: Any = "itself", error: str = "") -> Exit:
    return Exit(
        code=code, ended_by=by, started_at=NOW, ended_at=NOW, output_bytes=0, output_sha256="", error=error
    )


@dataclass
class Desk:
    """A tree, and a run directory beside it."""

    tree: Path
    directory: Path

    def request(self, *commands: GateCommand, **env: str) -> GateRequest:
        return GateRequest(
            run_id="run_00000000-0000-0000-0000-000000000001",
            directory=self.directory,
            tree=self.tree,
            commands=commands,
            env={"PATH": os.environ["PATH"], **env},
        )

    def start(self, gate: CommandGate, request: GateRequest) -> "subprocess.Popen[bytes]":
        spec = gate.spec(request)
        process = subprocess.Popen(
            spec.argv,
            cwd=spec.cwd,
            env=dict(spec.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin
        process.stdin.write(spec.stdin_data.encode())
        process.stdin.flush()
        return process

    def run(
        self,
        *commands: GateCommand,
        gate: CommandGate | None = None,
        only: frozenset[str] = frozenset(),
        runners: tuple[ConfiguredRunner, ...] = (),
        may_share: frozenset[str] = frozenset(),
        **env: str,
    ) -> tuple[Verdict, str, int]:
        """Run commands to the end; return the verdict, what the runner printed, and its exit code."""
        gate = gate or CommandGate(term_grace_s=1.0)
        request = replace(self.request(*commands, **env), only=only, runners=runners, may_share=may_share)
        with self.start(gate, request) as process:
            out, err = process.communicate(timeout=300)
        assert err == b""
        return (
            gate.verdict(request, ended(process.returncode)),
            out.decode(errors="replace"),
            process.returncode,
        )


def command(text: str, name: str = "check", **more: Any) -> GateCommand:
    return GateCommand(name=name, command=text, **more)
