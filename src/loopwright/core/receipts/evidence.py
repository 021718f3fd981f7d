"""The recorded files of a plan, by the names and hashes in its receipt."""

from collections.abc import Iterator
from dataclasses import dataclass

from loopwright.core.receipts.events import kept_patches
from loopwright.core.receipts.model import ReceiptFacts, VerdictEntry
from loopwright.core.values.findings import CommandFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A file among the home's run files."""

    key: str
    """Where it is:

    - `<run id>/<position>`: the output of a gate command, with a folder between if it ran again;
    - the same with `.kept`, `.seen` or `.xml`: more about that command;
    - `<run id>/output`, `<run id>/prompt`, `<run id>/files`: what else was recorded of a run;
    - `<run id>/patch`: what changed in the checkout while it ran;
    - `held_out/<hash>`: a file of held-out checks.
    """
    what: str
    """Its description in plain words."""
    sha256: str
    size: int | None = None
    """The size of the whole, of which perhaps only parts were kept."""
    of_gate: bool = False
    """Whether a gate wrote it. What agents read and wrote is private and is not exported."""


def recorded(receipt: ReceiptFacts) -> Iterator[Recorded]:
    """Yield each recorded file that the receipt names."""
    for verdict in receipt.verdicts:
        for directory, n, command in _ran(verdict):
            yield Recorded(
                key=f"{directory}/{n}",
                what=f"the recorded output of {command.name!r}",
                sha256=command.output_sha256,
                size=command.output_bytes,
                of_gate=True,
            )
            for suffix, what, sha256 in _files(command):
                yield Recorded(key=f"{directory}/{n}{suffix}", what=what, sha256=sha256, of_gate=True)
    for run in receipt.runs:
        for part, what, digest in (
            ("output", f"what the {run.role} said", run.output_sha256),
            ("prompt", f"what the {run.role} was told", run.prompt_sha256),
            ("files", f"what is written down of the {run.role}", run.files_sha256),
        ):
            if digest:
                yield Recorded(key=f"{run.id}/{part}", what=what, sha256=digest)
    held = {file.sha256: file for task in receipt.tasks for one in task.held_out for file in one.files}
    for sha256, file in held.items():
        yield Recorded(key=f"held_out/{sha256}", what=f"the held-out file {file.path}", sha256=sha256)
    for change in kept_patches(receipt.checkout_changes):
        what = f"the patch of what changed in the checkout during {change.run}"
        yield Recorded(key=f"{change.run}/patch", what=what, sha256=change.patch_sha256 or "")


def gate_evidence(receipt: ReceiptFacts) -> Iterator[tuple[str, str, str]]:
    """Yield each file that a gate wrote once: its directory, its name and its hash."""
    seen: set[tuple[str, int]] = set()
    for verdict in receipt.verdicts:
        for directory, n, command in _ran(verdict):
            if (directory, n) not in seen:
                seen.add((directory, n))
                yield directory, f"{n}.out", command.kept_sha256 or command.output_sha256
                for suffix, _, sha256 in _files(command):
                    if suffix != ".kept":
                        yield directory, f"{n}{suffix}", sha256


def _ran(verdict: VerdictEntry) -> Iterator[tuple[str, int, CommandFacts]]:
    """Yield each command of a verdict, reruns included, with the directory and position of its output."""
    yield from ((verdict.run_id, n, command) for n, command in enumerate(verdict.commands, 1))
    for rerun in verdict.reruns:
        directory = f"{verdict.run_id}/{rerun.folder}"
        yield from ((directory, n, command) for n, command in enumerate(rerun.commands, 1))


def _files(command: CommandFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the other records of a command: the suffix of its key, its description, and its hash."""
    if command.kept_sha256 not in ("", command.output_sha256):
        yield ".kept", f"what was kept of the output of {command.name!r}", command.kept_sha256
    if command.seen_sha256:
        yield ".seen", f"what was seen inside {command.name!r}", command.seen_sha256
    if command.report_sha256:
        yield ".xml", f"the report of {command.name!r}", command.report_sha256
