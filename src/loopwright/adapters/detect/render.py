"""Write what was found as a commented loopwright.toml."""

from collections.abc import Mapping
from typing import Any, Final

from loopwright.adapters.detect.findings import Detected, ProposedGate, Trial
from loopwright.config.gates import gate_table
from loopwright.config.publish import commented_toml, toml_table

_HEADER: Final = """\
# Loopwright's settings for this project. Every line that is commented out shows a default.
# Inside a plan this file is read from the commit that the plan started from.
"""
_GATES: Final = """\
# Gates: the project's own checks, run in order on every result. All of them must pass.
# Every other setting goes above this line: what is below a [table] belongs to it.
"""
_PUT_IN: Final = "It checks nothing. To use it, remove the # in front of these lines:"
_MAX_REASON: Final = 300


def render_toml(detected: Detected, results: Mapping[str, Trial]) -> str:
    """Return the text of a project file; gates that did not pass, by name, are commented out with the reason."""
    chosen: dict[str, Any] = {}
    if detected.dependencies is not None:
        chosen["dependencies"] = detected.dependencies
    if detected.setup is not None:
        chosen["setup"] = detected.setup
    if detected.env_files:
        chosen["copy_files"] = list(detected.env_files)
    blocks = [
        _HEADER,
        *(_comment(_one_line(note)) + "\n" for note in detected.notes),
        commented_toml(chosen),
        _GATES,
    ]
    if not detected.gates:
        blocks.append(_comment('[[gates]]\nname = "test"\nrun = "the command that runs your tests"'))
    blocks += [_gate(gate, results.get(gate.name)) for gate in detected.gates]
    return "\n".join(block if block.endswith("\n") else f"{block}\n" for block in blocks)


def _gate(gate: ProposedGate, trial: Trial | None) -> str:
    text = toml_table("gates", gate_table(gate.gate()))
    because = _comment(f"Found: {_one_line(gate.why)}.")
    if trial is None and gate.missing:
        trial = Trial(passed=False, reason=f"not installed: {', '.join(gate.missing)}")
    if trial is not None and not trial.passed:
        reason = _one_line(trial.reason) or "it did not pass"
        return f"{because}\n{_comment(f'Left out: {reason}')}\n{_comment(_PUT_IN)}\n{_comment(text)}"
    return f"{because}\n{text}"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))


def _one_line(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 1] + "…"
